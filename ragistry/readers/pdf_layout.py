"""Use the places of the letters of a PDF page: columns in order, the title. Runs in the worker process only."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice, pairwise
from math import pi
from typing import Any, NamedTuple

from pypdfium2 import raw

from ragistry.readers.pdf_letters import BROKEN, BoxOf

# --- Columns whose lines are drawn across the page ---

MOST_CHARACTERS = 50_000
"""Characters of a page with columns; a page with more is left as it is."""
MOST_GUTTERS = 5
WIDE = 0.8
"""Narrowest gap between columns, as a share of the height of a line."""

_LINE_END = re.compile(f"\r\n|\r|\n|{BROKEN}")
_WORD = re.compile(r"\S+")
_FIRST_PLACES = (0.31, 0.5, 0.74)  # samples, of which two have gaps before more are looked at
_PLACES, _FEWEST_GAPS = (0.0, 0.2, 0.4, 0.6, 0.8), 4
_WORDS_OF_SAMPLE = 24  # a line across the page has fewer
_FEWEST_LINES, _FEW_LINES = 3, 6  # next to each other in two columns; few of them have to be wrapped like prose
_NARROW = 0.7  # gap between few lines, as a share of the column before it
_WRAPPED, _ROOM = 0.75, 0.9  # share of lines that have no room for the next word, in letters of the longest one
_FEWEST = 100  # characters of a page with columns
_FEWEST_JUMPS = 3  # from column to column, in a part of a page between lines that cross it
_WORDS, _LETTERS = 3, 8  # of a line of a column on average
_DIGITS = 0.25  # share of the words of a column that have digits
_FULL, _FULL_LINES = 0.7, 0.6  # a line is full from that share of the width, and share of lines that are
_FLOWING = 0.35  # share of the lines that begin in the middle of a sentence


class _Piece(NamedTuple):
    """Characters of a line without a wide gap: where they are in the text, and on the page."""

    start: int
    end: int
    left: float
    right: float
    bottom: float
    height: float

    def continues(self, word: _Piece) -> bool:
        """Return whether the next word is beside this piece, without a wide gap."""
        height = max(self.height, 1.0)
        gap = word.left - self.right
        return -height < gap <= WIDE * height and abs(self.bottom - word.bottom) <= height

    def is_before(self, other: _Piece) -> bool:
        """Return whether the other piece is to the right of this one, at about the same height."""
        return other.left >= self.right and abs(self.bottom - other.bottom) < max(self.height, other.height)


def with_columns_in_order(text: str, box_of: BoxOf, numbers: Sequence[int]) -> tuple[str, Sequence[int]]:
    """Return the text with one column after the other where the file goes from line to line across the page.

    A column has lines of prose: several words, mostly of the full width, that continue each other. Tables, forms and
    lists have not, and stay as they are.

    Args:
        text: Text of the page.
        box_of: Gives left, right, bottom and top of a character of the text.
        numbers: Number of the character in pypdfium2 for each one of ``text``.

    Returns:
        The text and the numbers of its characters.
    """
    if not _FEWEST <= len(text) <= MOST_CHARACTERS or not _has_gutter(text, box_of):
        return text, numbers
    pieces = list(_pieces(text, box_of))
    gutters = _gutters(text, pieces)
    if not gutters:
        return text, numbers
    parts: list[str] = []
    ordered: list[int] = []
    for start, end, separator in _in_order(text, pieces, gutters):
        parts += (text[start:end], separator)
        ordered += [*numbers[start:end], *[numbers[end - 1]] * len(separator)]
    return "".join(parts), ordered


def _has_gutter(text: str, box_of: BoxOf) -> bool:
    """Return whether samples of a page have wide gaps between words at the same distance from its left."""
    without = (place for place in _FIRST_PLACES if not _sampled_gaps(text, place, box_of))
    if next(islice(without, 1, None), None):
        return False
    gaps = [gap for place in _PLACES for gap in _sampled_gaps(text, place, box_of)]
    return _deepest(gaps)[0] >= _FEWEST_GAPS


def _sampled_gaps(text: str, place: float, box_of: BoxOf) -> list[tuple[float, float]]:
    """Return left and right of each wide gap between some words from a place of the text on, from 0 to 1."""
    gaps = []
    last = None
    for word in islice(_WORD.finditer(text, int(place * len(text))), _WORDS_OF_SAMPLE):
        left, _, bottom, top = box_of(word.start())
        height = max(top - bottom, 1.0)
        if last and left - last[1] > WIDE * height and abs(bottom - last[2]) < height:
            gaps.append((last[1], left))
        last = box_of(word.end() - 1)
    return gaps


def _lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each line with text, without blanks around it."""
    at = 0
    for end in [*(one.start() for one in _LINE_END.finditer(text)), len(text)]:
        line = text[at:end]
        if stripped := line.strip():
            start = at + line.index(stripped[0])
            yield start, start + len(stripped)
        at = end + 1


def _pieces(text: str, box_of: BoxOf) -> Iterator[_Piece]:
    for start, end in _lines(text):
        piece = None
        for word in _WORD.finditer(text, start, end):
            left, _, bottom, top = box_of(word.start())
            _, right, _, last_top = box_of(word.end() - 1)
            one = _Piece(word.start(), word.end(), left, right, bottom, max(top, last_top) - bottom)
            if piece is None:
                piece = one
            elif piece.continues(one):
                height = max(piece.height, one.height)
                piece = piece._replace(end=one.end, right=one.right, height=height)
            else:
                yield piece
                piece = one
        if piece is not None:
            yield piece


