"""The function schema of ``search_library``, made of the collections that there are.

None or one: a query is all that a model can give. Two or more: the collection too, by an enum of the names, each with
its description. ``strict`` is the form of OpenAI's strict mode: every argument is required, one that may be left out
can be null, and nothing else is accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragistry.config.files import CollectionEntry
from ragistry.tools.texts import BUILT_IN, CURSOR, GENERIC, QUERY, SEVERAL, Texts
from ragistry.utils.quoting import one_line

NAME = "search_library"
ENUM_VALUES = 1_000
"""Values of all enums of a strict schema at most, null included."""
ENUM_CHARACTERS, ENUM_VALUES_OF_ANY_LENGTH = 15_000, 250
"""Characters of one enum at most where it has more values than this."""
ONE_DESCRIPTION_CHARACTERS = 1_000
"""How long that of the tool may become where there is one collection; some servers refuse more than 1,024."""
DESCRIPTION_CHARACTERS = 8_000
"""How long the description of the parameter ``collection`` may become; what is longer costs a model too much."""


def search_schema(
    collections: Sequence[CollectionEntry], texts: Texts = BUILT_IN, *, strict: bool = False
) -> dict[str, Any]:
    """``{"type": "function", "function": {name, description, parameters}}``."""
    properties: dict[str, Any] = {"query": {"type": "string", "description": texts.param_query or QUERY}}
    if len(collections) > 1:
        properties["collection"] = _collection(collections, strict)
    properties["cursor"] = {"type": _optional(strict), "description": CURSOR}
    parameters: dict[str, Any] = {"type": "object", "properties": properties, "required": ["query"]}
    function: dict[str, Any] = {
        "name": NAME,
        "description": texts.description or describe(collections),
        "parameters": parameters,
    }
    if strict:
        function["strict"] = True
        parameters |= {"required": list(properties), "additionalProperties": False}
    return {"type": "function", "function": function}


def describe(collections: Sequence[CollectionEntry]) -> str:
    """What the tool is said to do where documents.yaml has no words of its own for it."""
    if len(collections) > 1:
        return SEVERAL
    if collections and collections[0].description.strip():
        [entry] = collections
        return one_line(f"Search {entry.display_name or entry.name}: {entry.description}", ONE_DESCRIPTION_CHARACTERS)
    return GENERIC


def _optional(strict: bool) -> Any:
    return ["string", "null"] if strict else "string"


def _collection(collections: Sequence[CollectionEntry], strict: bool) -> dict[str, Any]:
    names: list[str | None] = [entry.name for entry in collections]
    values = [*names, None] if strict else names
    schema: dict[str, Any] = {"type": _optional(strict), "description": described(collections)}
    if _fits_an_enum(values):
        schema["enum"] = values
    return schema


def _fits_an_enum(values: Sequence[str | None]) -> bool:
    characters = sum(len(value or "null") for value in values)
    return len(values) <= ENUM_VALUES and (len(values) <= ENUM_VALUES_OF_ANY_LENGTH or characters <= ENUM_CHARACTERS)


def described(collections: Sequence[CollectionEntry], limit: int = DESCRIPTION_CHARACTERS) -> str:
    """``"mba: textbooks on strategy; econ: research papers"``, in ``limit`` characters.

    Too many for that: each description is shortened alike, then only names are given, then only the first of them.
    """
    for length in (None, 200, 60):
        text = "; ".join(_entry(entry, length) for entry in collections)
        if len(text) <= limit:
            return text
    names = ", ".join(entry.name for entry in collections)
    if len(names) <= limit:
        return names
    shown = names[: limit - 80].rsplit(", ", 1)[0]
    rest = len(collections) - shown.count(", ") - 1
    return f"{shown} and {rest} more; a name that does not exist is answered with the nearest ones"


def _entry(entry: CollectionEntry, length: int | None) -> str:
    text = " ".join((entry.description or entry.display_name or "").split())
    if length is not None:
        text = one_line(text, length)
    return f"{entry.name}: {text}" if text else entry.name
