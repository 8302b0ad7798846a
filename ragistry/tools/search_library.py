"""``search_library``: the document library as a tool of a language model."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from ragistry.errors import ConfigError
from ragistry.library.service import DocumentService
from ragistry.tools.arguments import SearchArguments, parse_arguments
from ragistry.tools.bus import SCHEMA, Message, ToolBus, activity_subject, request_subject, result_subject
from ragistry.tools.cursor import Position, fingerprint, read_cursor, write_cursor
from ragistry.tools.failures import CallError, failure_text, notes
from ragistry.tools.reach import Reach
from ragistry.tools.result_text import QUOTED, header, results_page
from ragistry.tools.schema import NAME, search_schema
from ragistry.tools.texts import TextsFile
from ragistry.types import Document, RetrievalResult
from ragistry.utils.limits import check_top_k
from ragistry.utils.wording import listed, shown

_log = logging.getLogger(__name__)

FEWEST_TOKENS = 1_500
ROUND_ABOUT = 800
"""Tokens of an answer at most that are not of its results."""
NOTHING = SearchArguments("")


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """What the tool answers: ``text`` for the model, and the documents that are quoted in it.

    ``asked``: the arguments, as they were understood. ``error``: the text says what was wrong with the call.
    ``cursor``: how to go on; empty where nothing is left.
    """

    text: str
    asked: SearchArguments
    documents: tuple[Document, ...] = ()
    error: bool = False
    cursor: str = ""


class SearchLibraryTool:
    """Searches the collections of a library, or those of them that are ``allowed``.

    ``bus``: calls are taken from it and answered on it, and the schema is announced there now, after each edit of the
    collections by ``library``, and, where others edited them, at the next call.
    ``technique``: of techniques.yaml; None: its default. ``n``: how many documents a search finds; None: what the
    technique or documents.yaml says. ``strict``: the schema in the form of OpenAI's strict mode. ``max_tokens``: of one
    answer, as `tokens.estimated_tokens` counts; 1,500 or more.

    Raises `CollectionNotFoundError`, `UnknownTechniqueError`, `InvalidLimitError`, `ConfigError`.
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
                f"max_tokens must be a whole number, {FEWEST_TOKENS} or more, got {shown(max_tokens)}; give 8000, say"
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
        """The function schema as documents.yaml now has it."""
        return search_schema(self.reach.entries(), self._texts.texts(), strict=self.strict)

    def announce(self) -> bool:
        """Publish the schema where it is not the one that was published last, and say whether it was."""
        schema = self.schema()
        if self.bus is None or schema == self._announced:
            return False
        self._announced = schema
        self.bus.publish(SCHEMA, schema)
        return True

    def close(self) -> None:
        """Take no more calls from the bus."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        if self._follow in self.library.collections.edited:
            self.library.collections.edited.remove(self._follow)

    def _follow(self) -> None:
        """The edit is done, and whoever made it has nothing to do with a bus that fails."""
        try:
            self.announce()
        except Exception:  # noqa: BLE001, a transport may raise anything
            _log.exception("%s cannot announce its schema", NAME)

    def handle(self, arguments: Mapping[str, Any] | str) -> str:
        """The answer to a call, as text. Never raises: what goes wrong is told to the model."""
        return self.answer(arguments).text

    def handle_request(self, message: Message) -> None:
        """A call that came over the bus: the answer, and what was done, are published.

        Nothing in a message makes it raise, and what is no message is answered too, to the id None. Raises
        `ConfigError` where the tool has no bus, and what a bus raises that cannot publish.
        """
        if self.bus is None:
            raise ConfigError("the tool has no bus to answer on; give it one: SearchLibraryTool(library, bus)")
        self.announce()
        start = perf_counter()
        request: Message = message if isinstance(message, Mapping) else {"arguments": message}
        answer = self.answer(request.get("arguments"))
        elapsed = (perf_counter() - start) * 1000
        of = {"id": request.get("id"), "name": NAME}
        self.bus.publish(result_subject(NAME), of | {"content": answer.text, "error": answer.error})
        asked = {"query": answer.asked.query, "collection": answer.asked.collection}
        done = {"results": len(answer.documents), "error": answer.text if answer.error else "", "ms": elapsed}
        self.bus.publish(activity_subject(NAME), of | asked | done)

    def answer(self, arguments: Any) -> SearchAnswer:
        """The answer to a call whose arguments are a mapping or its JSON. Never raises."""
        asked = NOTHING
        try:
            asked = parse_arguments(arguments, self.reach.names())
            return self._answer(asked)
        except Exception as error:  # noqa: BLE001, a technique of the user's may raise anything, and a model waits
            return SearchAnswer(failure_text(error, NAME, limited=self.reach.limited), asked, error=True)

    def find(self, query: str, collection: str | None = None) -> RetrievalResult:
        """What a search in reach of the tool finds. ``collection``: one of `Reach.names`, else `CallError`.

        Where ``allowed`` limits nothing, a technique that routes may also find what lies in no collection, such as
        a page of a repository. Raises `BrokenCollectionsError` while documents.yaml is broken.
        """
        self.reach.check()
        if collection is not None and collection not in self.reach.names():
            raise CallError(f"no collection {collection!r}; there are {listed(self.reach.names())}")
        # The library refuses what a technique returns against the condition, so nothing needs to be sorted out here.
        where = None if collection else self.reach.where()
        return self.library.search(query, collection, self.n, technique=self.technique, where=where)

    def find_in_collections(self, query: str) -> list[Document]:
        """The same of all collections, and only what `Reach.holds`."""
        found = self.find(query).documents
        if all(map(self.reach.holds, found)):
            return found
        where = {"collection": {"$in": self.reach.stored_names()}}
        return self.library.search(query, None, self.n, technique=self.technique, where=where).documents

    def _answer(self, asked: SearchArguments) -> SearchAnswer:
        title = header(asked.query, asked.collection)
        found = self.find(asked.query, asked.collection)
        documents, told = found.documents, notes(found.degraded, NAME, limited=self.reach.limited)
        if not documents:
            return SearchAnswer(f"{title}\n\n{told}{self._nothing(asked.collection)}", asked)
        mark = fingerprint(asked.query, asked.collection, documents)
        start = read_cursor(asked.cursor, mark, documents) if asked.cursor else Position()
        labelled = asked.collection is None and len(self.reach.entries()) > 1
        page = results_page(documents, start, self.max_tokens - ROUND_ABOUT, labelled=labelled)
        text = f"{title}\n\n{told}{page.text}\n\n{QUOTED}"
        if page.next is None:
            return SearchAnswer(text, asked, page.shown)
        cursor = write_cursor(page.next, mark)
        text += (
            f"\n[Cut at result {page.next.rank + 1} of {len(documents)}. To go on, call {NAME} again with the same "
            f'arguments and cursor "{cursor}".]'
        )
        return SearchAnswer(text, asked, page.shown, cursor=cursor)

    def _nothing(self, collection: str | None) -> str:
        """Why nothing was found."""
        if self.reach.limited and not self.reach.names():
            _log.warning("%s is limited to %s, and nothing of that is there", NAME, listed(self.reach.allowed or ()))
            return "No collection can be searched here: those that there were are gone. Tell the user; search no more."
        if self.reach.sources(collection):
            return "No passage matches. Try other words."
        if collection is not None:
            return f'The collection "{collection}" is empty: no documents have been added to it yet.'
        return "The knowledge base is empty: no documents have been added yet. Tell the user; do not search again."
