"""Select the part of a passage that answers a query, in limited space, and mark the matches."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import takewhile
from types import MappingProxyType
from typing import Any, NamedTuple

from ragistry.presentation.answering import FEWEST, answering_line, best_window, weights_of
from ragistry.presentation.blocks import HEADER_ROW, PassageBlock, Style
from ragistry.presentation.hits import body_of
from ragistry.presentation.matches import Match, marked_terms, matches, named_terms, phrases
from ragistry.presentation.navigation import has_words, navigation_lines
from ragistry.text.boundaries import sentence_spans
from ragistry.text.languages import chunk_language
from ragistry.types import Document


class Excerpt(NamedTuple):
    """Blocks of a passage.

    Attributes:
        blocks: The blocks, with marked matches.
        before: Whether text was left out at the start.
        after: Whether text was left out at the end.
        place: Place of the line that answers, see `answering_line`; empty if it was not asked for.
    """

    blocks: tuple[PassageBlock, ...]
    before: bool
    after: bool
    place: Mapping[str, Any] = MappingProxyType({})


class _Unit(NamedTuple):
    """A part of a block: a sentence, or a line of code. ``block``: the index of the block."""

    block: int
    start: int
    end: int
    matches: tuple[Match, ...]

    @property
    def size(self) -> int:
        return self.end - self.start


def excerpt_of(document: Document, query: str, language: str, room: int | None) -> Excerpt:
    """Select the part of a passage that contains the line that answers; see `answering_line` and `excerpt`."""
    found = answering_line(document, query, language)
    own = chunk_language(document.metadata, language)
    blocks: Sequence[PassageBlock] = body_of(document)
    if room is not None:
        blocks = _with_content(blocks, document.content)
    return excerpt(blocks, query, own, room, line=found.number)._replace(place=found.place)


def _with_content(blocks: Sequence[PassageBlock], text: str) -> Sequence[PassageBlock]:
    """Return the blocks without navigation and borders at their ends, or all if there is nothing else."""
    empty = navigation_lines(text.splitlines())
    kept = []
    for block in blocks:
        if block.kind == "code":
            lines = block.text.split("\n")
            filled = [number for number, line in enumerate(lines) if has_words(line)]
            if filled:
                start = sum(len(line) + 1 for line in lines[: filled[0]])
                end = sum(len(line) + 1 for line in lines[: filled[-1] + 1]) - 1
                kept.append(_part(block, start, end))
        elif block.kind == "heading" or not _is_empty(block, empty):
            kept.append(block)
    return kept if any(block.kind != "heading" for block in kept) else blocks


def _is_empty(block: PassageBlock, empty: Collection[int]) -> bool:
    return not has_words(block.text) or bool(block.lines and all(line in empty for _, line in block.lines))


def excerpt(
    blocks: Sequence[PassageBlock],
    query: str,
    language: str,
    room: int | None,
    *,
    line: int | None = None,
) -> Excerpt:
    """Select the consecutive sentences with most of the query's words.

    Rare words of the passage count more than frequent ones, and adjacent words more than separate ones. A sentence
    longer than ``room`` is cut. The header row of a table that began before the passage is always shown, in a third of
    ``room`` at most.

    Args:
        blocks: Blocks of the passage.
        query: The query.
        language: Language of the passage.
        room: Maximum number of characters; None for the whole passage.
        line: Line of the passage that the excerpt contains; see `answering_line`.
    """
    if room is not None and len(blocks) > 1 and (blocks[0].kind, blocks[0].depth) == ("row", HEADER_ROW):
        head = _part(blocks[0], 0, _word_end(blocks[0].text, room // 3))
        rest = excerpt(blocks[1:], query, language, room - len(head.text), line=line)
        found_in_head = matches(head.text, marked_terms(query, language), language)
        return rest._replace(blocks=(_marked(head, found_in_head), *rest.blocks))
    terms = marked_terms(query, language)
    found = [matches(block.text, terms, language) for block in blocks]
    if room is None or sum(len(block.text) for block in blocks) <= room:
        return Excerpt(tuple(map(_marked, blocks, found)), False, False)
    units = [unit for number, block in enumerate(blocks) for unit in _units(number, block, found[number])]
    units = [unit for unit in units if has_words(blocks[unit.block].text[unit.start : unit.end])] or units
    weigh = weights_of(units, named_terms(query, language))
    anchors = None if line is None else _with_line(blocks, units, line)
    first, last = best_window(units, weigh, room, anchors)
    if last < len(units) and _introduces(blocks, units[last - 1]):
        last = _end_of_introduced(units, last, room // 2)
    while first > 0 and sum(unit.size for unit in units[first - 1 : last]) <= room:
        first -= 1
    return _cut(blocks, found, units[first:last], room, (first > 0, last < len(units)))


def _introduces(blocks: Sequence[PassageBlock], unit: _Unit) -> bool:
    return blocks[unit.block].text[unit.start : unit.end].rstrip(" *_`").endswith((":", "\uff1a"))


def _end_of_introduced(units: Sequence[_Unit], start: int, room: int) -> int:
    """Return the end of what a lead-in before ``start`` introduces: one unit, and others that fit."""
    last, size = start + 1, units[start].size
    while last < len(units) and size + units[last].size <= room:
        size += units[last].size
        last += 1
    return last


def excerpt_line(part: Excerpt) -> str:
    """Write the excerpt as one line of text, with an ellipsis for omitted text."""
    words = " ".join(" ".join(f"{block.marker} {block.text}".split()) for block in part.blocks)
    return f"{'… ' if part.before else ''}{words}{' …' if part.after else ''}"


def _with_line(blocks: Sequence[PassageBlock], units: Sequence[_Unit], line: int) -> tuple[int, int] | None:
    """Return the units ``[first, last)`` with text of a line of the passage, or the next one with later text."""
    ends = [blocks[unit.block].line_at(unit.end - 1) for unit in units]
    first = next((number for number, end in enumerate(ends) if end >= line), None)
    if first is None:
        return None
    starts = (blocks[unit.block].line_at(unit.start) for unit in units[first:])
    return first, first + max(1, sum(1 for _ in takewhile(lambda start: 0 <= start <= line, starts)))


def _units(number: int, block: PassageBlock, found: Sequence[Match]) -> Iterator[_Unit]:
    for start, end in _pieces(block):
        yield _Unit(number, start, end, tuple(one for one in found if start <= one.start < end))


def _pieces(block: PassageBlock) -> Iterator[tuple[int, int]]:
    """Yield the lines of code, or the sentences of other text."""
    text, start = block.text, 0
    if block.kind == "code":
        for line in text.splitlines(keepends=True):
            yield start, start + len(line)
            start += len(line)
        return
    yield from sentence_spans(text, FEWEST)


def _cut(
    blocks: Sequence[PassageBlock],
    found: Sequence[list[Match]],
    window: Sequence[_Unit],
    room: int,
    rest: tuple[bool, bool],
) -> Excerpt:
    parts: list[PassageBlock] = []
    before, after = rest
    for number in sorted({unit.block for unit in window}):
        own = [unit for unit in window if unit.block == number]
        start, end = own[0].start, own[-1].end
        if end - start > room:
            start, end = _around(blocks[number].text, found[number], start, end, room)
            before, after = before or start > own[0].start, after or end < own[-1].end
        parts.append(_part(_marked(blocks[number], found[number]), start, end))
    return Excerpt(tuple(part for part in parts if part.text), before, after)


def _around(text: str, found: Sequence[Match], start: int, end: int, room: int) -> tuple[int, int]:
    """Return the window of ``room`` characters with most matches, in a text that cannot be cut at sentences."""
    inside = [one for one in found if start <= one.start < end]
    if not inside:
        return start, _word_end(text, start + room)
    starts = [one.start for one in inside]
    ends = [bisect_left(starts, at + 0.7 * room) for at in starts]
    first = inside[max(range(len(inside)), key=lambda number: ends[number] - number)]
    begin = max(start, first.start - room // 4)
    begin = begin if begin == start else text.find(" ", begin, first.start) + 1 or begin
    return begin, _word_end(text, min(end, begin + room))


def _word_end(text: str, at: int) -> int:
    if at >= len(text):
        return len(text)
    blank = text.rfind(" ", at - 30, at + 1)
    return blank if blank > 0 else at


def _part(block: PassageBlock, start: int, end: int) -> PassageBlock:
    text = block.text[start:end]
    text, cut = text.rstrip(), len(text) - len(text.lstrip()) if block.kind != "code" else 0
    inside = [
        Style(max(s, start) - start - cut, min(e, start + len(text)) - start - cut, name)
        for s, e, name in block.styles
        if s < start + len(text) and e > start + cut
    ]
    styles = tuple(Style(max(0, s), e, name) for s, e, name in inside if s < e)
    begin = start + cut
    later = tuple((at - begin, number) for at, number in block.lines if begin < at < end)
    lines = ((0, block.line_at(begin)), *later) if block.lines else ()
    return block._replace(text=text[cut:], styles=styles, marker=block.marker if start == 0 else "", lines=lines)


def _marked(block: PassageBlock, found: list[Match]) -> PassageBlock:
    spans = phrases(block.text, found)
    return block._replace(styles=(*block.styles, *(Style(start, end, "match") for start, end in spans)))
