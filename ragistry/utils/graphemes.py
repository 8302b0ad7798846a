"""Find places to cut a text between graphemes (characters as readers see them).

A small part of Unicode's rules for grapheme clusters (UAX #29): marks and modifiers stay with their base; joined emoji,
joined consonants, the two halves of a flag, and the letters of a decomposed Hangul syllable stay together.
"""

from __future__ import annotations

import unicodedata

_JOINER = "\u200d"
_FLAG_LETTERS = "".join(map(chr, range(0x1F1E6, 0x1F200)))
_VIRAMA = 9  # the combining class of the sign that joins two consonants
_REACH = 64  # longer than any cluster in real text (UAX #15 allows 30 marks); keeps the search short on any other


def cut_before(text: str, lo: int, at: int) -> int:
    """The last offset in ``(lo, at]`` between two graphemes; ``at`` if there is none in reach."""
    for offset in range(at, max(lo, at - _REACH), -1):
        if not _joined(text, lo, offset):
            return offset
    return at


def cut_after(text: str, lo: int, at: int, hi: int) -> int:
    """The first offset in ``[at, hi)`` between two graphemes; ``at`` if there is none in reach.

    ``lo``: an earlier offset known to be between two graphemes.
    """
    for offset in range(at, min(hi, at + _REACH)):
        if not _joined(text, lo, offset):
            return offset
    return at


def _joined(text: str, lo: int, at: int) -> bool:
    """Whether the characters on both sides of ``at`` belong together; ``lo`` lies between two graphemes."""
    if not lo < at < len(text) or text[at] < "\u0300":
        return False
    after = text[at]
    before = text[at - 1]
    if before == _JOINER or _extends(after) or unicodedata.combining(before) == _VIRAMA:
        return True
    if after not in _FLAG_LETTERS:
        return False
    return (at - lo - len(text[lo:at].rstrip(_FLAG_LETTERS))) % 2 == 1


def _extends(character: str) -> bool:
    return (
        unicodedata.category(character) in ("Mn", "Me", "Mc")
        or character in "\u200c\u200d\uff9e\uff9f"
        or "\u1160" <= character <= "\u11ff"  # vowels and final consonants of decomposed Hangul
        or "\U0001f3fb" <= character <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= character <= "\U000e007f"  # tags, as in the flag of Scotland
    )