def _gutters(text: str, pieces: Sequence[_Piece]) -> list[float]:
    """Return the middle of each gap between two columns of prose, from left to right."""
    pairs = [(one, other) for one, other in pairwise(pieces) if one.is_before(other)]
    found: list[float] = []
    while len(pairs) >= _FEWEST_LINES and len(found) < MOST_GUTTERS:
        _, gutter = _deepest((one.right, other.left) for one, other in pairs)
        here = [(one, other) for one, other in pairs if one.right <= gutter <= other.left]
        if len(here) < _FEWEST_LINES:
            break
        end = max(one.right for one, _ in here)
        is_narrow = min(other.left for _, other in here) - end <= _NARROW * (end - min(one.left for one, _ in here))
        if (is_narrow or len(here) >= _FEW_LINES) and all(_is_prose(text, side) for side in zip(*here, strict=True)):
            found.append(gutter)
        pairs = [(one, other) for one, other in pairs if not one.right <= gutter <= other.left]
    return sorted(found)


def _deepest(gaps: Iterable[tuple[float, float]]) -> tuple[int, float]:
    """Return how many gaps have a part in common, and the middle of that."""
    edges = sorted((x, end) for gap in gaps for end, x in enumerate(gap))
    depth, best, middle = 0, 0, 0.0
    for (x, end), (after, _) in pairwise(edges):
        depth += -1 if end else 1
        if depth > best:
            best, middle = depth, (x + after) / 2
    return best, middle


def _is_prose(text: str, column: Sequence[_Piece]) -> bool:
    """Return whether lines are of a text that goes on from line to line."""
    lines = [text[one.start : one.end] for one in column]
    words = [word for line in lines for word in line.split()]
    has_words = len(words) >= _WORDS * len(lines)
    letters = sum(map(len, words))
    is_unspaced = letters >= _LETTERS * len(lines) and not any(word.lower() != word.upper() for word in words)
    if not (has_words or is_unspaced) or sum(any(map(str.isdigit, word)) for word in words) > _DIGITS * len(words):
        return False
    left, right = sorted(one.left for one in column)[len(column) // 10], sorted(one.right for one in column)
    width = right[-1 - len(right) // 10] - left
    if sum(one.right - one.left >= _FULL * width for one in column) < _FULL_LINES * len(column):
        return False
    longest = _ROOM * max(map(len, lines))
    wrapped = sum(len(line) + len(after.split()[0]) >= longest for line, after in pairwise(lines))
    if len(lines) < _FEW_LINES and wrapped < _WRAPPED * (len(lines) - 1):
        return False
    cased = [line for line in lines if line.lower() != line.upper()]
    flowing = sum(line[0].islower() for line in cased)
    return 2 * len(cased) < len(lines) or flowing >= _FLOWING * len(cased)


def _in_order(text: str, pieces: Sequence[_Piece], gutters: Sequence[float]) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and the separator after it of each piece, one column after the other."""

    def column(piece: _Piece) -> int:
        left, right = (sum(x > gutter for gutter in gutters) for x in (piece.left, piece.right))
        return left if left == right else -1

    for is_across, band in groupby(pieces, lambda one: column(one) < 0):
        part = list(band)
        jumps = sum(one.is_before(other) for one, other in pairwise(part))
        if not is_across and jumps >= _FEWEST_JUMPS:
            part.sort(key=column)
        for one, other in zip(part, [*part[1:], None], strict=True):
            is_broken = text[one.end : one.end + 1] == BROKEN
            is_same = other is not None and column(one) == column(other) and one.is_before(other)
            yield one.start, one.end, BROKEN if is_broken else " " if is_same else "\r\n"


# --- The title: the largest lines of the first page, if they look like one ---

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

_TITLE_WORD = re.compile(r"[^\W\d_]{3,}|[\u0e00-\u0eff\u1000-\u109f\u3040-\u9fff\uac00-\ud7a3]")
_SENTENCE_END = re.compile(r"(?<!\.)[.,;:]$")


class _Line(NamedTuple):
    text: str
    size: float
    height: float


def title_on_page(text: str, page: Any, textpage: Any, numbers: Sequence[int]) -> str:
    """Return the largest lines of a page as one line, or nothing if they are not a title.

    They are a title if they are one after the other, in the upper part of the page, larger than most of the text, have
    a word, and are neither a sentence nor longer than `LONGEST`.

    Args:
        text: Text of the page.
        page: The page of pypdfium2.
        textpage: Its text page.
        numbers: Number of the character in ``textpage`` for each one of ``text``.
    """
    lines = _title_lines(text, page, textpage, numbers)
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


def _title_lines(text: str, page: Any, textpage: Any, numbers: Sequence[int]) -> list[_Line]:
    """Return the upright lines with words, each with its size and its distance from the top of the page."""
    rectangle, box = raw.FS_RECTF(), raw.FS_RECTF()
    raw.FPDF_GetPageBoundingBox(page, box)
    turned, across = page.get_rotation() // 90, page.get_rotation() % 180 != 0
    found = []
    for start, end in islice(_lines(text), MOST_LINES):
        words = text[start:end]
        if not _TITLE_WORD.search(words):
            continue
        middle = start + len(words) // 2
        while text[middle].isspace():
            middle += 1
        number = numbers[middle]
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
