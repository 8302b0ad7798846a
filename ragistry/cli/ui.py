"""``ragistry ui``: serve the page."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragistry.cli.listening import PortOption, listening_socket, written
from ragistry.cli.options import DebugOption, WorkspaceOption
from ragistry.cli.output import error_line

if TYPE_CHECKING:
    from ragistry.web.jobs import Jobs


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
        from ragistry.web.site import Site
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("ragistry"):
            raise
        from ragistry.utils.installation import install_command

        raise ConfigError(f"the page needs {error.name!r}; run: {install_command('ui')}") from error
    from ragistry.workspace import open_workspace

    roots = tuple(root or (Path.home(), workspace))

    def ready(token: str) -> None:
        address = f"http://{written(host)}:{listener.getsockname()[1]}/{token}"
        typer.echo(f"Ragistry is at {address} (Ctrl+C stops it)")
        if browser:
            import webbrowser

            webbrowser.open(address)

    # After the page has stopped, uvicorn raises the signal again, which by default would end us before the cleanup.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with listening_socket(host, port) as listener:
        site = Site(open_workspace(workspace), roots)
        try:
            serve(site, listener, host, names=name or [], ready=ready, stopping=lambda: _tell_stopping(site.jobs))
        finally:
            _tell_stopped(site.jobs)


def _tell_stopping(jobs: Jobs) -> None:
    if jobs.open():
        error_line(
            "the current ingest ends after its next batch; press Ctrl+C again to end it at once", label="stopping"
        )


def _tell_stopped(jobs: Jobs) -> None:
    """After the first signal, a second one ends even a call to a model; written sources are complete."""
    for job in (*jobs.stopped(), *jobs.open()):
        error_line(
            f"{job.label!r} was not taken into {job.collection!r}, or only in part; add it again", label="stopped"
        )
    if jobs.open():
        os._exit(130)
