"""The tool ``search_library``: search the library, and quote whole passages."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ragistry.errors import EmptyQueryError, InvalidFilterError
from ragistry.presentation import place_of
from ragistry.tools.cursor import mark_of, read_cursor, write_cursor
from ragistry.tools.failures import CallError, notes
from ragistry.tools.fetch import title_of
from ragistry.tools.reach import Reach
from ragistry.tools.result_text import QUOTED, Position, header, results_page
from ragistry.tools.tool import Tool
from ragistry.types import Document, RetrievalResult, SearchRequest
from ragistry.utils.limits import check_query
from ragistry.utils.wording import listed, no_passage

_log = logging.getLogger(__name__)

NAME = "search_library"
QUERY_CHARACTERS = 10_000
FEWEST_TOKENS = 1_500
"""Minimum size of an answer."""
OVERHEAD = 800
"""Maximum tokens of an answer around its results."""
QUERY = (
    "What to look for in the knowledge base. Words in double quotes are a phrase: a query of phrases alone returns "
    'only passages that hold all of them. -"word" leaves out passages with that word.'
)
GENERIC = (
    "Searches the user's personal document knowledge base for relevant passages. Call this tool when the user asks "
    "about content from documents they have added to their knowledge base, or when a question is likely answered by "
    "their stored documents rather than general knowledge or the web."
)
"""Description of the tool without a collection, or with one that has no description."""


@dataclass(frozen=True, slots=True)
class SearchArguments(SearchRequest):
    """A search by a model.

    Attributes:
        max_tokens: Maximum size of the answer; None for that of the tool.
        cursor: Where to continue an answer that was cut.
    """

    query: str = field(metadata={"model": QUERY, "max_length": QUERY_CHARACTERS})
    max_tokens: int | None = field(
        default=None, metadata={"description": "Maximum tokens of the answer.", "ge": FEWEST_TOKENS}
    )
    cursor: str | None = field(
        default=None,
        metadata={
            "description": "Only to continue an answer that was cut: the cursor at its end, with all other arguments "
            "unchanged."
        },
    )


@dataclass(frozen=True, slots=True)
class QuotedPassage:
    """A passage that ``search_library`` quotes."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class QuotedPassages:
    """The answer of the tool ``search_library``; ``cursor`` continues it, and is empty at the end."""

    results: list[QuotedPassage]
    cursor: str


class SearchPage(NamedTuple):
    """The text of an answer, the documents that it quotes, and the cursor that continues it."""

    text: str
    documents: Sequence[Document] = ()
    cursor: str = ""


def found_within(reach: Reach, asked: SearchRequest) -> RetrievalResult:
    """Run a search within a reach, with its technique and number of documents.

    Without limits, a routing technique may also find documents outside of collections, such as a page of a repository.

    Raises:
        CallError: The query is empty, the condition is invalid, or the collection is out of reach.
        BrokenCollectionsError: documents.yaml is invalid.
    """
    try:
        check_query(asked.query)
    except EmptyQueryError as error:
        raise CallError(str(error)) from error
    reach.check_collection(asked.collection)
    # The library refuses documents that violate the condition, so they need not be filtered here.
    limits = [one for one in (None if asked.collection else reach.where(), asked.where) if one]
    where = {"$and": limits} if limits else None
    try:
        return reach.library.run_search(replace(asked, technique=reach.technique, top_k=reach.n, where=where))
    except InvalidFilterError as error:  # names only keys and types within the reach
        raise CallError(f'where: {error}; write a condition such as {{"page": {{"$gte": 3}}}}') from error


def search(reach: Reach, asked: SearchArguments) -> SearchPage:
    """Search. Raises `CallError`."""
    title = header(asked.query, asked.collection)
    found = found_within(reach, asked)
    documents, note = found.documents, notes(found.degraded, NAME, limited=reach.limited)
    if line := no_passage(found.unknown_words):
        note += f"[Note: {line}]\n\n"
    texts = [(one.id, one.content) for one in documents]
    mark = mark_of(asked.query, asked.collection, asked.where, texts)
    start = read_cursor(asked.cursor, Position, mark)
    if not documents:
        return SearchPage(f"{title}\n\n{note}{_no_results(reach, asked.collection)}")
    page = results_page(
        documents,
        start,
        min(asked.max_tokens or reach.max_tokens, reach.max_tokens) - OVERHEAD,
        [place_of(document, asked.query, reach.library.reading.language) for document in documents],
        labelled=asked.collection is None and len(reach.entries()) > 1,
    )
    text, cursor = f"{title}\n\n{note}{page.text}\n\n{QUOTED}", ""
    if page.next is not None:
        cursor = write_cursor(page.next, mark)
        text += (
            f"\n[Cut at result {page.next.rank + 1} of {len(documents)}. To continue, call {NAME} again with the same "
            f'arguments and cursor "{cursor}".]'
        )
    return SearchPage(text, page.documents, cursor)


def _quoted(page: SearchPage) -> QuotedPassages:
    return QuotedPassages([QuotedPassage(one.id, title_of(one), one.content) for one in page.documents], page.cursor)


def _no_results(reach: Reach, collection: str | None) -> str:
    """Explain why nothing was found."""
    if reach.limited and not reach.names():
        _log.warning("%s is limited to %s, and none of these collections exists", NAME, listed(reach.allowed or ()))
        return "No collection can be searched here: the collections were removed. Tell the user; do not search again."
    if reach.sources(collection):
        return "No passage matches. Try other words."
    if collection is not None:
        return f'The collection "{collection}" is empty: no documents have been added to it yet.'
    return "The knowledge base is empty: no documents have been added yet. Tell the user; do not search again."


SEARCH_LIBRARY = Tool(
    NAME,
    "Search the library",
    GENERIC,
    SearchArguments,
    QuotedPassages,
    search,
    lambda page: page.text,
    ("query", "collection", "where", "previous", "max_tokens", "cursor"),
    _quoted,
)
