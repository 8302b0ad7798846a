"""Find the title of a PDF: the largest lines of its first page, if they look like one. Runs in the worker process."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from math import pi
from typing import Any, NamedTuple

from ragistry.readers.pdf_glyphs import BROKEN

MOST_LINES = 400
"""Lines of the page that are looked at."""
MOST_LINES_OF_TITLE = 4
LONGEST = 200
"""Maximum number of characters of a title."""
SMALLEST = 11.0
"""Height of the line of the smallest title, in points."""
LARGER = 1.15
"""A title is larger than most of the text by this factor."""
LOWEST = 0.6
"""A title is above this share of the height of the page."""
SAME = 0.03
"""Sizes that differ by less than this share are equal."""

_LINE_END = re.compile(f"\r\n|\r|\n|{BROKEN}")
_WORD = re.compile(r"[^\W\d_]{3,}|[\u0e00-\u0eff\u1000-\u109f\u3040-\u9fff\uac00-\ud7a3]")
_SENTENCE_END = re.compile(r"(?<!\.)[.,;:]$")


class _Line(NamedTuple):
    text: str
    size: float
    height: float


def title_on_page(text: str, page: Any, textpage: Any, numbers: Sequence[int] | None) -> str:
    """Return the largest lines of a page as one line, or nothing if they are not a title.

    They are a title if they are one after the other, in the upper part of the page, larger than most of the text, have
    a word, and are neither a sentence nor longer than `LONGEST`.

    Args:
        text: Text of the page.
        page: The page of pypdfium2.
        textpage: Its text page.
        numbers: Number of the character in ``textpage`` for each one of ``text``; None if they are the same.
    """
    lines = _lines(text, page, textpage, numbers)
    if not lines:
        return ""
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[line.size] += len(line.text)
    usual, largest = sizes.most_common(1)[0][0], max(sizes)
    runs = [list(run) for is_largest, run in groupby(lines, lambda one: one.size >= largest * (1 - SAME)) if is_largest]
    title = " ".join("".join(one.text if one.text.endswith("-") else f"{one.text} " for one in runs[0]).split())
    is_title = (
        largest >= max(SMALLEST, LARGER * usual)
        and len(runs) <= 2
        and len(runs[0]) <= MOST_LINES_OF_TITLE
        and runs[0][0].height < LOWEST
        and len(title) <= LONGEST
        and not _SENTENCE_END.search(title)
    )
    return title if is_title else ""


def _lines(text: str, page: Any, textpage: Any, numbers: Sequence[int] | None) -> list[_Line]:
    """Return the upright lines with words, each with its size and its distance from the top of the page."""
    from pypdfium2 import raw

    rectangle, box = raw.FS_RECTF(), raw.FS_RECTF()
    raw.FPDF_GetPageBoundingBox(page, box)
    turned, across = page.get_rotation() // 90, page.get_rotation() % 180 != 0
    found = []
    ends = list(_LINE_END.finditer(text))[:MOST_LINES]
    for at, end in zip([0, *(one.end() for one in ends)], [*(one.start() for one in ends), len(text)], strict=True):
        words = text[at:end].strip()
        if not _WORD.search(words):
            continue
        middle = text.index(words, at) + len(words) // 2
        while text[middle].isspace():
            middle += 1
        number = middle if numbers is None else numbers[middle]
        turns = round(raw.FPDFText_GetCharAngle(textpage, number) / (pi / 2)) + turned
        if turns % 4 or not raw.FPDFText_GetLooseCharBox(textpage, number, rectangle):
            continue
        size = abs(rectangle.right - rectangle.left) if across else abs(rectangle.top - rectangle.bottom)
        whole = (box.right - box.left) if across else (box.top - box.bottom)
        tops = {0: box.top - rectangle.top, 1: rectangle.left - box.left, 2: rectangle.bottom - box.bottom}
        down = tops.get(turned, box.right - rectangle.right)
        if size > 0 and whole > 0:
            is_broken = text[end : end + 1] == BROKEN
            found.append(_Line(f"{words}-" if is_broken else words, round(size, 1), down / whole))
    return found
