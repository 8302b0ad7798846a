"""Cheap signs that a page of a PDF was read badly, to decide between two readings of it."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from ragistry.readers.pdf_glyphs import MISSING

SPLIT, GLYPHS, RIGHT_TO_LEFT = "split words", "missing letters", "right-to-left text"

_ALONE = 0.2
"""Share of the words of a line or page that are one letter, from which on its words are taken to be split."""
_FEWEST_WORDS = 8
_SPLIT_LINES = 2
_MATHEMATICS = re.compile("[\u2200-\u22ff=+<>^|\\[\\]{}\u2190-\u21ff\u0370-\u03ff]")
_MOST_MATHEMATICS = 0.06  # marks a word; single letters are variables there
_LONGEST_WORD = 40
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_FEWEST_LETTERS, _LEAST_SHARE = 5, 0.05
_KEPT = 0.98
"""Share of the letters of the first reading that the second must have to replace it."""
_KEPT_RIGHT_TO_LEFT = 0.75  # where a wrong reading has letters of other scripts besides
_REVERSED = re.compile(
    "\u0627[\u0622\u0623\u0625\u0627]\u0644"  # the ligature of lam and alef, in the wrong order
    "|(?<![^\\W_])[\u0629\u0649\u05da\u05dd\u05df\u05e3\u05e5](?=[^\\W_])"  # a letter that ends words begins one
    "|(?<![^\\s])[\u064b-\u065f\u05b0-\u05c7]"  # a vowel mark without a letter
    "|[\ufb1d-\ufdff\ufe70-\ufefc]"  # a shape of a letter in place of the letter
    "|[A-Za-z][\u0621-\u064a]|[\u0370-\u03ff](?=[\\w\u0370-\u03ff])"  # two scripts run into each other
)


class Fault(NamedTuple):
    """A sign of bad reading, and how often a page has it."""

    sign: str
    times: int


def faults(text: str) -> list[Fault]:
    """Return the signs of bad reading on a page. Right-to-left text is always one, because engines differ there."""
    found = []
    if split := split_words(text):
        found.append(Fault(SPLIT, split))
    if MISSING in text:
        found.append(Fault(GLYPHS, text.count(MISSING)))
    if is_right_to_left(text):
        found.append(Fault(RIGHT_TO_LEFT, len(_REVERSED.findall(text))))
    return found


def is_right_to_left(text: str) -> bool:
    """Return whether a page has enough letters of such scripts to count."""
    if text.isascii() or not _RIGHT_TO_LEFT.search(text):
        return False
    return len(_RIGHT_TO_LEFT.findall(text)) >= max(_FEWEST_LETTERS, _LEAST_SHARE * len(text))


def split_words(text: str) -> int:
    """Count single letters on a page, if they are so many that they must be pieces of words; otherwise 0."""
    words = text.split()
    alone = _alone(words)
    if alone < 2 * _SPLIT_LINES or _is_mathematics(text, words):
        return 0
    if _is_split(words, alone, _ALONE):
        return alone
    lines = [line.split() for line in text.split("\n")]
    split = sum(_is_split(line, _alone(line), 2 * _ALONE) for line in lines)
    return alone if split >= _SPLIT_LINES else 0


def _is_mathematics(text: str, words: list[str]) -> bool:
    return len(_MATHEMATICS.findall(text)) >= _MOST_MATHEMATICS * sum(map(str.isalpha, words))


def _is_split(words: list[str], alone: int, share: float) -> bool:
    return alone > 0 and (letters := sum(map(str.isalpha, words))) >= _FEWEST_WORDS and alone >= share * letters


def _alone(words: list[str]) -> int:
    return sum([word.lower() != word.upper() for word in words if len(word) == 1])


def is_better(first: str, second: str) -> bool:
    """Return whether the second reading of a page has fewer faults than the first, and no less text."""
    kept = _KEPT_RIGHT_TO_LEFT if is_right_to_left(second) else _KEPT
    if _letters(second) < kept * _letters(first):
        return False
    return _score(second) < _score(first) and _overlong(second) <= _overlong(first)


def _score(text: str) -> int:
    """Return the number of faults, without the condition that there are many."""
    split = _alone(text.split())
    right_to_left = len(_REVERSED.findall(text)) if is_right_to_left(text) else 0
    return split + text.count(MISSING) + right_to_left


def _overlong(text: str) -> int:
    return sum(len(word) > _LONGEST_WORD for word in text.split())


def _letters(text: str) -> int:
    """Letters and digits of a page, where a ligature counts as its letters and a missing glyph as one."""
    plain = unicodedata.normalize("NFKC", text)
    return sum(character.isalnum() for character in plain)
