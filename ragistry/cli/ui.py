"""``ragistry ui``: the page to look after collections, to ask, and to see why."""

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
            raise typer.BadParameter(f"{name!r} is no name of a host; give it such as library.example.org")
    return names or []


def ui(
    host: Annotated[str, typer.Option("--host", help="Address to listen on; any but loopback needs a token.")] = (
        "127.0.0.1"
    ),
    port: PortOption = 8080,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
    root: Annotated[
        list[Path] | None, typer.Option("--root", help="Folder that the page may take in from (default: home).")
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name", help="A name that visitors call this page by through a proxy; repeat for more.", callback=_names
        ),
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
        raise ConfigError(f"the page needs {error.name!r}; run pip install 'ragistry[ui]'") from error
    from ragistry.workspace import open_workspace

    roots = tuple(root or (Path.home(), workspace))

    def ready(token: str) -> None:
        address = f"http://{written(host)}:{listener.getsockname()[1]}/{token}"
        typer.echo(f"Ragistry is at {address} (Ctrl+C stops it)")
        if browser:
            import webbrowser

            webbrowser.open(address)

    # When the page has stopped, uvicorn sends the signal on, and by default that would end us with files left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with listening_socket(host, port) as listener:
        site = Site(open_workspace(workspace), roots)
        try:
            serve(site, listener, host, names=name or [], ready=ready, stopping=lambda: _tell_stopping(site.jobs))
        finally:
            _tell_stopped(site.jobs)


def _tell_stopping(jobs: Jobs) -> None:
    if jobs.open():
        error_line("what is being taken in ends after its next batch; Ctrl+C again ends it at once", label="stopping")


def _tell_stopped(jobs: Jobs) -> None:
    """After the first signal, a second one ends even a call to a model; what was written is whole."""
    for job in (*jobs.stopped(), *jobs.open()):
        error_line(
            f"{job.label!r} was not taken into {job.collection!r}, or only in part; add it again", label="stopped"
        )
    if jobs.open():
        os._exit(130)
