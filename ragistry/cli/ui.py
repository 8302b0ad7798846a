"""``ragistry ui``: serve the page."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragistry.cli.listening import PortOption, listening_socket, url_host
from ragistry.cli.options import DebugOption, WorkspaceOption
from ragistry.cli.output import error_line

if TYPE_CHECKING:
    from ragistry.web.app_state import AppState


def _names(names: list[str] | None) -> list[str]:
    for name in names or []:
        if not name or any(character in "/?#@" or character.isspace() for character in name):
            raise typer.BadParameter(f"{name!r} is not a host name; write it such as library.example.org")
    return names or []


def ui(
    host: Annotated[str, typer.Option("--host", help="Address to listen on; any except loopback needs a token.")] = (
        "127.0.0.1"
    ),
    port: PortOption = 8080,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
    root: Annotated[
        list[Path] | None, typer.Option("--root", help="Folder from which the page may add files (default: home).")
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", help="A host name of the page behind a proxy; repeat for more.", callback=_names),
    ] = None,
    workspace: WorkspaceOption = Path(),
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Serve the library as a page on this machine: search, collections, comparisons, techniques."""
    from ragistry.errors import ConfigError

    try:
        from ragistry.web.app import serve
        from ragistry.web.app_state import AppState
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("ragistry"):
            raise
        from ragistry.utils.installation import install_command

        raise ConfigError(f"the page needs {error.name!r}; run: {install_command('ui')}") from error
    from ragistry.workspace import open_workspace

    roots = tuple(root or (Path.home(), workspace))

    def ready(token: str) -> None:
        address = f"http://{url_host(host)}:{listener.getsockname()[1]}/{token}"
        typer.echo(f"Ragistry is at {address} (Ctrl+C stops it)")
        if browser:
            import webbrowser

            webbrowser.open(address)

    # After the page has stopped, uvicorn raises the signal again, which by default would skip the cleanup.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with listening_socket(host, port) as listener:
        state = AppState(open_workspace(workspace), roots)
        try:
            serve(state, listener, host, names=name or [], ready=ready, stopping=lambda: _report_stopping(state))
        finally:
            _report_stopped(state)


def _report_stopping(state: AppState) -> None:
    if state.jobs.open():
        error_line(
            "the current ingest ends after its next batch; press Ctrl+C again to end it immediately", label="stopping"
        )


def _report_stopped(state: AppState) -> None:
    """Report incomplete ingests. After a second signal, end the process even during a call to a model."""
    for job in (*state.jobs.stopped(), *state.jobs.open()):
        error_line(f"{job.label!r} was not added to {job.collection!r}, or only partly; add it again", label="stopped")
    if state.jobs.open():
        os._exit(130)
