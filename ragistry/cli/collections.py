"""``ragistry collections``: the named, described sets of sources that documents.yaml defines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragistry.cli.confirm import YesOption, confirm
from ragistry.cli.options import DebugOption, JsonOption, WorkspaceOption, collection_name, display_name_of
from ragistry.cli.output import console, error_line, print_json
from ragistry.cli.tables import print_table
from ragistry.utils.wording import numbered

if TYPE_CHECKING:
    from ragistry.workspace import Workspace

app = typer.Typer(invoke_without_command=True)

COUNTS = ("source_count", "chunk_count")
Name = Annotated[str, typer.Argument(parser=collection_name, metavar="NAME", help="Name of the collection.")]
Description = Annotated[
    str | None, typer.Option("--description", "-d", help="What it contains; people and models choose by this.")
]
DisplayName = Annotated[str | None, typer.Option("--display-name", help="The display name.")]


@app.callback()
def collections(context: typer.Context) -> None:
    """List, add, rename, describe and delete collections."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


@app.command("list")
def list_(
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """List every collection with the number of its sources and chunks."""
    from ragistry.workspace import open_workspace

    with open_workspace(workspace, existing=True) as opened:
        print_collections(opened, as_json)


@app.command()
def add(
    name: Name,
    description: Description = None,
    display_name: DisplayName = None,
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Add a collection to documents.yaml."""
    from ragistry.workspace import open_workspace

    with open_workspace(workspace) as opened:
        opened.library.create_collection(name, description or "", display_name or display_name_of(name))
        _print_entry(opened, name, as_json, "added ")


@app.command()
def rename(
    name: Name,
    new_name: Annotated[str, typer.Argument(parser=collection_name, metavar="NEW_NAME", help="Its new name.")],
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Change the name of a collection; `describe --display-name` changes its display name."""
    from ragistry.workspace import open_workspace

    with open_workspace(workspace, existing=True) as opened:
        chunks = opened.library.rename_collection(name, new_name)
    if as_json:
        print_json({"name": new_name, "formerly": name, "chunks": chunks})
    else:
        console().print(f"{name} is now {new_name} ({numbered(chunks, 'chunk[|s]')})")


@app.command()
def describe(
    name: Name,
    description: Description = None,
    display_name: DisplayName = None,
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Change a collection's description or display name; without options, print them."""
    from ragistry.workspace import open_workspace

    with open_workspace(workspace, existing=True) as opened:
        if description is not None or display_name is not None:
            opened.library.update_description(name, description, display_name=display_name)
        _print_entry(opened, name, as_json)


@app.command()
def delete(
    name: Name,
    yes: YesOption = False,
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Delete a collection with all its chunks, also one that is no longer in documents.yaml."""
    from ragistry.workspace import open_workspace

    with open_workspace(workspace, existing=True) as opened:
        library = opened.library
        orphans = sum(info.chunks for info in library.orphans() if info.collection == name)
        confirm(f"collection {name!r} with {numbered(orphans or library.count(name), 'chunk[|s]')}", yes)
        chunks = library.delete_collection(name)
    if as_json:
        print_json({"name": name, "chunks": chunks})
    else:
        console().print(f"deleted {name} ({numbered(chunks, 'chunk[|s]')})")


def print_collections(opened: Workspace, as_json: bool) -> None:
    """Print every collection with its counts, and warn about sources without a collection."""
    rows = opened.library.list_collections()
    if as_json:
        print_json({"collections": rows})
        return
    print_table(
        {"name": "name", "display name": "text", "sources": "number", "chunks": "number", "description": "text"},
        [
            (row["name"], row["display_name"], *(f"{row[count]:,}" for count in COUNTS), row["description"])
            for row in rows
        ],
    )
    for name, remedy in orphans(opened).items():
        error_line(f"{name!r}: {remedy}", label="orphaned")


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


def _print_entry(opened: Workspace, name: str, as_json: bool, done: str = "") -> None:
    entry: dict[str, Any] = opened.library.collections.entry(name).model_dump(exclude={"formerly"})
    entry["display_name"] = entry["display_name"] or name
    if as_json:
        print_json(entry)
    else:
        described = entry["description"] or "no description; add one with `ragistry collections describe`"
        console().print(f"{done}{name} ({entry['display_name']}): {described}")
