"""Phrases of a query in double quotes, and whether a text holds them.

A phrase is compared with a text by the words of `utils.text.analysis`: case, accents and endings do not matter, and
``e-mail`` or ``setMaxAttempts`` are the same as their words in sequence. The position of words is not in any index, so
candidates are found by their words, and their text is checked.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from ragistry.utils.text.analysis import units

_QUOTED = re.compile(
    r'(?:(?<!\S)|(?<=\s\()|(?<=^\())(-?)(?:"(?=\S)([^"]+)"|[\u201c\u201e](?=\S)([^\u201c-\u201e]+)[\u201c\u201d])(?=[\s.,;:!?)]|$)'
)


class ParsedQuery(NamedTuple):
    """A query with double quotes.

    Attributes:
        phrases: The phrases that a passage should hold.
        excluded: The phrases and words that no passage may hold: ``-"word"``.
        text: The query without what is excluded.
        words: The same without quotation marks.
        words_beside: Number of words beside the phrases.
    """

    phrases: tuple[str, ...]
    excluded: tuple[str, ...]
    text: str
    words: str
    words_beside: int


def parse_query(query: str) -> ParsedQuery | None:
    """Read phrases and exclusions; None without any, so that the whole query is text.

    A quotation mark opens at the start of a word and closes at the end of one. Any other one, such as that of inches,
    is text, and so are apostrophes and a bare ``-word``.
    """
    if '"' not in query and "\u201c" not in query and "\u201e" not in query:
        return None
    quoted = [mark for mark in _QUOTED.finditer(query) if _has_words(mark[2] or mark[3])]
    if not quoted:
        return None
    phrases = tuple(dict.fromkeys(mark[2] or mark[3] for mark in quoted if not mark[1]))
    excluded = tuple(dict.fromkeys(mark[2] or mark[3] for mark in quoted if mark[1]))
    text = _without(query, [mark for mark in quoted if mark[1]]).strip()
    words = _QUOTED.sub(lambda mark: mark[2] or mark[3], text)
    return ParsedQuery(phrases, excluded, text, words, len(units(_without(query, quoted), "none")))


def _without(query: str, marks: Iterable[re.Match[str]]) -> str:
    parts, at = [], 0
    for mark in marks:
        parts.append(query[at : mark.start()])
        at = mark.end()
    return "".join([*parts, query[at:]])


def _has_words(text: str) -> bool:
    return any(units(text, "none"))


class _Units(NamedTuple):
    """A text as the letters of its words, without spaces.

    ``ends``: where words, and parts of joined words, begin and end. ``gaps``: where white space was, ascending.
    """

    letters: str
    ends: frozenset[int]
    gaps: list[int]


def count_held(phrases: Iterable[str], text: str, language: str) -> int:
    """Count the phrases that a text holds."""
    letters = "".join(chain.from_iterable(units(text, language)))
    found = [phrase for phrase in (_phrase(phrase, language) for phrase in phrases) if phrase.letters in letters]
    if not found:
        return 0
    whole = _read(text, language)
    return sum(_holds(whole, phrase) for phrase in found)


@lru_cache(maxsize=256)
def _phrase(phrase: str, language: str) -> _Units:
    return _read(phrase, language)


def _read(text: str, language: str) -> _Units:
    ends, gaps, at = {0}, [], 0
    tokens = units(text, language)
    for token in tokens:
        gaps.append(at)
        for unit in token:
            at += len(unit)
            ends.add(at)
    return _Units("".join(chain.from_iterable(tokens)), frozenset(ends), gaps[1:])


def _holds(text: _Units, phrase: _Units) -> bool:
    """Return whether the words of a phrase follow each other in a text.

    White space in one of them must be the end of a word or part in the other: "apart" is not "a part".
    """
    size = len(phrase.letters)
    at = text.letters.find(phrase.letters)
    while at >= 0:
        inside = text.gaps[bisect_left(text.gaps, at + 1) : bisect_left(text.gaps, at + size)]
        if (
            at in text.ends
            and at + size in text.ends
            and all(gap - at in phrase.ends for gap in inside)
            and all(at + gap in text.ends for gap in phrase.gaps)
        ):
            return True
        at = text.letters.find(phrase.letters, at + 1)
    return False
