"""``ragistry ui``: serve the page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragistry.cli.listening import PortOption, exit_on_sigterm, listening_socket, url_of
from ragistry.cli.options import WorkspaceOption
from ragistry.plugins import load_door


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
) -> None:
    """Serve the library as a page on this machine: search, collections, comparisons."""
    page = load_door("page")
    from ragistry.workspace import open_workspace

    exit_on_sigterm()
    with listening_socket(host, port) as listener, open_workspace(workspace) as opened:
        app, token = page.page_server(opened, root or (Path.home(), workspace), host, name or [])

        def ready() -> None:
            address = f"{url_of(host, listener)}/{token}"
            typer.echo(f"Ragistry is at {address} (Ctrl+C stops it)")
            if browser:
                import webbrowser

                webbrowser.open(address)

        load_door("server").run(app, listener, ready=ready, has_page=True)
