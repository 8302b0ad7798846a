"""Cut a text into spans of limited length, at the best place in each window.

A span has as many paragraphs as fit. If the last paragraph end would leave it less than a third full, it extends to the
last end of a sentence, else of a line, else of a word, else to exactly the limit, between two graphemes. In code and
tables, lines are used instead of sentences.

Invariants: a span has no white space at its ends, is not empty and not too long; starts and ends increase strictly;
every non-white-space character is in a span; neighbours share at most ``overlap`` characters; the result is
deterministic. The time is linear in the length of the text.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ragistry.errors import ConfigError
from ragistry.text import boundaries

Span = tuple[int, int]


class Region(NamedTuple):
    """A part ``text[start:stop]`` that is cut separately: no span or overlap crosses its ends.

    ``body``: the first span extends past this offset if possible, so that a heading keeps the text below it.
    ``blocks``: spans, in order and without white space at their ends, that are not divided if they fit.
    ``lines``: the whole region is code or a table.
    """

    start: int
    stop: int
    body: int = 0
    blocks: Sequence[Span] = ()
    lines: bool = False


def check_sizes(max_chunk_size: Any, overlap: Any) -> None:
    """Raise `ConfigError` unless ``0 <= overlap < max_chunk_size``, both whole numbers."""
    for name, value, least in (("max_chunk_size", max_chunk_size, 1), ("overlap", overlap, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ConfigError(f"{name} must be a whole number of characters, {least} or more, got {value!r}")
    if overlap >= max_chunk_size:
        raise ConfigError(
            f"overlap must be smaller than max_chunk_size, got {overlap!r} and {max_chunk_size!r}; "
            f"a fifth is usual: {max_chunk_size // 5}"
        )


def cut_region(text: str, region: Region, size: int, overlap: int) -> Iterator[Span]:
    """Yield the spans ``(start, end)`` of one region, in order; none for white space.

    Args:
        text: The whole text.
        region: The region.
        size: Maximum number of characters of a span; see `check_sizes`.
        overlap: Maximum number of characters shared by neighbours: whole sentences if they fit, else words, and in
            unbroken text exactly this number.
    """
    stop = region.start + len(text[region.start : region.stop].rstrip())
    start = new = boundaries.next_word(text, region.start)  # new: the first character not yet in a span
    while new < stop:
        limit = start + size
        end = _end(text, region, start, new, limit) if limit < stop else stop
        if text[end - 1].isspace():
            end = start + len(text[start:end].rstrip())
        yield start, end
        new = boundaries.next_word(text, end)
        start = _start(text, region, (start, end), new, size, overlap) if overlap and new < stop else new


def _end(text: str, region: Region, start: int, new: int, limit: int) -> int:
    """Find the end of the span from ``start``: after ``new``, at most ``limit``; white space may precede it."""
    third = start + (limit - start) // 3
    lo = region.body if new < region.body < limit else new
    if not region.blocks:
        return _boundary(text, lo, third, limit, region.lines)
    if block := _block_around(region.blocks, limit):
        first, last = block
        fits = last - first <= limit - start  # in a span of its own
        if first > (new if fits else max(lo, third)):
            return first
        return _boundary(text, lo, third, limit, lines=True)
    end = _boundary(text, lo, third, limit, region.lines)
    block = _block_around(region.blocks, end)
    return block[1] if block else end


def _boundary(text: str, lo: int, third: int, limit: int, lines: bool) -> int:
    """Find the best end in ``(lo, limit]``; a span that ends before ``third`` is nearly empty."""
    end = boundaries.last_paragraph_end(text, max(lo, third), limit)
    if end < 0 and not lines:
        end = boundaries.last_sentence_end(text, lo, limit)
    if end < 0:
        end = boundaries.last_line_end(text, lo if lines else max(lo, third), limit)
    if end < 0:
        end = boundaries.last_word_end(text, lo, limit)
    return end if end > 0 else cut_before(text, lo, limit)


def _start(text: str, region: Region, before: Span, new: int, size: int, overlap: int) -> int:
    """Find the start of the span after ``before``: ``new``, or up to ``overlap`` characters inside ``before``."""
    start, end = before
    lo = max(start + 1, end - overlap, new - size + 1)  # the last leaves room for one new character
    divided = _block_around(region.blocks, end)
    lines = region.lines or divided is not None
    at = _first_start(text, lo, end, lines)
    if at < 0:  # no white space from lo to end
        at = cut_after(text, start, lo, end) if new == end and start < end - overlap else new
    if not region.blocks:
        return at
    while (block := _block_around(region.blocks, at)) and block != divided:
        after = _first_start(text, block[1], end, lines)
        at = after if after > 0 else new
    ahead = _block_around(region.blocks, new + 1)
    return new if ahead and ahead[1] - ahead[0] <= size < ahead[1] - at else at


def _first_start(text: str, lo: int, hi: int, lines: bool) -> int:
    first = boundaries.first_line_start if lines else boundaries.first_sentence_start
    at = first(text, lo, hi)
    return at if at > 0 else boundaries.first_word_start(text, lo, hi)


def _block_around(blocks: Sequence[Span], at: int) -> Span | None:
    """Return the block that a cut at ``at`` would divide."""
    if not blocks:
        return None
    block = blocks[bisect_left(blocks, (at,)) - 1]
    return block if block[0] < at < block[1] else None


_JOINER = "\u200d"
_FLAG_LETTERS = "".join(map(chr, range(0x1F1E6, 0x1F200)))
_VIRAMA = 9  # the combining class of the sign that joins two consonants
_REACH = 64  # longer than any cluster in real text (UAX #15 allows 30 marks); keeps the search short on any other


def cut_before(text: str, lo: int, at: int) -> int:
    """Find the last offset in ``(lo, at]`` between two graphemes; ``at`` if none is near."""
    for offset in range(at, max(lo, at - _REACH), -1):
        if not _joined(text, lo, offset):
            return offset
    return at


def cut_after(text: str, lo: int, at: int, hi: int) -> int:
    """Find the first offset in ``[at, hi)`` between two graphemes; ``at`` if none is near.

    ``lo``: an earlier offset known to be between two graphemes.
    """
    for offset in range(at, min(hi, at + _REACH)):
        if not _joined(text, lo, offset):
            return offset
    return at


def _joined(text: str, lo: int, at: int) -> bool:
    """Return whether ``at`` is inside a grapheme; ``lo`` is between two graphemes."""
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
