"""``ragistry serve``: serve the library over HTTP; ``ragistry serve token``: create tokens for other machines.

    ragistry serve [--host 127.0.0.1] [--port 8000] [--ui] [--mcp] [--concurrency 16] [--queue 64] [--timeout 30]
                   [--upload-megabytes 500]
    ragistry serve token NAME [--rights read,write,admin] [--collections a,b] [--expires 2027-01-31]

The API is below ``/v1`` and described at ``/openapi.json``. ``/healthz``, ``/readyz`` and ``/metrics`` are at the root.
Hosts except loopback need a token in config/tokens.yaml.
"""

from __future__ import annotations

import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragistry.cli.listening import PortOption, listening_socket, url_host
from ragistry.cli.options import DebugOption, JsonOption, WorkspaceOption
from ragistry.cli.output import console, error_line, print_json

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from ragistry.workspace import Workspace

app = typer.Typer(invoke_without_command=True)


@app.callback()
def serve(
    context: typer.Context,
    host: Annotated[str, typer.Option("--host", help="Address to listen on; any except loopback needs a token.")] = (
        "127.0.0.1"
    ),
    port: PortOption = 8000,
    ui: Annotated[bool, typer.Option("--ui", help="Also serve the page, to this machine only.")] = False,
    mcp: Annotated[bool, typer.Option("--mcp", help="Also serve agents over MCP, at /mcp.")] = False,
    concurrency: Annotated[
        int, typer.Option("--concurrency", min=1, max=1_000, help="Number of concurrent searches.")
    ] = 16,
    queue: Annotated[
        int,
        typer.Option(
            "--queue", min=0, max=100_000, help="Number of waiting searches; further ones are answered with 503."
        ),
    ] = 64,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, max=3_600, help="Seconds for a search, including its wait.")
    ] = 30.0,
    upload_megabytes: Annotated[
        int,
        typer.Option("--upload-megabytes", min=1, max=100_000, help="Maximum size of one upload, all files together."),
    ] = 500,
    workspace: WorkspaceOption = Path(),
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Serve the library to programs over HTTP: search, routing, collections, ingest jobs, comparisons.

    While it runs, only this server can write to the workspace; other processes may read.
    """
    if context.invoked_subcommand is not None:
        return
    from ragistry.errors import ConfigError

    try:
        from ragistry.server.app import check_exposure, run
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("ragistry"):
            raise
        from ragistry.utils.installation import install_command

        raise ConfigError(f"the server needs {error.name!r}; run: {install_command('server')}") from error
    from ragistry.server.access import Tokens
    from ragistry.server.gate import ServerLimits
    from ragistry.workspace import open_workspace

    check_exposure(host, Tokens(workspace), ui=ui)
    limits = ServerLimits(concurrency, queue, timeout, upload_megabytes)

    def ready() -> None:
        address = f"http://{url_host(host)}:{listener.getsockname()[1]}"
        error_line(f"{address} (Ctrl+C stops it)", label="serving")

    # After the server has stopped, uvicorn raises the signal again, which by default would skip the cleanup.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with listening_socket(host, port) as listener, open_workspace(workspace, exclusive=True) as opened:
        run(opened, listener, host, limits, page=_page(opened) if ui else None, mcp=mcp, ready=ready)


def _page(workspace: Workspace) -> Starlette:
    from ragistry.web.app import mountable

    return mountable(workspace)


def _expiry(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a date; write 2027-01-31 or 2027-01-31T12:00+01:00") from error
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    if moment <= datetime.now(UTC):
        raise typer.BadParameter(f"{text!r} is in the past; give a later date")
    return moment


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


@app.command()
def token(
    name: Annotated[str, typer.Argument(help="Name of the token, of letters, digits, '_' and '-'.")],
    rights: Annotated[
        str, typer.Option("--rights", metavar="LIST", help="Rights: read, write, admin (which includes the others).")
    ] = "read",
    collections: Annotated[
        str | None, typer.Option("--collections", metavar="LIST", help="The collections it can reach [all].")
    ] = None,
    expires: Annotated[
        str | None, typer.Option("--expires", metavar="DATE", help="Expiry date, such as 2027-01-31 (UTC).")
    ] = None,
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Create a token, print its secret once, and write its hash to config/tokens.yaml.

    A running server accepts it at once. Delete its lines in the file to revoke it.
    """
    from ragistry.server.access import RIGHTS, Tokens
    from ragistry.workspace import open_workspace

    chosen = _words(rights)
    unknown = [word for word in chosen if word not in RIGHTS]
    if unknown or not chosen:
        raise typer.BadParameter(f"{rights!r} is not a list of rights; write some of {','.join(RIGHTS)}")
    moment = _expiry(expires)
    names = None if collections is None else _words(collections)
    with open_workspace(workspace) as opened:
        for collection in names or []:
            opened.library.collections.entry(collection)
        tokens = Tokens(opened.root)
        secret = tokens.add(name, chosen, names, moment)
    if as_json:
        print_json({"name": name, "secret": secret, "rights": chosen, "collections": names, "expires": expires})
        return
    console().print(secret)
    error_line(f"this secret is shown only now; {tokens.path} has its hash", label="note")
