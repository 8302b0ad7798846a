"""Arrange results as cards: one for each source, with the lines that answer from its best passages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ragistry.presentation.excerpts import Excerpt, excerpt_line, excerpt_of
from ragistry.presentation.hits import Hit, collection_of, grouped, source_of
from ragistry.presentation.matches import marked_terms, matches
from ragistry.types import Document, RetrievalResult
from ragistry.utils.text.languages import chunk_language

MOST_PARTS = 3
"""Passages of a source whose lines are shown at first."""
OTHERS = 2
"""Passages of other sources that are added if all results are from one source."""
NAMES = 3
"""Maximum number of names in a list of sources."""
ENOUGH = 0.5
"""Share of the query's words that such a passage has at least."""


class Part(NamedTuple):
    """A passage and the lines of it that are shown."""

    document: Document
    excerpt: Excerpt


class Card(NamedTuple):
    """The results of a source.

    Attributes:
        hit: Its passages and their ranks.
        parts: Passages that are shown, the best first.
        rest: Its other passages.
        same_text: Passages of other sources with the same text as one of these.
    """

    hit: Hit
    parts: list[Part]
    rest: list[Part]
    same_text: list[Document]


def cards_of(
    documents: Sequence[Document], query: str, language: str, room: int | None, further: int | None = None
) -> list[Card]:
    """Return a card for each source, in the order of their best passages; a text is shown once.

    The first passage of a card is the best one with a word of the query. The next ones add words that those before do
    not have, first of all rare ones.

    Args:
        documents: Results of a search.
        query: The query.
        language: Language of passages whose metadata have none.
        room: Maximum number of characters of an excerpt; None for whole passages.
        further: The same for the second and third passage of a card; by default ``room``. Less of them leaves more of a
            screen to other sources.
    """
    cards: list[Card] = []
    with_text: dict[str, Card] = {}
    for hit in grouped(documents):
        card, passages = Card(hit, [], [], []), []
        for document in (hit.document, *hit.more):
            first = with_text.setdefault(" ".join(document.content.split()), card)
            if first is card:
                passages.append(Part(document, excerpt_of(document, query, language, room)))
            else:
                first.same_text.append(document)
        for part in _by_coverage(passages, query, language):
            is_shown = len(card.parts) < MOST_PARTS and not any(_repeats(part, other) for other in card.parts)
            if is_shown and card.parts and further is not None:
                part = part._replace(excerpt=excerpt_of(part.document, query, language, further))
            (card.parts if is_shown else card.rest).append(part)
        if card.parts:
            cards.append(card)
    return cards


def names_of(documents: Sequence[Document]) -> str:
    """List the sources of passages, each once with its collection, and how many more there are."""
    names = list(dict.fromkeys(" · ".join(filter(None, (collection_of(one), source_of(one)))) for one in documents))
    return "; ".join(names[:NAMES] + ([f"and {len(names) - NAMES} more"] if len(names) > NAMES else []))


def separate_cards(documents: Sequence[Document], query: str, language: str, room: int | None) -> list[Card]:
    """Return a card for each passage; see `cards_of`."""
    return [
        Card(Hit(rank, document), [Part(document, excerpt_of(document, query, language, room))], [], [])
        for rank, document in enumerate(documents, start=1)
    ]


def with_other_sources(
    result: RetrievalResult, language: str, search: Callable[[dict[str, Any]], RetrievalResult]
) -> RetrievalResult:
    """Add the best passages of other sources to results that are all from one source.

    So a reader sees which others answer too. Passages with few of the query's words are not added, and nothing is
    searched if the technique asked a model for more than vectors, because that would double its cost.

    Args:
        result: Result of a search.
        language: Language of passages whose metadata have none.
        search: Searches in the same way with a further condition on metadata.
    """
    names = {document.metadata.get("source_file") for document in result.documents}
    name = names.pop() if len(names) == 1 else None
    is_costly = any(stage.model_calls for stage in result.trace if stage.name != "embed")
    if not isinstance(name, str) or len(result.documents) < 2 or is_costly:
        return result
    found = search({"source_file": {"$ne": name}}).documents
    good = [document for document in found if _has_enough(document, result.query, language)]
    return replace(result, documents=[*result.documents, *good[:OTHERS]])


def _has_enough(document: Document, query: str, language: str) -> bool:
    terms = marked_terms(query, chunk_language(document.metadata, language))
    found = _terms_in(document.content, document, query, language)
    return bool(found) and len(found) >= ENOUGH * len(terms)


def _by_coverage(parts: Sequence[Part], query: str, language: str) -> list[Part]:
    """Sort the passages of a source, such that the first ones have as many words of the query as possible."""
    terms = [_terms_in(excerpt_line(part.excerpt), part.document, query, language) for part in parts]
    counts = Counter(term for found in terms for term in found)
    left, covered = list(range(len(parts))), set[str]()
    ordered: list[Part] = []
    while left:
        gains = [sum(1 / counts[term] for term in terms[number] - covered) if ordered else 0 for number in left]
        best = max(range(len(left)), key=lambda at: (gains[at], bool(terms[left[at]]), -at))
        number = left.pop(best)
        ordered.append(parts[number])
        covered |= terms[number]
    return ordered


def _terms_in(text: str, document: Document, query: str, language: str) -> set[str]:
    own = chunk_language(document.metadata, language)
    return {term for match in matches(text, marked_terms(query, own), own) for term in match.terms}


def _repeats(part: Part, other: Part) -> bool:
    """Return whether an excerpt shows the same as another one, or only a part of it that both passages contain."""
    words, others = (excerpt_line(one.excerpt).strip("… ") for one in (part, other))
    return words == others or (words in others and _overlap(part.document, other.document))


def _overlap(one: Document, other: Document) -> bool:
    offsets = [document.metadata.get(key) for document in (one, other) for key in ("start", "end")]
    known = [offset for offset in offsets if type(offset) is int]
    return len(known) == len(offsets) and known[0] < known[3] and known[2] < known[1]
