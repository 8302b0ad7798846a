"""Options that several commands share.

``ragistry --workspace FOLDER COMMAND`` and ``RAGISTRY_WORKSPACE`` give the workspace of commands that name none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragistry.cli.completion import collection_names, technique_names
from ragistry.cli.flags import FlagsError


def path(given: str | Path) -> Path:
    """Reads a path from the command line; refuses an empty one, such as from an unset variable."""
    if not str(given).strip():
        raise FlagsError(f"the path {given!r} is empty; name a file or folder, '.' for the current folder")
    return Path(given)


class CollectionName(str):
    """The name of a collection; ``given``: as it was typed, to be shown where the collection is made."""

    given: str


def collection_name(typed: str) -> CollectionName:
    """Reads the name of a collection; of one that cannot be a name, such as "My Papers", the nearest: "my-papers"."""
    from ragistry.config.files import slug

    name = CollectionName(slug(typed))
    name.given = typed
    return name


def shown_name(name: str) -> str | None:
    """What to show of a collection that is made under this name: what was typed, where that is another."""
    given = getattr(name, "given", name)
    return None if given == name else given


TechniqueOption = Annotated[
    str | None, typer.Option("--technique", "-t", autocompletion=technique_names, help="A name of techniques.yaml.")
]
CollectionOption = Annotated[
    str | None,
    typer.Option(
        "--collection",
        "-c",
        autocompletion=collection_names,
        parser=collection_name,
        metavar="NAME",
        help="Search this collection only.",
    ),
]
TopKOption = Annotated[int | None, typer.Option("--top-k", "-k", help="How many passages, 1 to 1,000.")]
WorkspaceOption = Annotated[
    Path,
    typer.Option(
        "--workspace", "-w", help="Folder of the workspace [RAGISTRY_WORKSPACE].", show_default=False, parser=path
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
