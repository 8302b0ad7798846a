"""Find lines that introduce a list, a table or code ("Run these commands:"), and what each introduces."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragistry.text.boundaries import last_sentence_end, next_word

Span = tuple[int, int]

LONGEST = 300
"""Maximum number of characters of a lead-in; of a longer sentence, its last line counts."""

_COLON = re.compile(r"[:：][*_`\"'”)]{0,3}[ \t]*\n")  # noqa: RUF001 - includes a wide colon
_ITEM = re.compile(r"[ \t]*(?:[-*+•◦▪–]|\(?\d{1,3}[.)]|\(?[a-z]\))[ \t]+\S")  # noqa: RUF001 - includes a dash
_ROW = re.compile(r"[^\n|]*\|")
_CODE = re.compile(r"(?: {4}|\t)[ \t]*\S")
_SENTENCE_END = re.compile(r"[.!?。！？]\W{0,3}$")  # noqa: RUF001 - includes wide marks


def with_lead_ins(text: str, start: int, stop: int, fences: Sequence[Span], size: int) -> list[Span]:
    """Return the fences of ``text[start:stop]`` and each lead-in with what it introduces, as spans in order.

    Of a list, a table or indented code that does not fit into ``size`` characters with its lead-in, the first item,
    row or line counts; a fence that does not fit stays a span of its own.

    Args:
        text: The text.
        start: Start of the part.
        stop: End of the part.
        fences: Spans of fenced code in the part, in order.
        size: Maximum number of characters of a chunk.
    """
    blocks: list[Span] = []
    left = list(reversed(fences))
    for colon in _COLON.finditer(text, start, stop):
        at = colon.start()
        while left and left[-1][1] <= at:
            blocks.append(left.pop())
        done = blocks[-1][1] if blocks else start
        if at < done or (left and left[-1][0] < at):
            continue  # in what another line introduces, or in code
        lead = _lead_start(text, done, at)
        if left and next_word(text, colon.end()) >= left[-1][0]:
            if left[-1][1] - lead <= size:
                left[-1] = (lead, left[-1][1])
        elif end := _end_of_introduced(text, colon.end(), left[-1][0] if left else stop, lead + size):
            blocks.append((lead, end))
    return [*blocks, *reversed(left)]


def _lead_start(text: str, done: int, colon: int) -> int:
    """Return the start of the sentence that ends with the colon; ``done`` is the end of the block before."""
    before = last_sentence_end(text, max(done, colon - LONGEST), colon - 1)
    return next_word(text, before if before >= 0 else max(done, text.rfind("\n", done, colon)))


def _end_of_introduced(text: str, start: int, stop: int, limit: int) -> int:
    """Return the end of the list, table or indented code at ``start``; of its beginning if it goes past ``limit``."""
    kind, first, last, is_after_blank = None, 0, 0, False
    while start < stop and last <= limit:
        line_end = text.find("\n", start, stop)
        line = text[start : line_end if line_end >= 0 else stop].rstrip()
        if line:
            if kind is None:
                kind = _kind(line, is_after_blank)
                if kind is None:
                    return 0
            elif kind.match(line) and not (is_after_blank and kind is _ROW):
                first = first or last
            elif kind is not _ITEM or not _continues_item(line, is_after_blank, text[last - 4 : last]):
                break
            last = start + len(line)
        is_after_blank = not line
        start = line_end + 1 if line_end >= 0 else stop
    return last if last <= limit else first


def _kind(line: str, is_after_blank: bool) -> re.Pattern[str] | None:
    kinds = (_ITEM, _CODE, _ROW) if is_after_blank else (_ITEM, _ROW)
    return next((kind for kind in kinds if kind.match(line)), None)


def _continues_item(line: str, is_after_blank: bool, before: str) -> bool:
    """Return whether a line without a marker continues the item above: it is indented, or completes its sentence."""
    return line[0] in " \t" or not (is_after_blank or _SENTENCE_END.search(before))
