"""``search_library``: the document library as a tool of a language model.

Its schema is built from the collections and the texts of documents.yaml. With at most one collection, a model passes
only a query. With more, it can also choose the collection, from an enum of the names with their descriptions.
``strict`` is the format of OpenAI's strict mode: every argument is required, optional ones can be null, and no others
are accepted.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any, NamedTuple

from ragistry.config.collections import CollectionsFile
from ragistry.config.files import CollectionEntry
from ragistry.config.yaml_file import read_yaml
from ragistry.errors import ConfigError, InvalidConfigError
from ragistry.library.service import DocumentService
from ragistry.tools.bus import SCHEMA, Message, ToolBus, activity_subject, request_subject, result_subject
from ragistry.tools.reach import Reach
from ragistry.tools.search import FEWEST_TOKENS, GENERIC, NAME, QUERY, SEARCH_LIBRARY
from ragistry.tools.tool import ToolAnswer
from ragistry.types import SearchRequest
from ragistry.utils.limits import check_top_k
from ragistry.utils.quoting import visible_line
from ragistry.utils.wording import shown

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

    def __init__(self, file: CollectionsFile) -> None:
        self.file = file
        self._version: object = None
        self._texts = BUILT_IN

    def texts(self) -> Texts:
        """Return the current texts of the file; the previous ones while it is invalid."""
        try:
            version = self.file.version()
        except OSError:
            return self._texts
        if version is None:
            return BUILT_IN
        if version != self._version:
            try:
                data = read_yaml(self.file.path).data
            except InvalidConfigError:
                return self._texts  # the reader of the collections reports the errors of the file
            self._version = version
            values = (data.get(key) for key in Texts._fields)
            self._texts = Texts(*((one.strip() or None) if isinstance(one, str) else None for one in values))
        return self._texts


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
    values = [*names, "null"] if strict else names
    size, characters = len(values), len("".join(values))
    if len(names) < 2:
        del properties["collection"]
    elif size <= ENUM_VALUES and (size <= ENUM_VALUES_OF_ANY_LENGTH or characters <= ENUM_CHARACTERS):
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


def describe_collections(collections: Sequence[CollectionEntry]) -> str:
    """Describe the collections, as ``"mba: textbooks on strategy; econ: research papers"``.

    If that is longer than `DESCRIPTION_CHARACTERS`, all descriptions are shortened; then only names are listed; then
    only the first names.
    """
    for length in (None, 200, 60):
        parts = []
        for entry in collections:
            said = " ".join((entry.description or entry.display_name or "").split())
            said = said if length is None else visible_line(said, length)
            parts.append(f"{entry.name}: {said}" if said else entry.name)
        if len(text := "; ".join(parts)) <= DESCRIPTION_CHARACTERS:
            return text
    names = ", ".join(entry.name for entry in collections)
    if len(names) <= DESCRIPTION_CHARACTERS:
        return names
    first = names[: DESCRIPTION_CHARACTERS - 80].rsplit(", ", 1)[0]
    rest = len(collections) - first.count(", ") - 1
    return f"{first} and {rest} more; for an unknown name, the answer suggests the nearest ones"


_log = logging.getLogger(__name__)


class SearchLibraryTool:
    """Searches the collections of a library.

    Args:
        library: The library.
        bus: Bus on which the tool receives calls, answers them, and publishes its schema: now, after each edit of the
            collections by ``library``, and after other edits at the next call.
        allowed: Names of the collections in reach; None for all.
        technique: Name of a technique; None for the default of techniques.yaml.
        n: Number of documents of a search; None for that of the technique or documents.yaml.
        strict: Build the schema in the format of OpenAI's strict mode.
        max_tokens: Maximum size of an answer as `tokens.estimated_tokens` counts, 1,500 or more. A call may ask for
            less.

    Raises:
        CollectionNotFoundError: An allowed collection does not exist.
        UnknownTechniqueError: The technique does not exist.
        InvalidLimitError: ``n`` is invalid.
        ConfigError: Another argument is invalid.
    """

    name = NAME

    def __init__(
        self,
        library: DocumentService,
        bus: ToolBus | None = None,
        allowed: Sequence[str] | None = None,
        technique: str | None = None,
        *,
        n: int | None = None,
        strict: bool = False,
        max_tokens: int = 8_000,
    ) -> None:
        if not isinstance(max_tokens, int) or max_tokens < FEWEST_TOKENS:
            raise ConfigError(
                f"max_tokens must be a whole number, {FEWEST_TOKENS} or more, got {shown(max_tokens)}; 8000 is usual"
            )
        if technique is not None:
            library.registry.entry(technique)
        if n is not None:
            check_top_k(n)
        self.library = library
        self.reach = Reach(library, allowed, technique=technique, n=n, max_tokens=max_tokens)
        self.strict = strict
        self.bus = bus
        self._texts = TextsFile(library.collections)
        self._announced: dict[str, Any] | None = None
        self._unsubscribe = bus.subscribe(request_subject(NAME), self.handle_request) if bus else None
        self.announce()
        if bus is not None:
            library.collections.edited.append(self._follow)

    def schema(self) -> dict[str, Any]:
        """Build the function schema from the current documents.yaml."""
        return search_schema(self.reach.entries(), self._texts.texts(), strict=self.strict)

    def announce(self) -> bool:
        """Publish the schema if it changed since it was last published; return whether it was published."""
        schema = self.schema()
        if self.bus is None or schema == self._announced:
            return False
        self._announced = schema
        self.bus.publish(SCHEMA, schema)
        return True

    def close(self) -> None:
        """Stop receiving calls from the bus."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        if self._follow in self.library.collections.edited:
            self.library.collections.edited.remove(self._follow)

    def _follow(self) -> None:
        """Publish the schema after an edit; a failing bus must not fail the edit."""
        try:
            self.announce()
        except Exception:  # noqa: BLE001, a transport may raise anything
            _log.exception("%s cannot announce its schema", NAME)

    def handle(self, arguments: Mapping[str, Any] | str) -> str:
        """Answer a call with text. Never raises: errors are described to the model."""
        return self.answer(arguments).text

    def handle_request(self, message: Message) -> None:
        """Answer a call from the bus; publish the answer and the activity.

        The content of a message never makes it raise. A malformed message is answered with the id None.

        Raises:
            ConfigError: The tool has no bus. Errors of the bus pass through.
        """
        if self.bus is None:
            raise ConfigError("the tool has no bus to answer on; pass one: SearchLibraryTool(library, bus)")
        self.announce()
        start = perf_counter()
        request: Message = message if isinstance(message, Mapping) else {"arguments": message}
        answer = self.answer(request.get("arguments"))
        elapsed = (perf_counter() - start) * 1000
        of = {"id": request.get("id"), "name": NAME}
        self.bus.publish(result_subject(NAME), of | {"content": answer.text, "error": answer.error})
        asked = answer.request or SearchRequest("")
        search = {"query": asked.query, "collection": asked.collection}
        done = {"results": len(answer.documents), "error": answer.text if answer.error else "", "ms": elapsed}
        self.bus.publish(activity_subject(NAME), of | search | done)

    def answer(self, arguments: Any) -> ToolAnswer:
        """Answer a call; its arguments are a mapping or JSON. Never raises."""
        return SEARCH_LIBRARY.call(self.reach, arguments)
