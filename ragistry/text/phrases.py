"""Phrases of a query in quotation marks, and whether a text holds them.

A phrase is compared with a text by the words of `text.analysis`: case, accents and endings do not matter, and
``e-mail`` or ``setMaxAttempts`` are the same as their words in sequence. The position of words is not in any index, so
candidates are found by their words, and their text is checked.
"""

# ruff: noqa: RUF001 - quotation marks of many languages are what this is about

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import chain
from typing import NamedTuple

from ragistry.text.analysis import LETTER, SYMBOLS, TONES, units

_OPEN_AND_CLOSE = '"[^"]+"|”[^”]+”|＂[^＂]+＂|»[^«»]+[«»]|›[^‹›]+[‹›]'
"""Quotations whose first mark also ends or is another sign: it begins a word, the other ends one."""
_PAIRED = (
    f"[“„][^“-„]+[“”]|[‘‚](?:[^‘-‚]|’(?={LETTER}))+[‘’]|«[^«»]+»|‹[^‹›]+›|「[^「」]+」|『[^『』]+』|｢[^｢｣]+｣"
    "|《[^《》]+》|〈[^〈〉]+〉|〝[^〝-〟]+[〞〟]"
)
_MARKS = re.compile('["”＂“„‘‚«»‹›「」『』｢｣《》〈〉〝〞〟]')
_SYMBOLS = re.compile(f"[{SYMBOLS}{TONES}\u20e3]")


class ParsedQuery(NamedTuple):
    """A query with quotation marks.

    Attributes:
        phrases: The phrases that a passage should hold.
        excluded: The phrases and words that no passage may hold: ``-"word"``.
        text: The query without what is excluded.
        words: The same without quotation marks.
        words_beside: Number of words outside the phrases.
    """

    phrases: tuple[str, ...]
    excluded: tuple[str, ...]
    text: str
    words: str
    words_beside: int


@cache  # compiled for the first query with a quotation mark
def _quoted() -> re.Pattern[str]:
    return re.compile(
        rf"(?:(?<!\S)|(?<=\s\()|(?<=^\())(-?)(?=.\S)({_OPEN_AND_CLOSE})(?=[\s.,;:!?)]|$)"
        rf"|(?<!{LETTER})((?<!\S)-)?({_PAIRED})(?!{LETTER})"
    )


def parse_query(query: str) -> ParsedQuery | None:
    """Read phrases and exclusions; None without any, so that the whole query is text.

    A quotation mark opens at the start of a word and closes at the end of one. Any other one, such as that of inches,
    is text, and so are apostrophes and a bare ``-word``.
    """
    if not _MARKS.search(query):
        return None
    quoted = list(_quoted().finditer(query))
    if not quoted:
        return None
    phrases = tuple(dict.fromkeys(_phrase_of(mark) for mark in quoted if not _excludes(mark)))
    excluded = tuple(dict.fromkeys(_phrase_of(mark) for mark in quoted if _excludes(mark)))
    text = _without(query, filter(_excludes, quoted)).strip()
    words = _quoted().sub(_phrase_of, text)
    return ParsedQuery(phrases, excluded, text, words, len(units(_without(query, quoted), "none")))


def with_previous(query: str, previous: str | None) -> str:
    """Write the question before in front of a query. Its phrases become words, and what it excludes is left out."""
    if previous is None:
        return query
    parsed = parse_query(previous)
    return f"{' '.join(_MARKS.sub(' ', parsed.words if parsed else previous).split())} {query}".lstrip()


def _without(query: str, marks: Iterable[re.Match[str]]) -> str:
    parts, at = [], 0
    for mark in marks:
        parts.append(query[at : mark.start()])
        at = mark.end()
    return "".join([*parts, query[at:]])


def without_symbols(text: str) -> str:
    """Return a text with punctuation in place of emoji and symbols."""
    return text if text.isascii() else _SYMBOLS.sub("|", text)


def _phrase_of(mark: re.Match[str]) -> str:
    return str(mark[2] or mark[4])[1:-1].strip()


def _excludes(mark: re.Match[str]) -> bool:
    return bool(mark[1] or mark[3])


def has_words(text: str) -> bool:
    """Return whether a text has a word or symbol."""
    return any(units(text, "none"))


class _Units(NamedTuple):
    """A text as the letters of its words, without spaces.

    ``ends``: where words, and parts of joined words, begin and end. ``gaps``: where white space was, ascending.
    """

    letters: str
    ends: frozenset[int]
    gaps: list[int]


def count_held(phrases: Iterable[str], text: str, language: str) -> int:
    """Count the phrases that a text holds. The symbols of a text count only for a phrase with symbols."""
    plain = without_symbols(text)
    if plain == text:
        return _count(phrases, text, language)
    with_symbols: list[str] = []
    others: list[str] = []
    for phrase in phrases:
        (with_symbols if _SYMBOLS.search(phrase) else others).append(phrase)
    return _count(with_symbols, text, language) + _count(others, plain, language)


def _count(phrases: Iterable[str], text: str, language: str) -> int:
    words = [read for read in (_phrase(phrase, language) for phrase in phrases) if read.letters]
    if not words:
        return 0
    letters = _letters(text, language)
    found = [phrase for phrase in words if phrase.letters in letters]
    if not found:
        return 0
    whole = _read(text, language)
    return sum(_holds(whole, phrase) for phrase in found)


@lru_cache(maxsize=4096)
def _letters(text: str, language: str) -> str:
    """Return the letters of the words. A search looks several times at each passage, as do further ones."""
    return "".join(chain.from_iterable(units(text, language)))


def _read(text: str, language: str) -> _Units:
    ends, gaps, at = {0}, [], 0
    tokens = units(text, language)
    for token in tokens:
        gaps.append(at)
        for unit in token:
            at += len(unit)
            ends.add(at)
    return _Units("".join(chain.from_iterable(tokens)), frozenset(ends), gaps[1:])


_phrase = lru_cache(maxsize=256)(_read)
"""A phrase is read once for all passages of a search."""


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
