"""``search_library``: the document library as a tool of a language model."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from ragistry.errors import ConfigError, InvalidFilterError
from ragistry.library.service import DocumentService
from ragistry.presentation import place_of
from ragistry.tools.arguments import SearchArguments, parse_arguments
from ragistry.tools.bus import SCHEMA, Message, ToolBus, activity_subject, request_subject, result_subject
from ragistry.tools.cursor import Position, fingerprint, read_cursor, write_cursor
from ragistry.tools.failures import CallError, failure_text, notes
from ragistry.tools.reach import Reach
from ragistry.tools.result_text import QUOTED, header, results_page
from ragistry.tools.schema import FEWEST_TOKENS, NAME, TextsFile, search_schema
from ragistry.types import Document, RetrievalResult, SearchRequest, Where
from ragistry.utils.limits import check_top_k
from ragistry.utils.wording import listed, shown

_log = logging.getLogger(__name__)

OVERHEAD = 800
"""Maximum tokens of an answer around its results."""
NO_ARGUMENTS = SearchArguments("")


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The answer of the tool.

    Attributes:
        text: Text for the model.
        asked: The arguments as they were parsed.
        documents: The documents quoted in the text.
        error: Whether the text is an error message.
        cursor: Cursor for the rest of the answer; empty at the end.
    """

    text: str
    asked: SearchArguments
    documents: tuple[Document, ...] = ()
    error: bool = False
    cursor: str = ""


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
        self.library = library
        self.reach = Reach(library, allowed)
        self.technique = technique
        self.n = None if n is None else check_top_k(n)
        self.strict = strict
        self.max_tokens = max_tokens
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
        search = {"query": answer.asked.query, "collection": answer.asked.collection}
        done = {"results": len(answer.documents), "error": answer.text if answer.error else "", "ms": elapsed}
        self.bus.publish(activity_subject(NAME), of | search | done)

    def answer(self, arguments: Any) -> SearchAnswer:
        """Answer a call; its arguments are a mapping or JSON. Never raises."""
        asked = NO_ARGUMENTS
        try:
            asked = parse_arguments(arguments, self.reach.names())
            return self._answer(asked)
        except Exception as error:  # noqa: BLE001, a user's technique may raise anything, and the model needs an answer
            return SearchAnswer(failure_text(error, NAME, limited=self.reach.limited), asked, error=True)

    def find(
        self,
        query: str,
        collection: str | None = None,
        where: Where | None = None,
        previous: str | None = None,
    ) -> RetrievalResult:
        """Search within the reach of the tool; see `run`."""
        return self.run(SearchRequest(query, collection=collection, where=where, previous=previous))

    def run(self, asked: SearchRequest) -> RetrievalResult:
        """Run a search within the reach of the tool, with its technique and number of documents.

        Without limits, a routing technique may also find documents outside of collections, such as a page of a
        repository.

        Raises:
            CallError: The collection is out of reach.
            BrokenCollectionsError: documents.yaml is invalid.
        """
        self.reach.check()
        collection = asked.collection
        if collection is not None and collection not in self.reach.names():
            raise CallError(f"no collection {collection!r}; use {listed(self.reach.names())}")
        # The library refuses documents that violate the condition, so they need not be filtered here.
        limits = [one for one in (None if collection else self.reach.where(), asked.where) if one is not None]
        condition = {"$and": limits} if limits else None
        return self.library.run_search(replace(asked, technique=self.technique, top_k=self.n, where=condition))

    def find_in_collections(self, query: str, previous: str | None = None) -> list[Document]:
        """Search all collections in reach, without documents outside of collections."""
        found = self.find(query, previous=previous).documents
        if all(map(self.reach.holds, found)):
            return found
        where = {"collection": {"$in": self.reach.stored_names()}}
        return self.library.search(
            query, None, self.n, technique=self.technique, where=where, previous=previous
        ).documents

    def _answer(self, asked: SearchArguments) -> SearchAnswer:
        title = header(asked.query, asked.collection)
        try:
            found = self.run(asked)
        except InvalidFilterError as error:  # names only keys and types within the reach
            raise CallError(f"where: {error}") from error
        documents, note = found.documents, notes(found.degraded, NAME, limited=self.reach.limited)
        if not documents:
            return SearchAnswer(f"{title}\n\n{note}{self._no_results(asked.collection)}", asked)
        mark = fingerprint(asked.query, asked.collection, documents, asked.where)
        start = read_cursor(asked.cursor, mark, documents) if asked.cursor else Position()
        labelled = asked.collection is None and len(self.reach.entries()) > 1
        places = [place_of(document, asked.query, self.library.reading.language) for document in documents]
        page = results_page(
            documents,
            start,
            min(asked.max_tokens or self.max_tokens, self.max_tokens) - OVERHEAD,
            places,
            labelled=labelled,
        )
        text = f"{title}\n\n{note}{page.text}\n\n{QUOTED}"
        if page.next is None:
            return SearchAnswer(text, asked, page.documents)
        cursor = write_cursor(page.next, mark)
        text += (
            f"\n[Cut at result {page.next.rank + 1} of {len(documents)}. To continue, call {NAME} again with the same "
            f'arguments and cursor "{cursor}".]'
        )
        return SearchAnswer(text, asked, page.documents, cursor=cursor)

    def _no_results(self, collection: str | None) -> str:
        """Explain why nothing was found."""
        if self.reach.limited and not self.reach.names():
            _log.warning(
                "%s is limited to %s, and none of these collections exists", NAME, listed(self.reach.allowed or ())
            )
            return (
                "No collection can be searched here: the collections were removed. Tell the user; do not search again."
            )
        if self.reach.sources(collection):
            return "No passage matches. Try other words."
        if collection is not None:
            return f'The collection "{collection}" is empty: no documents have been added to it yet.'
        return "The knowledge base is empty: no documents have been added yet. Tell the user; do not search again."
