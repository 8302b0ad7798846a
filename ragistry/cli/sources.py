"""``ragistry sources``: the sources in the collections."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragistry.cli.command import Output, command_group, on_workspace
from ragistry.cli.confirm import YesOption, confirm
from ragistry.cli.flags import refuse_together, refuse_without
from ragistry.cli.options import PARSED, SourceCollectionOption, checked, collection_option
from ragistry.cli.output import Kind, console, error_line, print_table
from ragistry.utils.dataclass_json import to_json
from ragistry.utils.metadata import listed_metadata, parse_assignments, shown_metadata
from ragistry.utils.wording import local_time, numbered

if TYPE_CHECKING:
    from ragistry.workspace import Workspace

PAGE = 1_000
"""Number of rows of a table."""
app = command_group("List, change, move and delete sources.")

Source = Annotated[str, typer.Argument(help="Name of the source in its collection.", metavar="FILE")]


@app.command("list")
@on_workspace((refuse_together, "unsearchable", "name", "where"))
def list_(
    opened: Workspace,
    collection: Annotated[
        str | None,
        collection_option("List only this collection."),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Only sources of this name; * and ? allowed.")] = None,
    where: Annotated[
        Any,
        typer.Option(
            "--where", help="Only sources with these metadata, as JSON: '{\"year\": 2026}'.", **PARSED["where"]
        ),
    ] = None,
    unsearchable: Annotated[
        bool, typer.Option("--unsearchable", help="List the files that are not searchable, with the reason.")
    ] = False,
) -> Output:
    """List the sources of a collection, or of all."""
    if unsearchable:
        return listed_unsearchable(opened, collection)
    from ragistry.tools.reach import Reach
    from ragistry.tools.sources import SourcesRequest, selected_sources

    if name is None and where is None:
        return listed_sources(opened, collection)
    found = selected_sources(Reach(opened.library), SourcesRequest(name, collection, where))
    return listed_sources(opened, collection, {(name, info.source_file) for name, info in found})


@app.command()
@on_workspace((refuse_without, "overwrite", "yes"))
def move(
    opened: Workspace,
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
) -> Output:
    """Move a source to another collection. Nothing is embedded again."""
    library = opened.library
    library.source(source, from_col)
    for info in library.sources(to_col) if overwrite and from_col != to_col else ():
        if info.source_file == source:
            there = numbered(info.chunks, "chunk[|s]")
            confirm(f"source {source!r} of collection {to_col!r} with {there} for this one", yes)
    chunks = library.move_source(source, from_col, to_col, overwrite=overwrite)
    values = {"source": source, "from": from_col, "to": to_col, "chunks": chunks}
    return Output(values, f"moved {source} from {from_col} to {to_col} ({numbered(chunks, 'chunk[|s]')})")


@app.command("set")
@on_workspace()
def set_(
    opened: Workspace,
    source: Source,
    assignments: Annotated[
        list[str],
        typer.Argument(
            metavar="KEY=VALUE",
            help="Metadata to set: a number, true, false, a date or text; KEY:=JSON; KEY:=null removes a key.",
            callback=checked(parse_assignments),
        ),
    ],
    collection: SourceCollectionOption,
) -> Output:
    """Change metadata of a source, without its file. Nothing is embedded again."""
    metadata = parse_assignments(assignments)
    info = opened.library.set_metadata(source, collection, metadata)
    removed = [f"{key} removed" for key, value in metadata.items() if value is None]
    given = shown_metadata({key: value for key, value in metadata.items() if value is not None})
    return Output(
        {"source": source, "collection": collection, "metadata": dict(info.metadata)},
        f"set {', '.join(filter(None, [given, *removed]))} on {source} in {collection}",
    )


@app.command()
@on_workspace()
def delete(
    opened: Workspace,
    source: Source,
    collection: SourceCollectionOption,
    yes: YesOption = False,
) -> Output:
    """Remove a source from a collection; the file itself is not touched."""
    return delete_source(opened, source, collection, yes)


def delete_source(opened: Workspace, source: str, collection: str, yes: bool) -> Output:
    """Ask, and delete."""
    from ragistry.library.unsearchable import entries_named

    if not entries_named(opened.library.scope, source, collection):
        opened.library.source(source, collection)
    confirm(f"source {source!r} of collection {collection!r}", yes)
    chunks = opened.library.delete_source(source, collection)
    values = {"source": source, "collection": collection, "chunks": chunks}
    return Output(values, f"deleted {source} from {collection} ({numbered(chunks, 'chunk[|s]')})")


def listed_sources(
    opened: Workspace, collection: str | None, only: Collection[tuple[str, str]] | None = None
) -> Output:
    """Return the sources of a collection, or of all, with their number of chunks and time of ingest.

    ``only``: leave out others than these, by collection and name.
    """
    from ragistry.library.service import source_row
    from ragistry.library.unsearchable import unsearchable_line

    infos = [
        info
        for info in opened.library.sources(collection)
        if only is None or (info.collection, info.source_file) in only
    ]
    columns: dict[str, Kind] = {
        "collection": "name", "source": "name", "chunks": "number", "ingested": "text", "metadata": "text",
    }  # fmt: skip
    rows = [
        (
            info.collection,
            info.source_file,
            f"{info.chunks:,}" + (f" ({info.waiting:,} without vectors)" if info.waiting else ""),
            local_time(info.ingested_at),
            shown_metadata(listed_metadata(info.metadata, info.set_keys)),
        )
        for info in infos
    ]
    keeps = only is None and "unsearchable" in opened.store.abilities

    def values() -> dict[str, Any]:
        found: dict[str, Any] = {"collection": collection, "sources": [source_row(info) for info in infos]}
        missing = {"unsearchable": list(map(to_json, opened.library.unsearchable(collection)))} if keeps else {}
        return found | missing

    def write() -> None:
        print_table(columns, rows)
        if keeps and (line := unsearchable_line(opened.library.scope, collection)):
            error_line(line, label="note")

    return Output(values, write)


def listed_unsearchable(opened: Workspace, collection: str | None) -> Output:
    """Return the files that are not searchable, and the numbers of files that were left out of folders."""
    from ragistry.library.ingest.report import folder_line

    files, folders = opened.library.unsearchable(collection), opened.library.ingested_folders(collection)
    columns: dict[str, Kind] = {"collection": "name", "file": "name", "reason": "text"}

    def write() -> None:
        lines = ["every ingested file is searchable"]
        while page := list(islice(files, PAGE)):
            print_table(columns, [(one.collection, one.source_file, f"{one.kind}: {one.reason}") for one in page])
            lines = []
        for line in [*lines, *map(folder_line, folders)]:
            console().print(line)

    def values() -> dict[str, Any]:
        rows = [to_json(one) for one in files]
        return {"collection": collection, "unsearchable": rows, "folders": [to_json(one) for one in folders]}

    return Output(values, write)
