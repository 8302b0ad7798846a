"""Find the words of a query in a text, in any form that the word index treats as equal."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cache, lru_cache
from typing import NamedTuple

from ragistry.text.analysis import (
    MARKS,
    SYMBOL,
    UNSPACED_RUN,
    analyse,
    query_forms,
    query_pairs,
    query_terms,
    word_terms,
)

QUESTION_WORDS = (
    "how what when where which who why do does did can could should would may might must has have had were been am "
    "i me my we our you your he she him her his its from about"
)
"""Words of English questions, which are not marked, although the index may count them."""

_PART = rf"[^\W_]+(?:[{MARKS}]+[^\W_]*)*"
_WORD = re.compile(rf"\d+(?:[.,'\u2019]\d+)+(?![-._/]?\w)|{_PART}(?:[-._/]{_PART})*|(?:{SYMBOL.pattern})\ufe0f?")
_BETWEEN = re.compile(r"[ \-]{1,2}")


@cache
def _question_terms() -> frozenset[str]:
    return frozenset(analyse(QUESTION_WORDS))


@lru_cache(maxsize=64)  # asked for each document of a result
def marked_terms(query: str, language: str) -> frozenset[str]:
    """Return the terms of a query to mark, without question words unless it has no others."""
    terms = frozenset().union(*(find(query, language) for find in (query_terms, query_forms, query_pairs)))
    return (terms - _question_terms() if language == "english" else terms) or terms


@lru_cache(maxsize=64)
def named_terms(query: str, language: str) -> frozenset[str]:
    """Return the terms of names and numbers in a query: words with a digit, or with a capital after the first word."""
    words = query.split()
    named = [word for at, word in enumerate(words) if any(char.isdigit() or (at and char.isupper()) for char in word)]
    return marked_terms(" ".join(named), language) if 0 < len(named) < len(words) else frozenset()


class Match(NamedTuple):
    """A word ``[start, end)`` of a text, and the terms of the query in it."""

    start: int
    end: int
    terms: frozenset[str]


def matches(text: str, terms: Collection[str], language: str) -> list[Match]:
    """Return the words that contain a term, in order. ``terms``: see `text.analysis.query_terms`."""
    wanted, words = frozenset(terms), list[Match]()
    found_in = _found_in_words(wanted, language)
    for word in _WORD.finditer(text) if wanted else ():
        if found := found_in[word[0]]:
            words.append(Match(word.start(), word.end(), found))
        elif found is None:  # pairs of characters, or single characters if the query has no pair
            run, size = word[0], 2 if any(len(term) == 2 for term in wanted) else 1
            for place in range(len(run) - size + 1):
                if (part := run[place : place + size]) in wanted:
                    at = word.start() + place
                    words.append(Match(at, at + size, frozenset({part})))
    return words


def terms_in(found: Iterable[Match]) -> set[str]:
    """Return the terms of the query in some words."""
    return {term for match in found for term in match.terms}


class _FoundInWords(dict[str, frozenset[str] | None]):
    """The terms of a query in each word; None for a run of words without spaces."""

    def __init__(self, wanted: frozenset[str], language: str) -> None:
        self._wanted, self._terms_of = wanted, word_terms(language)

    def __missing__(self, word: str) -> frozenset[str] | None:
        is_run = not word.isascii() and UNSPACED_RUN.search(word)
        found = self[word] = None if is_run else self._wanted.intersection(self._terms_of[word])
        return found


_found_in_words = lru_cache(maxsize=8)(_FoundInWords)
"""Most words of a passage are in the others of a result, too."""


def phrases(text: str, found: list[Match]) -> list[tuple[int, int]]:
    """Return the spans to mark; adjacent words share one span."""
    spans: list[tuple[int, int]] = []
    for start, end, _ in found:
        if spans and (start <= spans[-1][1] or _BETWEEN.fullmatch(text, spans[-1][1], start)):
            spans[-1] = spans[-1][0], max(end, spans[-1][1])
        else:
            spans.append((start, end))
    return spans
