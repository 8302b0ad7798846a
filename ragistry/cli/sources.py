"""``ragistry sources``: the sources in the collections."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragistry.cli.confirm import YesOption, confirm
from ragistry.cli.flags import refuse_without
from ragistry.cli.options import (
    DebugOption,
    JsonOption,
    SourceCollectionOption,
    WorkspaceOption,
    collection_option,
    condition_of,
)
from ragistry.cli.output import console, print_json
from ragistry.cli.tables import print_table
from ragistry.utils.custom_metadata import listed_metadata, parse_assignments, shown_metadata
from ragistry.utils.wording import local_time, numbered

if TYPE_CHECKING:
    from ragistry.workspace import Workspace

app = typer.Typer(invoke_without_command=True)

Source = Annotated[str, typer.Argument(help="Name of the source in its collection.", metavar="FILE")]


@app.callback()
def sources(context: typer.Context) -> None:
    """List, change, move and delete sources."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


@app.command("list")
def list_(
    collection: Annotated[
        str | None,
        collection_option("List only this collection."),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Only sources of this name; * and ? allowed.")] = None,
    where: Annotated[
        str | None, typer.Option("--where", help="Only sources with these metadata, as JSON: '{\"year\": 2026}'.")
    ] = None,
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """List the sources of a collection, or of all."""
    from ragistry.tools.reach import Reach
    from ragistry.tools.sources import SourcesRequest, selected_sources
    from ragistry.workspace import open_workspace

    condition = None if where is None else condition_of(where)
    with open_workspace(workspace, existing=True) as opened:
        if name is None and condition is None:
            print_sources(opened, collection, as_json)
            return
        found = selected_sources(Reach(opened.library), SourcesRequest(name, collection, condition))
        print_sources(opened, collection, as_json, {(name, info.source_file) for name, info in found})


@app.command()
def move(
    context: typer.Context,
    source: Source,
    from_col: Annotated[
        str,
        collection_option("Collection of the source.", "--from"),
    ],
    to_col: Annotated[
        str,
        collection_option("The target collection.", "--to"),
    ],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a source of the same name, after asking.")
    ] = False,
    yes: YesOption = False,
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Move a source to another collection. Nothing is embedded again."""
    from ragistry.workspace import open_workspace

    refuse_without(context, "overwrite", "yes")
    with open_workspace(workspace, existing=True) as opened:
        library = opened.library
        library.source(source, from_col)
        for info in library.sources(to_col) if overwrite and from_col != to_col else ():
            if info.source_file == source:
                there = numbered(info.chunks, "chunk[|s]")
                confirm(f"source {source!r} of collection {to_col!r} with {there} for this one", yes)
        chunks = library.move_source(source, from_col, to_col, overwrite=overwrite)
    if as_json:
        print_json({"source": source, "from": from_col, "to": to_col, "chunks": chunks})
    else:
        console().print(f"moved {source} from {from_col} to {to_col} ({numbered(chunks, 'chunk[|s]')})")


@app.command("set")
def set_(
    source: Source,
    assignments: Annotated[
        list[str],
        typer.Argument(
            metavar="KEY=VALUE",
            help="Metadata to set: a number, true, false, a date or text; KEY:=JSON; KEY:=null removes a key.",
        ),
    ],
    collection: SourceCollectionOption,
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Change metadata of a source, without its file. Nothing is embedded again."""
    from ragistry.workspace import open_workspace

    metadata = parse_assignments(assignments)
    with open_workspace(workspace, existing=True) as opened:
        info = opened.library.set_metadata(source, collection, metadata)
    if as_json:
        print_json({"source": source, "collection": collection, "metadata": dict(info.metadata)})
    else:
        removed = [f"{key} removed" for key, value in metadata.items() if value is None]
        values = shown_metadata({key: value for key, value in metadata.items() if value is not None})
        console().print(f"set {', '.join(filter(None, [values, *removed]))} on {source} in {collection}")


@app.command()
def delete(
    source: Source,
    collection: SourceCollectionOption,
    yes: YesOption = False,
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Remove a source from a collection; the file itself is not touched."""
    from ragistry.workspace import open_workspace

    with open_workspace(workspace, existing=True) as opened:
        delete_source(opened, source, collection, yes, as_json)


def delete_source(opened: Workspace, source: str, collection: str, yes: bool, as_json: bool) -> None:
    """Ask, delete, and print what was deleted."""
    opened.library.source(source, collection)
    confirm(f"source {source!r} of collection {collection!r}", yes)
    chunks = opened.library.delete_source(source, collection)
    if as_json:
        print_json({"source": source, "collection": collection, "chunks": chunks})
    else:
        console().print(f"deleted {source} from {collection} ({numbered(chunks, 'chunk[|s]')})")


def print_sources(
    opened: Workspace, collection: str | None, as_json: bool, only: Collection[tuple[str, str]] | None = None
) -> None:
    """Print the sources of a collection, or of all, with their number of chunks and time of ingest.

    ``only``: leave out others than these, by collection and name.
    """
    from ragistry.library.service import source_row

    infos = [
        info
        for info in opened.library.sources(collection)
        if only is None or (info.collection, info.source_file) in only
    ]
    if as_json:
        print_json({"collection": collection, "sources": [source_row(info) for info in infos]})
        return
    print_table(
        {"collection": "name", "source": "name", "chunks": "number", "ingested": "text", "metadata": "text"},
        [
            (
                info.collection,
                info.source_file,
                f"{info.chunks:,}" + (f" ({info.waiting:,} without vectors)" if info.waiting else ""),
                local_time(info.ingested_at),
                shown_metadata(listed_metadata(info.metadata, info.set_keys)),
            )
            for info in infos
        ],
    )
