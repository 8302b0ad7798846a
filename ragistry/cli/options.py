"""Options that several commands share.

``ragistry --workspace FOLDER COMMAND`` and ``RAGISTRY_WORKSPACE`` set the default of ``--workspace`` of the command.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ragistry.cli.completion import collection_names, technique_names
from ragistry.cli.flags import FlagsError


def path(given: str | Path) -> Path:
    """Parse a path of the command line. Refuses an empty one, which usually comes from an unset variable."""
    if not str(given).strip():
        raise FlagsError(f"the path {given!r} is empty; name a file or folder, '.' for the current folder")
    return Path(given)


class CollectionName(str):
    """The name of a collection. ``typed``: the text from which it was made."""

    typed: str


def collection_name(typed: str) -> CollectionName:
    """Parse the name of a collection. A text that cannot be one, such as "My Papers", becomes "my-papers"."""
    from ragistry.config.files import slug

    name = CollectionName(slug(typed))
    name.typed = typed
    return name


def display_name_of(name: str) -> str | None:
    """Return the display name of a new collection: the text as typed, if it differs from the name."""
    typed = getattr(name, "typed", name)
    return None if typed == name else typed


TechniqueOption = Annotated[
    str | None,
    typer.Option(
        "--technique", "-t", autocompletion=technique_names, help="Technique, by its name in techniques.yaml."
    ),
]


def collection_option(help: str, *names: str) -> Any:
    """Declare an option for the name of a collection. ``names``: of the option; by default ``--collection``, ``-c``."""
    names = names or ("--collection", "-c")
    return typer.Option(*names, autocompletion=collection_names, parser=collection_name, metavar="NAME", help=help)


CollectionOption = Annotated[str | None, collection_option("Search this collection only.")]
SourceCollectionOption = Annotated[str, collection_option("Collection of the source.")]
TopKOption = Annotated[int | None, typer.Option("--top-k", "-k", help="Number of passages, 1 to 1,000.")]
ResultOption = Annotated[
    int | None, typer.Option("--result", metavar="N", help="Print result N with all passages of its file, whole.")
]
WorkspaceOption = Annotated[
    Path,
    typer.Option(
        "--workspace", "-w", help="Folder of the workspace [RAGISTRY_WORKSPACE].", show_default=False, parser=path
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
