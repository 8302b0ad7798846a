"""``search_library``: the document library as a tool of a language model."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

from ragistry.errors import ConfigError
from ragistry.library.service import DocumentService
from ragistry.tools.bus import SCHEMA, Message, ToolBus, activity_subject, request_subject, result_subject
from ragistry.tools.reach import Reach
from ragistry.tools.schema import TextsFile, search_schema
from ragistry.tools.search import FEWEST_TOKENS, NAME, SEARCH_LIBRARY
from ragistry.tools.tool import ToolAnswer
from ragistry.types import SearchRequest
from ragistry.utils.limits import check_top_k
from ragistry.utils.wording import shown

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
        self._texts = TextsFile(library.collections.path)
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
