"""Detect navigation links and borders of tables, which excerpts leave out."""

from __future__ import annotations

import re
from collections.abc import Sequence

FEWEST_ITEMS = 3
"""Consecutive items with nothing but a link from which a list is navigation."""

_LINK = re.compile(r"!?\[[^\[\]\n]*\](?:\([^()\n]*\)|\[[^\[\]\n]*\])?|<https?://[^<>\s]*>")
_MARKER = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+")
_LEADERS = re.compile(r"(?:\.[ \t]?){4,}\s*[\divxlc]{1,6}\s*$", re.IGNORECASE)
_BETWEEN = r"[\s|·•/»«›‹→←↑>,-]*"  # noqa: RUF001 - includes dots and arrows
_WORDS = (
    r"(?:previous|prev|next|home|up|index|contents|table of contents|on this page|back to top|back|top|menu|"
    r"skip to (?:main )?content|edit this page)(?: page| chapter| section)?"
)
_WAYS = re.compile(rf"{_BETWEEN}{_WORDS}(?:{_BETWEEN}{_WORDS})*{_BETWEEN}", re.IGNORECASE)


def has_words(text: str) -> bool:
    """Return whether a text is more than the border of a table or a rule: it has a letter or a digit."""
    return any(map(str.isalnum, text))


def navigation_lines(lines: Sequence[str]) -> frozenset[int]:
    """Return the numbers of lines without content: borders, links to other pages, lines of a table of contents."""
    found: set[int] = set()
    items: list[int] = []
    for number, line in enumerate([*lines, "end"]):
        if not line.strip():
            continue
        links = len(_LINK.findall(line)) if "[" in line or "<http" in line else 0
        is_links = links > 0 and not has_words(_LINK.sub("", _MARKER.sub("", line)))
        if is_links and links == 1 and _MARKER.match(line):
            items.append(number)
            continue
        if len(items) >= FEWEST_ITEMS:
            found.update(items)
        items = []
        if number < len(lines) and (
            not has_words(line)
            or (is_links and links > 1)
            or ("." in line and _LEADERS.search(line))
            or _WAYS.fullmatch(line)
        ):
            found.add(number)
    return frozenset(found)
