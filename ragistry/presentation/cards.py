"""Arrange results as cards: one for each source, with the lines that answer from its best passages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ragistry.chunking.breadcrumb import OLDER
from ragistry.presentation.excerpts import Excerpt, excerpt_line, excerpt_of
from ragistry.presentation.hits import Hit, collection_of, grouped, source_of
from ragistry.presentation.matches import marked_terms, matches, terms_in
from ragistry.techniques.newest import families
from ragistry.text.languages import chunk_language
from ragistry.types import Document

MOST_PARTS = 3
"""Passages of a source whose lines are shown at first."""
SIMILARITY = 0.8
"""Shared part of the shingles from which passages of two sources are similar."""
NAMES = 3
"""Maximum number of names in a list of sources."""


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
        similar: Passages of other sources with nearly the same text as one of these.
    """

    hit: Hit
    parts: list[Part]
    rest: list[Part]
    similar: list[Part]


def cards_of(
    documents: Sequence[Document], query: str, language: str, room: int | None, further: int | None = None
) -> list[Card]:
    """Return a card for each source, in the order of their best passages.

    The first passage of a card is the best one with a word of the query. The next ones add words that those before do
    not have, first of all rare ones. A passage that nearly repeats one of another source is in the card of that one,
    unless it is an older version.

    Args:
        documents: Results of a search.
        query: The query.
        language: Language of passages whose metadata have none.
        room: Maximum number of characters of an excerpt; None for whole passages.
        further: The same for the second and third passage of a card; by default ``room``. Less of them leaves more of a
            screen to other sources.
    """
    similar = {
        id(documents[other]): documents[first]
        for first, *others in families(documents, SIMILARITY, query)
        for other in others
        if OLDER not in documents[other].metadata
    }
    cards: list[Card] = []
    card_with: dict[int, Card] = {}
    for hit in grouped(documents):
        own = [document for document in (hit.document, *hit.more) if id(document) not in similar]
        if not own:
            continue
        card = Card(hit, [], [], [])
        cards.append(card)
        card_with |= {id(document): card for document in own}
        passages = [Part(document, excerpt_of(document, query, language, room)) for document in own]
        for part in _by_coverage(passages, query, language):
            is_shown = len(card.parts) < MOST_PARTS and not any(_repeats(part, other) for other in card.parts)
            if is_shown and card.parts and further is not None:
                part = part._replace(excerpt=excerpt_of(part.document, query, language, further))
            (card.parts if is_shown else card.rest).append(part)
    for document in documents:
        if id(document) in similar:
            part = Part(document, excerpt_of(document, query, language, room if further is None else further))
            card_with[id(similar[id(document)])].similar.append(part)
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


def _by_coverage(parts: Sequence[Part], query: str, language: str) -> list[Part]:
    """Sort the passages of a source, such that the first ones have as many words of the query as possible."""
    terms = list[set[str]]()
    for part in parts:
        own = chunk_language(part.document.metadata, language)
        found = matches(excerpt_line(part.excerpt), marked_terms(query, own), own)
        terms.append(terms_in(found))
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


def _repeats(part: Part, other: Part) -> bool:
    """Return whether an excerpt shows the same as another one, or only a part of it that both passages contain."""
    words, others = (excerpt_line(one.excerpt).strip("… ") for one in (part, other))
    return words == others or (words in others and _overlap(part.document, other.document))


def _overlap(one: Document, other: Document) -> bool:
    offsets = [document.metadata.get(key) for document in (one, other) for key in ("start", "end")]
    known = [offset for offset in offsets if type(offset) is int]
    return len(known) == len(offsets) and known[0] < known[3] and known[2] < known[1]
