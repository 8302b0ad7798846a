"""Build the function schema of ``search_library`` from the collections and the texts of documents.yaml.

With at most one collection, a model passes only a query. With more, it can also choose the collection, from an enum of
the names with their descriptions. ``strict`` is the format of OpenAI's strict mode: every argument is required,
optional ones can be null, and no others are accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ragistry.config.files import CollectionEntry
from ragistry.config.yaml_file import read_yaml
from ragistry.errors import InvalidConfigError
from ragistry.tools.search import GENERIC, QUERY, SEARCH_LIBRARY
from ragistry.utils.quoting import visible_line

ENUM_VALUES = 1_000
"""Maximum number of values of all enums in a strict schema, including null."""
ENUM_CHARACTERS, ENUM_VALUES_OF_ANY_LENGTH = 15_000, 250
"""Maximum characters of one enum with more values than this."""
ONE_DESCRIPTION_CHARACTERS = 1_000
"""Maximum length of the tool's description with one collection; some servers refuse more than 1,024."""
DESCRIPTION_CHARACTERS = 8_000
"""Maximum length of the description of ``collection``; a longer one costs too many tokens."""

SEVERAL = "Search the document library. Choose the collection that best matches your query."
"""Description of the tool with several collections."""


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
    schema = SEARCH_LIBRARY.schema()
    function, parameters = schema["function"], schema["function"]["parameters"]
    properties: dict[str, Any] = parameters["properties"]
    function["description"] = texts.description or describe_tool(collections)
    properties["query"]["description"] = texts.param_query or QUERY
    properties["collection"]["description"] = describe_collections(collections)
    names = [entry.name for entry in collections]
    if len(names) < 2:
        del properties["collection"]
    elif _fits_an_enum([*names, "null"] if strict else names):
        properties["collection"]["enum"] = names
    if strict:
        for one in (one for name, one in properties.items() if name != "query"):
            # A strict schema has no free objects, so an object is the text of its JSON.
            one["type"] = ["string" if one["type"] == "object" else one["type"], "null"]
            if "enum" in one:
                one["enum"] = [*one["enum"], None]
        function["strict"] = True
        parameters |= {"required": list(properties), "additionalProperties": False}
    return schema


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


def _fits_an_enum(values: Sequence[str]) -> bool:
    characters = sum(map(len, values))
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
