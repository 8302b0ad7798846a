"""Queries that ask the same, and queries that stand in the text that they must find."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from math import ceil

from ragistry.utils.analysis import analyse, query_terms

NEAR = 0.8
"""Shared terms, of all the terms of two queries, from which they ask the same."""


def near_duplicates(texts: Sequence[str], threshold: float = NEAR) -> Iterator[tuple[int, int, float]]:
    """Pairs of places (the smaller first) of texts that share most of their terms, and how much: 1 is all of them.

    Jaccard's coefficient. Only pairs that share one of their rarest terms are looked at, which misses none
    (Chaudhuri, Ganti and Kaushik, A primitive operator for similarity joins in data cleaning, 2006).
    """
    terms = [set(query_terms(text)) if text.strip() else set() for text in texts]
    counts = Counter(term for found in terms for term in found)
    places: defaultdict[str, list[int]] = defaultdict(list)
    for second, found in enumerate(terms):
        rarest = sorted(found, key=lambda term: (counts[term], term))
        prefix = rarest[: len(found) - ceil(threshold * len(found)) + 1] if found else []
        for first in sorted({place for term in prefix for place in places[term]}):
            shared = len(found & terms[first]) / len(found | terms[first])
            if shared >= threshold:
                yield first, second, shared
        for term in prefix:
            places[term].append(second)


def stands_in(query: str, text: str) -> bool:
    """Whether the words of the query stand in the text, in their order and next to each other."""
    words = plain_words(query)
    return bool(words) and f" {words} " in f" {plain_words(text)} "


def plain_words(text: str) -> str:
    """The words of a text with single blanks between: no case, no marks, no endings."""
    return " ".join(analyse(text))
