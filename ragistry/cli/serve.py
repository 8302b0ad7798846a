"""``ragistry serve``: serve the library over HTTP; ``ragistry serve token``: create tokens for other machines.

    ragistry serve [--host 127.0.0.1] [--port 8000] [--ui] [--mcp] [--concurrency 16] [--queue 64] [--timeout 30]
                   [--upload-megabytes 2000]
    ragistry serve token NAME [--rights read,write,admin] [--collections a,b] [--expires 2027-01-31]

The API is below ``/v1`` and described at ``/openapi.json``. ``/healthz`` and ``/readyz`` are at the root.
Hosts except loopback need a token in config/tokens.yaml.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragistry.cli.command import Output, on_any_folder
from ragistry.cli.flags import refuse_all_but
from ragistry.cli.listening import PortOption, exit_on_sigterm, listening_socket, url_of
from ragistry.cli.options import WorkspaceOption, checked
from ragistry.cli.output import console, error_line
from ragistry.errors import ConfigError
from ragistry.plugins import load_door

if TYPE_CHECKING:
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
    ] = 2_000,
    workspace: WorkspaceOption = Path(),
) -> None:
    """Serve the library to programs over HTTP: search, routing, collections, ingest jobs, comparisons.

    While it runs, only this server can write to the workspace; other processes may read.
    """
    if context.invoked_subcommand is not None:
        refuse_all_but(context, context.invoked_subcommand)
        return
    server = load_door("server")
    from ragistry.server.access import Tokens
    from ragistry.server.gate import ServerLimits
    from ragistry.workspace import open_workspace

    server.check_exposure(host, Tokens(workspace), ui=ui)
    limits = ServerLimits(concurrency, queue, timeout, upload_megabytes)
    page = load_door("page").local_page if ui else None
    if mcp:
        load_door("MCP server")
    exit_on_sigterm()
    with listening_socket(host, port) as listener, open_workspace(workspace, exclusive=True) as opened:
        opened.store.count()  # opens the store, so that another server over it is detected now
        pages = None if page is None else partial(page, opened)
        app = server.create_app(opened, limits, exposed=host not in server.LOOPBACK, page=pages, mcp=mcp)

        def ready() -> None:
            error_line(f"{url_of(host, listener)} (Ctrl+C stops it)", label="serving")

        server.run(app, listener, ready=ready, has_page=ui)


def _expiry(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(f"{text!r} is not a date; write 2027-01-31 or 2027-01-31T12:00+01:00") from error
    moment = moment.replace(tzinfo=moment.tzinfo or UTC)
    if moment <= datetime.now(UTC):
        raise ConfigError(f"{text!r} is in the past; give a later date")
    return moment


def _rights(text: str) -> list[str]:
    from ragistry.server.access import RIGHTS

    chosen = _words(text)
    if not chosen or not set(chosen) <= set(RIGHTS):
        raise ConfigError(f"{text!r} is not a list of rights; write some of {','.join(RIGHTS)}")
    return chosen


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


@app.command()
@on_any_folder()
def token(
    opened: Workspace,
    name: Annotated[str, typer.Argument(help="Name of the token, of letters, digits, '_' and '-'.")],
    rights: Annotated[
        str,
        typer.Option(
            "--rights",
            metavar="LIST",
            help="Rights: read, write, admin (which includes the others).",
            callback=checked(_rights),
        ),
    ] = "read",
    collections: Annotated[
        str | None, typer.Option("--collections", metavar="LIST", help="The collections it can reach [all].")
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(
            "--expires", metavar="DATE", help="Expiry date, such as 2027-01-31 (UTC).", callback=checked(_expiry)
        ),
    ] = None,
) -> Output:
    """Create a token, print its secret once, and write its hash to config/tokens.yaml.

    A running server accepts it at once. Delete its lines in the file to revoke it.
    """
    from ragistry.server.access import Tokens

    chosen, names = _rights(rights), None if collections is None else _words(collections)
    for collection in names or []:
        opened.library.collections.entry(collection)
    tokens = Tokens(opened.root)
    secret = tokens.add(name, chosen, names, _expiry(expires))

    def write() -> None:
        console().print(secret)
        error_line(f"this secret is shown only now; {tokens.path} has its hash", label="note")

    values = {"name": name, "secret": secret, "rights": chosen, "collections": names, "expires": expires}
    return Output(values, write)
