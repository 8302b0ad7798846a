"""Select the part of a passage that answers a query, in limited space, and mark the matches."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby, pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

from ragistry.chunking.breadcrumb import NAME_LIMIT, searched_names
from ragistry.presentation.answering import FEWEST, AnsweringLine, answering_line
from ragistry.presentation.blocks import HEADER_ROW, PassageBlock, Style
from ragistry.presentation.hits import body_of
from ragistry.presentation.matches import Match, marked_terms, matches, phrases, terms_in
from ragistry.presentation.navigation import has_words, navigation_lines
from ragistry.text.boundaries import sentence_spans
from ragistry.text.languages import chunk_language
from ragistry.types import Document
from ragistry.utils.quoting import visible_line

_JOINERS = dict.fromkeys(map(ord, "-._/"), " ")


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
    """A part of a block: a sentence, or a line of code.

    Attributes:
        block: Index of the block.
        start: Offset of its first character in the block.
        end: Offset after its last character.
        first: The first line of the passage in it, -1 if it is not from the passage.
        last: The last line of the passage in it.
        text: Its text.
        matches: Words of the query in it.
    """

    block: int
    start: int
    end: int
    first: int
    last: int
    text: str
    matches: tuple[Match, ...]


def excerpt_of(document: Document, query: str, language: str, room: int | None) -> Excerpt:
    """Select the sentence that answers, see `answering_line`, and the sentences around it.

    A sentence longer than ``room`` is cut. The header row of a table that began before the passage is always shown, in
    a third of ``room`` at most.

    Args:
        document: A result of a search.
        query: The query.
        language: Language of passages whose metadata have none.
        room: Maximum number of characters; None for the whole passage.
    """
    answer = answering_line(document, query, language)
    own = chunk_language(document.metadata, language)
    blocks: Sequence[PassageBlock] = body_of(document)
    names = tuple(_names(document, query, own))
    if room is None:
        whole = excerpt(blocks, query, own)
        return whole._replace(blocks=(*names, *whole.blocks), place=answer.place)
    blocks = _with_content(blocks, document.content)
    room -= sum(len(block.text) for block in names)
    header: Sequence[PassageBlock] = ()
    if len(blocks) > 1 and (blocks[0].kind, blocks[0].depth) == ("row", HEADER_ROW):
        header, blocks = [_part(blocks[0], 0, _word_end(blocks[0].text, room // 3))], blocks[1:]
        room -= len(header[0].text)
    if sum(len(block.text) for block in blocks) > room:
        shown = _around(answer, blocks, query, own, room)
    else:
        shown = excerpt(blocks, query, own)
    return shown._replace(blocks=(*names, *excerpt(header, query, own).blocks, *shown.blocks), place=answer.place)


def _names(document: Document, query: str, language: str) -> Iterator[PassageBlock]:
    """Yield the names of the source that have a word of the query which its passage does not have, marked."""
    terms = marked_terms(query, language)
    for label, name in searched_names(document.metadata).items():
        text = visible_line(f"{label}: {name}", NAME_LIMIT)
        words = text.replace(label, " " * len(label), 1).translate(_JOINERS)  # so that only a part of a word is marked
        found = matches(words, terms, language)
        if found and not terms_in(found) <= terms_in(matches(document.content, terms, language)):
            yield PassageBlock("paragraph", text, tuple(Style(*span, "match") for span in phrases(words, found)))


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
        elif block.kind == "heading" or (
            has_words(block.text) and not (block.lines and all(line in empty for _, line in block.lines))
        ):
            kept.append(block)
    return kept if any(block.kind != "heading" for block in kept) else blocks


def excerpt(blocks: Sequence[PassageBlock], query: str, language: str) -> Excerpt:
    """Mark the words of a query in all of these blocks."""
    terms = marked_terms(query, language)
    return Excerpt(tuple(_marked(block, matches(block.text, terms, language)) for block in blocks), False, False)


def _around(answer: AnsweringLine, blocks: Sequence[PassageBlock], query: str, language: str, room: int) -> Excerpt:
    """Cut blocks to the sentence that answers, and to neighbours for which there is room."""
    terms = marked_terms(query, language)
    found = [matches(block.text, terms, language) for block in blocks]
    units = [unit for number, block in enumerate(blocks) for unit in _units(number, block, found[number])]
    units = [unit for unit in units if has_words(unit.text)] or units
    first = _answering(units, answer)
    last, left = first + 1, room - len(units[first].text)
    while True:  # of two neighbours that fit, the one with more matches first
        fits_before = first > 0 and len(units[first - 1].text) <= left
        fits_after = last < len(units) and len(units[last].text) <= left
        if fits_after and not (fits_before and len(units[first - 1].matches) > len(units[last].matches)):
            left -= len(units[last].text)
            last += 1
        elif fits_before:
            first -= 1
            left -= len(units[first].text)
        else:
            break
    if last < len(units) and units[last - 1].text.rstrip(" *_`").endswith((":", "\uff1a")):
        sizes = accumulate(len(unit.text) for unit in units[last:])
        last += max(1, sum(size <= room // 2 for size in sizes))  # what this lead-in introduces
    parts: list[PassageBlock] = []
    before, after = first > 0, last < len(units)
    for number, group in groupby(units[first:last], key=lambda unit: unit.block):
        own = list(group)
        start, end = own[0].start, own[-1].end
        if end - start > room:
            starts, text = [one.start for unit in own for one in unit.matches], blocks[number].text
            if starts:  # the window with most matches, in a text that cannot be cut at sentences
                ends = [bisect_left(starts, at + 0.7 * room) for at in starts]
                densest = starts[max(range(len(starts)), key=lambda place: ends[place] - place)]
                begin = max(start, densest - room // 4)
                start = begin if begin == start else text.find(" ", begin, densest) + 1 or begin
            end = _word_end(text, min(end, start + room))
            before, after = before or start > own[0].start, after or end < own[-1].end
        parts.append(_part(_marked(blocks[number], found[number]), start, end))
    return Excerpt(tuple(part for part in parts if part.text), before, after)


def _answering(units: Sequence[_Unit], answer: AnsweringLine) -> int:
    """Return the unit with most words of the sentence that answers, in its line or else in the next one with text."""
    line = max(answer.number, next((unit.first for unit in units if unit.last >= answer.number), 0))
    in_line = [at for at, unit in enumerate(units) if unit.first <= line <= unit.last]
    return max(in_line, key=lambda at: len(terms_in(units[at].matches) & answer.terms), default=0)


def excerpt_line(part: Excerpt) -> str:
    """Write the excerpt as one line of text, with an ellipsis for omitted text."""
    words = " ".join(" ".join(f"{block.marker} {block.text}".split()) for block in part.blocks)
    return f"{'… ' if part.before else ''}{words}{' …' if part.after else ''}"


def _units(number: int, block: PassageBlock, found: Sequence[Match]) -> Iterator[_Unit]:
    """Yield the lines of code, or the sentences of other text."""
    spans: Iterable[tuple[int, int]] = sentence_spans(block.text, FEWEST)
    if block.kind == "code":
        spans = pairwise(accumulate(map(len, block.text.splitlines(keepends=True)), initial=0))
    for start, end in spans:
        lines = block.line_at(start), block.line_at(end - 1)
        inside = tuple(one for one in found if start <= one.start < end)
        yield _Unit(number, start, end, *lines, block.text[start:end], inside)


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
    return block._replace(styles=(*block.styles, *(Style(*span, "match") for span in phrases(block.text, found))))
