"""Build the function schema of ``search_library`` from the collections and the texts of documents.yaml.

With at most one collection, a model passes only a query. With more, it can also choose the collection, from an enum of
the names with their descriptions. ``strict`` is the format of OpenAI's strict mode: every argument is required,
optional ones can be null, and no others are accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, NamedTuple

from ragistry.config.files import CollectionEntry
from ragistry.config.yaml_file import read_yaml
from ragistry.errors import InvalidConfigError
from ragistry.types import SearchRequest
from ragistry.utils.dataclass_json import adapter_of
from ragistry.utils.quoting import visible_line

NAME = "search_library"
ENUM_VALUES = 1_000
"""Maximum number of values of all enums in a strict schema, including null."""
ENUM_CHARACTERS, ENUM_VALUES_OF_ANY_LENGTH = 15_000, 250
"""Maximum characters of one enum with more values than this."""
ONE_DESCRIPTION_CHARACTERS = 1_000
"""Maximum length of the tool's description with one collection; some servers refuse more than 1,024."""
DESCRIPTION_CHARACTERS = 8_000
"""Maximum length of the description of ``collection``; a longer one costs too many tokens."""

GENERIC = (
    "Searches the user's personal document knowledge base for relevant passages. Call this tool when the user asks "
    "about content from documents they have added to their knowledge base, or when a question is likely answered by "
    "their stored documents rather than general knowledge or the web."
)
"""Description of the tool without a collection, or with one that has no description."""

SEVERAL = "Search the document library. Choose the collection that best matches your query."
"""Description of the tool with several collections."""

QUERY = (
    "What to look for in the knowledge base. Words in double quotes are a phrase: a query of phrases alone returns "
    'only passages that hold all of them. -"word" leaves out passages with that word.'
)
MODEL_OPTIONS = tuple(one for one in fields(SearchRequest) if "model" in one.metadata)
"""Options that a language model may choose, besides the collection."""
FEWEST_TOKENS = 1_500
"""Minimum size of an answer."""
CURSOR = "Only to continue an answer that was cut: the cursor at its end, with all other arguments unchanged."


class Texts(NamedTuple):
    """Texts from documents.yaml that replace the built-in ones; None: not set."""

    description: str | None = None
    param_query: str | None = None


BUILT_IN = Texts()


class TextsFile:
    """``description`` and ``param_query`` of documents.yaml, read again only if the file changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._version: tuple[int, int, int] | None = None
        self._texts = BUILT_IN

    def texts(self) -> Texts:
        """Return the current texts of the file; the previous ones while it is invalid."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return BUILT_IN
        except OSError:
            return self._texts
        version = (status.st_ino, status.st_mtime_ns, status.st_size)
        if version != self._version:
            try:
                data = read_yaml(self.path).data
            except InvalidConfigError:
                return self._texts  # the reader of the collections reports the errors of the file
            self._version = version
            self._texts = Texts(*(_text(data.get(key)) for key in Texts._fields))
        return self._texts


def _text(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def search_schema(
    collections: Sequence[CollectionEntry], texts: Texts = BUILT_IN, *, strict: bool = False
) -> dict[str, Any]:
    """Build ``{"type": "function", "function": {name, description, parameters}}``."""
    properties: dict[str, Any] = {"query": {"type": "string", "description": texts.param_query or QUERY}}
    if len(collections) > 1:
        properties["collection"] = _collection(collections, strict)
    properties |= {one.name: _option(one, strict) for one in MODEL_OPTIONS}
    properties["max_tokens"] = {
        "type": ["integer", "null"] if strict else "integer",
        "minimum": FEWEST_TOKENS,
        "description": "Maximum tokens of the answer.",
    }
    properties["cursor"] = {"type": _optional(strict), "description": CURSOR}
    parameters: dict[str, Any] = {"type": "object", "properties": properties, "required": ["query"]}
    function: dict[str, Any] = {
        "name": NAME,
        "description": texts.description or describe_tool(collections),
        "parameters": parameters,
    }
    if strict:
        function["strict"] = True
        parameters |= {"required": list(properties), "additionalProperties": False}
    return {"type": "function", "function": function}


def describe_tool(collections: Sequence[CollectionEntry]) -> str:
    """Describe the tool, if documents.yaml has no description for it."""
    if len(collections) > 1:
        return SEVERAL
    if collections and collections[0].description.strip():
        [entry] = collections
        return visible_line(
            f"Search {entry.display_name or entry.name}: {entry.description}", ONE_DESCRIPTION_CHARACTERS
        )
    return GENERIC


def _option(one: Field[Any], strict: bool) -> dict[str, Any]:
    """Describe an option of a search. A strict schema has no free objects, so an object is the text of its JSON."""
    described = adapter_of(SearchRequest).json_schema()["properties"][one.name]
    described = described.get("anyOf", [described])[0]  # the other one is null
    schema = {key: described[key] for key in ("type", "enum", "minimum", "maximum") if key in described}
    if strict:
        schema["type"] = ["string" if schema["type"] == "object" else schema["type"], "null"]
    return schema | {"description": one.metadata["model"]}


def _optional(strict: bool) -> Any:
    return ["string", "null"] if strict else "string"


def _collection(collections: Sequence[CollectionEntry], strict: bool) -> dict[str, Any]:
    names: list[str | None] = [entry.name for entry in collections]
    values = [*names, None] if strict else names
    schema: dict[str, Any] = {"type": _optional(strict), "description": describe_collections(collections)}
    if _fits_an_enum(values):
        schema["enum"] = values
    return schema


def _fits_an_enum(values: Sequence[str | None]) -> bool:
    characters = sum(len(value or "null") for value in values)
    return len(values) <= ENUM_VALUES and (len(values) <= ENUM_VALUES_OF_ANY_LENGTH or characters <= ENUM_CHARACTERS)


def describe_collections(collections: Sequence[CollectionEntry], limit: int = DESCRIPTION_CHARACTERS) -> str:
    """Describe the collections, as ``"mba: textbooks on strategy; econ: research papers"``.

    If that is longer than ``limit`` characters, all descriptions are shortened; then only names are listed; then only
    the first names.
    """
    for length in (None, 200, 60):
        text = "; ".join(_entry(entry, length) for entry in collections)
        if len(text) <= limit:
            return text
    names = ", ".join(entry.name for entry in collections)
    if len(names) <= limit:
        return names
    first = names[: limit - 80].rsplit(", ", 1)[0]
    rest = len(collections) - first.count(", ") - 1
    return f"{first} and {rest} more; for an unknown name, the answer suggests the nearest ones"


def _entry(entry: CollectionEntry, length: int | None) -> str:
    text = " ".join((entry.description or entry.display_name or "").split())
    if length is not None:
        text = visible_line(text, length)
    return f"{entry.name}: {text}" if text else entry.name
