"""Options that several commands share.

``ragistry --workspace FOLDER COMMAND`` and ``RAGISTRY_WORKSPACE`` set the default of ``--workspace`` of the command.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from functools import partial
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from ragistry.cli.flags import FlagsError
from ragistry.errors import RagistryError
from ragistry.types import SearchRequest
from ragistry.utils.limits import check_top_k
from ragistry.utils.wording import shown


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


def read_json(name: str, typed: str) -> Any:
    """Parse the JSON of an option. Raises `FlagsError`."""
    try:
        return json.loads(typed)
    except (ValueError, RecursionError) as error:
        raise FlagsError(f"--{name} is not JSON: {shown(typed)} ({error}); write '{{\"page\": 3}}'") from error


def checked(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make a callback of an option that refuses what ``check`` refuses."""

    def callback(value: Any) -> Any:
        try:
            check(value)
        except RagistryError as error:
            raise FlagsError(str(error)) from error
        return value

    return callback


PARSED: dict[str, dict[str, Any]] = {
    "collection": {"parser": collection_name, "metavar": "NAME"},
    "where": {"parser": partial(read_json, "where"), "metavar": "WHERE"},
    "place": {"parser": partial(read_json, "place"), "metavar": "PLACE"},
    "top_k": {"callback": checked(lambda number: number is None or check_top_k(number, name="--top-k"))},
}
"""Arguments of the options whose values are checked or changed when they are read, by name."""


def collection_option(help: str, *names: str) -> Any:
    """Declare an option for the name of a collection. ``names``: of the option; by default ``--collection``, ``-c``."""
    return typer.Option(*(names or ("--collection", "-c")), **PARSED["collection"], help=help)


def field_option(field: Field[Any]) -> Any:
    """Declare the option, or the argument, for a field of a request."""
    about, name, more = field.metadata, field.name, dict(PARSED.get(field.name, {}))
    text: str = about["description"].replace(", JSON", "")
    if field.default is MISSING:
        return typer.Argument(help=text)
    if "examples" in about:
        text = f"{text[:-1]}, JSON: {json.dumps(about['examples'][0])}."
    if name == "top_k":  # its callback says more
        text = f"{text[:-1]}, {about['ge']:,} to {about['le']:,}."
    else:
        more |= {"min": about.get("ge"), "max": about.get("le")}
    short = [about["short"]] if "short" in about else []
    return typer.Option(f"--{name.replace('_', '-')}", *short, help=text, **more)


def field_options(request: type[Any], *hidden: str) -> dict[str, tuple[Any, Any]]:
    """Return the type and the default of an option for each field of a request."""
    kinds = get_type_hints(request) | dict.fromkeys(("technique", "where", "place"), str | None)
    return {
        one.name: (Annotated[kinds[one.name], field_option(one)], one.default)
        for one in fields(request)
        if one.name not in hidden
    }


SEARCH_OPTIONS = field_options(SearchRequest)


def parameters_of(command: Callable[..., Any]) -> dict[str, tuple[Any, Any]]:
    """Return the type and the default of each parameter; ``MISSING`` for no default."""
    kinds = get_type_hints(command, localns={"Workspace": Any}, include_extras=True)  # modules import it for types only
    return {
        name: (kinds[name], MISSING if one.default is Parameter.empty else one.default)
        for name, one in signature(command).parameters.items()
    }


def declare(command: Callable[..., Any], parameters: Mapping[str, tuple[Any, Any]]) -> Callable[..., Any]:
    """Declare the parameters of a command, each with its type and default, in the order of its help."""
    declared = [
        Parameter(
            name, Parameter.KEYWORD_ONLY, default=Parameter.empty if default is MISSING else default, annotation=kind
        )
        for name, (kind, default) in parameters.items()
    ]
    command.__signature__ = Signature(declared)  # type: ignore[attr-defined] # typer reads both
    command.__annotations__ = {name: kind for name, (kind, _) in parameters.items()}
    return command


TechniqueOption, TopKOption = (SEARCH_OPTIONS[name][0] for name in ("technique", "top_k"))
SourceCollectionOption = Annotated[str, collection_option("Collection of the source.")]
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
