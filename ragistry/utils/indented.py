"""Find lines of Markdown that are code by indentation, as in CommonMark (0.31.2, sections 4.4 and 5.2)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_STARTS_WITH_MARK = re.compile(r"\s*\{\{[<%]")
_ITEM = re.compile(r"(?P<indent>[ \t]*)(?:[-*+:]|\d{1,9}[.)]|(?P<note>\[\^[^\]\s]+\]:))(?:[ \t]+|$)")
_RULE = re.compile(r"\s*([-*_])(?:[ \t]*\1){2,}\s*")


def indented_code(lines: Sequence[str], is_fenced: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """The lines that are code by indentation, and how many columns of it belong to the enclosing list."""
    lists: list[int] = []  # the text columns of the list items that may contain the line
    is_free = True  # no open paragraph or HTML, which an indented line would continue
    for number, line in enumerate(lines):
        if (is_fenced[number] and number and is_fenced[number - 1]) or not line.strip():
            is_free = not is_fenced[number]
            continue
        column = _columns(line[: len(line) - len(line.lstrip(" \t"))])
        is_heading = _HEADING.match(line) is not None
        if is_free or is_heading or is_fenced[number]:
            lists = [start for start in lists if start <= column]
        within = lists[-1] if lists else 0
        if is_free and not is_fenced[number] and column >= within + 4 and not _STARTS_WITH_MARK.match(line):
            yield number, within
            continue
        is_free = is_heading
        item = _ITEM.match(line)
        if item and column < within + 4 and not _RULE.fullmatch(line):
            lists = [*(start for start in lists if start <= column), _text_of(item)]


def _text_of(item: re.Match[str]) -> int:
    """The column at which the text of a list item begins."""
    if item["note"]:
        return _columns(item["indent"]) + 4
    gap = _columns(item[0]) - _columns(item[0].rstrip())
    return _columns(item[0].rstrip()) + (gap if 1 <= gap <= 4 else 1)


def _columns(text: str) -> int:
    return len(text.expandtabs(4))


def dedented(line: str, columns: int) -> str:
    """The line without this many columns of indentation; a tab extends to the next multiple of four."""
    rest = line.lstrip(" \t")
    return line[: len(line) - len(rest)].expandtabs(4)[columns:] + rest
