"""Rejoin words hyphenated at line ends.

PDFs contain lines, not words: "retrie-" at the end of a line and "val" at the start of the next must become one word to
be found. The rest of the document decides between "retrieval" and "task-oriented".
"""

from __future__ import annotations

import re
from collections import Counter

BROKEN = "\ufffe"
"""The character with which pdfium marks a hyphen and the line end after it."""

_LETTERS = r"(?<![^\W\d_])[^\W\d_]++"  # a whole run, entered at its start only: linear on text without blanks
_END = rf"(?:{BROKEN}|[-\u2010\u00ad]\n)"
_BREAK = re.compile(rf"({_LETTERS}){_END}(?=({_LETTERS}))")
_BROKEN_WORD = re.compile(rf"{_LETTERS}(?:{_END}{_LETTERS})+")
_WORD = re.compile(rf"{_LETTERS}(?:-{_LETTERS})*")
_SUSPENDED = frozenset({"and", "or", "und", "oder", "bzw"})  # "pre- and post-war", "Haupt- und Nebenfach"
_SHORTEST = 3  # letters of a significant part; TeX breaks off two or three


def rejoin(text: str) -> str:
    """The text with all words hyphenated at line ends rejoined, in linear time.

    The hyphen is kept if the document has the word with a hyphen elsewhere. If it has neither form, the hyphen is kept
    inside a longer compound ("state-of-the-" "art"), after a letter or an abbreviation ("X-" "ray"), before anything
    not in lower case ("Jean-" "Paul"), between two words of the document, and next to a part that it hyphenates
    elsewhere ("non-", "-based").
    """
    if _BREAK.search(text):
        seen = _words(_BROKEN_WORD.sub(" ", text))
        text = _BREAK.sub(lambda broken: broken[1] + _link(broken, seen), text)
    return text.replace(BROKEN, "-")


def _words(text: str) -> Counter[str]:
    """The frequency of each word, and of each part of compounds (as "non-" and "-based")."""
    words = Counter(_WORD.findall(text.lower()))
    parts = [word.split("-") for word in words if "-" in word]
    words.update(f"{part}-" for compound in parts for part in compound[:-1])
    words.update(f"-{part}" for compound in parts for part in compound[1:])
    return words


def _link(broken: re.Match[str], seen: Counter[str]) -> str:
    """The text between the two parts of a broken word."""
    left, right, text = broken[1].lower(), broken[2].lower(), broken.string
    joined, compound = seen[left + right], seen[f"{left}-{right}"]
    if joined or compound:
        return "-" if compound > joined else ""
    if right in _SUSPENDED and text[broken.end(2) : broken.end(2) + 1].isspace():
        return "- "
    in_compound = text[broken.start() - 1 : broken.start()] == "-"
    abbreviation = len(left) == 1 or broken[1].isupper()
    starts_anew = not broken[2][0].islower()
    return "-" if in_compound or abbreviation or starts_anew or _are_words(left, right, seen) else ""


def _are_words(left: str, right: str, seen: Counter[str]) -> bool:
    from_left, from_right = len(left) >= _SHORTEST, len(right) >= _SHORTEST
    both = from_left and from_right and seen[left] and seen[right]
    return bool(both or (from_left and seen[f"{left}-"]) or (from_right and seen[f"-{right}"]))
