"""Quote text of documents, so that a passage cannot imitate the answer around it."""

from __future__ import annotations

import re

INDENT = "   "
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f"  # control characters; \t, \n … \r are blanks
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks that change the direction of writing
    "\xad\u17b4\u17b5\u200b\u2060-\u2065\u206a-\u206f\ufeff\ufff0-\ufffb"  # without width or shape
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # marks of shorthand and of music
    "\u180b-\u180f\ufe00-\ufe0e\U000e0000-\U000e0fff]"  # selectors of a variant, and the tag characters
)
"""Invisible characters that models read: Unicode's default ignorable characters (Unicode 16, 5.21) and invisible format
characters, except `_JOINERS`."""
_JOINERS = "[\u034f\u115f\u1160\u200c\u200d\u3164\ufe0f\uffa0]"
"""Characters that change the look of their neighbours: joiners of scripts and of emoji, the colour variant, and fillers
of Hangul."""
_IDLE_JOINERS = re.compile(f"(?<={_JOINERS}{{3}}){_JOINERS}+")
"""No script needs more than three in a row (ZWJ, ZWNJ, ZWJ in Arabic: Unicode 16, 23.2); more may hide a text."""
HALF = re.compile("[\ud800-\udfff]")
"""A lone surrogate. In file names, each represents a byte that is not UTF-8."""


def visible(text: str) -> str:
    """Remove invisible characters, separate lines by ``\\n``, and strip white space at the end.

    Every separator that `str.splitlines` knows is a line end here, so that none can hide the start of a line.
    """
    lines = (_IDLE_JOINERS.sub("", _UNSEEN.sub("", line)) for line in text.splitlines())
    return escaped("\n".join(lines).rstrip())


def escaped(text: str) -> str:
    """Escape lone surrogates; those for bytes of a file name as ``\\xe9``."""
    return HALF.sub(lambda half: _escape(ord(half[0])), text)


def _escape(half: int) -> str:
    return f"\\x{half - 0xDC00:02x}" if 0xDC80 <= half <= 0xDCFF else f"\\u{half:04x}"


def visible_line(value: object, limit: int = 200) -> str:
    """Write a value as one line of at most ``limit`` characters, for names, headings and messages."""
    text = " ".join(visible(str(value)).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def indented(text: str) -> str:
    """Indent every line of a visible text."""
    return "\n".join(INDENT + line for line in text.split("\n"))
