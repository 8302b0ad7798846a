"""``ragistry collections``: the named, described sets of sources that documents.yaml defines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragistry.cli.command import Output, command_group, on_any_folder, on_workspace
from ragistry.cli.confirm import YesOption, confirm
from ragistry.cli.options import collection_name, display_name_of
from ragistry.cli.output import error_line, print_table
from ragistry.utils.wording import numbered

if TYPE_CHECKING:
    from ragistry.workspace import Workspace

app = command_group("List, add, rename, describe and delete collections.")

Name = Annotated[str, typer.Argument(parser=collection_name, metavar="NAME", help="Name of the collection.")]
Description = Annotated[
    str | None, typer.Option("--description", "-d", help="What it contains; people and models choose by this.")
]
DisplayName = Annotated[str | None, typer.Option("--display-name", help="The display name.")]


@app.command("list")
@on_workspace()
def list_(opened: Workspace) -> Output:
    """List every collection with the number of its sources and chunks."""
    return all_collections(opened)


@app.command()
@on_any_folder()
def add(opened: Workspace, name: Name, description: Description = None, display_name: DisplayName = None) -> Output:
    """Add a collection to documents.yaml."""
    opened.library.create_collection(name, description or "", display_name or display_name_of(name))
    return _entry(opened, name, "added ")


@app.command()
@on_workspace()
def rename(
    opened: Workspace,
    name: Name,
    new_name: Annotated[str, typer.Argument(parser=collection_name, metavar="NEW_NAME", help="Its new name.")],
) -> Output:
    """Change the name of a collection; `describe --display-name` changes its display name."""
    chunks = opened.library.rename_collection(name, new_name)
    values = {"name": new_name, "formerly": name, "chunks": chunks}
    return Output(values, f"{name} is now {new_name} ({numbered(chunks, 'chunk[|s]')})")


@app.command()
@on_workspace()
def describe(
    opened: Workspace, name: Name, description: Description = None, display_name: DisplayName = None
) -> Output:
    """Change a collection's description or display name; without options, print them."""
    if description is not None or display_name is not None:
        opened.library.update_description(name, description, display_name=display_name)
    return _entry(opened, name)


@app.command()
@on_workspace()
def delete(opened: Workspace, name: Name, yes: YesOption = False) -> Output:
    """Delete a collection with all its chunks, also one that is no longer in documents.yaml."""
    library = opened.library
    orphans = sum(info.chunks for info in library.orphans() if info.collection == name)
    confirm(f"collection {name!r} with {numbered(orphans or library.count(name), 'chunk[|s]')}", yes)
    chunks = library.delete_collection(name)
    return Output({"name": name, "chunks": chunks}, f"deleted {name} ({numbered(chunks, 'chunk[|s]')})")


def all_collections(opened: Workspace) -> Output:
    """Return every collection with its counts. The text warns about sources without a collection."""
    from ragistry.library.unsearchable import unsearchable_line

    rows = opened.library.list_collections()

    def write() -> None:
        print_table(
            {"name": "name", "display name": "text", "sources": "number", "chunks": "number", "description": "text"},
            [(row["name"], row["display_name"], *_counts(row), row["description"]) for row in rows],
        )
        if line := unsearchable_line(opened.library.scope):
            error_line(line, label="note")
        for name, remedy in orphans(opened).items():
            error_line(f"{name!r}: {remedy}", label="orphaned")

    return Output({"collections": rows}, write)


def _counts(row: Mapping[str, Any]) -> tuple[str, str]:
    missing = f" ({row['unsearchable_count']:,} not searchable)" if row["unsearchable_count"] else ""
    return f"{row['source_count']:,}{missing}", f"{row['chunk_count']:,}"


def orphans(opened: Workspace) -> dict[str, str]:
    """Return a warning with the remedy for each collection that is in the store but not in documents.yaml."""
    stored: dict[str, list[int]] = {}
    for info in opened.library.orphans():
        stored.setdefault(info.collection, []).append(info.chunks)
    path = opened.library.collections.path
    return {
        name: f"{numbered(sum(chunks), 'chunk[|s]')} of {numbered(len(chunks), 'source[|s]')} in the store, but no "
        f"such collection in {path}, so they are not searched; `ragistry collections add {name}` restores it, "
        f"`ragistry collections delete {name}` removes the chunks, and `formerly: {name}` in the entry of another "
        "collection moves them there"
        for name, chunks in stored.items()
    }


def _entry(opened: Workspace, name: str, done: str = "") -> Output:
    entry: dict[str, Any] = opened.library.collections.entry(name).model_dump(exclude={"formerly"})
    entry["display_name"] = entry["display_name"] or name
    described = entry["description"] or "no description; add one with `ragistry collections describe`"
    return Output(entry, f"{done}{name} ({entry['display_name']}): {described}")
