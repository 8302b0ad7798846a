"""``ragistry ui``: the page to look after collections, to ask, and to see why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragistry.cli.listening import PortOption, listening_socket, written
from ragistry.cli.options import DebugOption, WorkspaceOption


def ui(
    host: Annotated[str, typer.Option("--host", help="Address to listen on; any but loopback needs a token.")] = (
        "127.0.0.1"
    ),
    port: PortOption = 8080,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
    root: Annotated[
        list[Path] | None, typer.Option("--root", help="Folder that the page may take in from (default: home).")
    ] = None,
    workspace: WorkspaceOption = Path(),
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Serve the library as a page on this machine: collections, search, comparison, techniques."""
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

    with listening_socket(host, port) as listener:
        serve(Site(open_workspace(workspace), roots), listener, host, ready=ready)
