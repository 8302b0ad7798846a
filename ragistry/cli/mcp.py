"""``ragistry mcp``: serve the library to agents, and write a skill for them."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragistry.cli.flags import refuse_all_but, refuse_without
from ragistry.cli.listening import PortOption, exit_on_sigterm, listening_socket, url_of
from ragistry.cli.options import TechniqueOption, WorkspaceOption, collection_option
from ragistry.cli.options import path as given_path
from ragistry.cli.output import console, error_line
from ragistry.errors import ConfigError
from ragistry.plugins import load_door

if TYPE_CHECKING:
    from ragistry.tools.search_library import SearchLibraryTool

app = typer.Typer()
SKILL = Path(__file__).with_name("SKILL.md")
MARK = b"\ncompatibility: Needs the command `ragistry`"
"""A line that every version of the file has; without it, a file is not from this command."""


@app.callback(invoke_without_command=True)
def mcp(
    context: typer.Context,
    collection: Annotated[
        list[str] | None,
        collection_option("Serve this collection; repeat for more [all]."),
    ] = None,
    technique: TechniqueOption = None,
    http: Annotated[bool, typer.Option("--http", help="Serve over HTTP instead of standard input and output.")] = False,
    host: Annotated[str, typer.Option("--host", help="Address to listen on, with --http.")] = "127.0.0.1",
    port: PortOption = 8765,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", help="A host name that clients use, with --http; repeat for more."),
    ] = None,
    workspace: WorkspaceOption = Path(),
) -> None:
    """Serve the library to agents over MCP, or write an Agent Skill.

    MCP is the Model Context Protocol: tools to search and read, and collections as resources. For other machines, use
    --host and a token in RAGISTRY_MCP_TOKEN.
    """
    if context.invoked_subcommand is not None:
        refuse_all_but(context, context.invoked_subcommand)
        return
    from ragistry.tools.search_library import SearchLibraryTool
    from ragistry.workspace import open_workspace

    refuse_without(context, "http", "host", "port", "name")
    names, over_http = name or [], load_door("MCP server")
    token = os.environ.get(over_http.TOKEN_VARIABLE) or None
    if http:
        over_http.check_exposure(host, token, names)
    with ExitStack() as stack:
        # Standard output is for messages only, and a technique of the workspace may print when it is loaded.
        with redirect_stdout(sys.stderr):
            opened = stack.enter_context(open_workspace(workspace, existing=True))
            tool = SearchLibraryTool(opened.library, allowed=collection or None, technique=technique)
        if not http:
            _serve_stdio(tool)
            return
        with listening_socket(host, port) as bound:
            server = over_http.http_server(tool, host, bound.getsockname()[1], token=token, names=names)
            error_line(f"{url_of(host, bound)}{over_http.PATH}", label="serving")
            exit_on_sigterm()
            server.run(sockets=[bound])


def _serve_stdio(tool: SearchLibraryTool) -> None:
    from ragistry.mcp.server import serve_stdio

    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else the parent process has set one
    if is_ours:
        # an exception would wait for the thread that reads standard input, which only the client can end
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    try:
        serve_stdio(tool)
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


@app.command()
def skill(
    target: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="Folder from which your agent reads skills, such as .agents/skills.",
            parser=given_path,
        ),
    ],
) -> None:
    """Write an Agent Skill: instructions to use Ragistry.

    They say how to search, answer with sources, and ingest documents. The file is FOLDER/ragistry/SKILL.md. Run the
    command again after an update of Ragistry. A file of this name that is not from Ragistry is never replaced.
    """
    path = target / "ragistry" / SKILL.name
    try:
        if path.exists() and MARK not in path.read_bytes():
            raise ConfigError(f"{str(path)!r} is not from Ragistry, so it was not replaced; move it away first")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(SKILL.read_bytes())
    except OSError as error:
        raise ConfigError(f"cannot write {str(path)!r}: {error.strerror}; name another folder") from error
    console().print(f"wrote {path}")
