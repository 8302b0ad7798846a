"""Select the part of a passage that answers a query, in limited space, and mark the matches."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from math import sqrt
from typing import NamedTuple

from ragistry.errors import ModelError
from ragistry.presentation.blocks import HEADER_ROW, Block, Style
from ragistry.presentation.matches import Match, marked_terms, matches, phrases
from ragistry.protocols import Embedder
from ragistry.utils.text.boundaries import first_sentence_start

Similar = Callable[[Sequence[str]], Sequence[float]]
"""Computes the similarity of each text to the query; higher is nearer."""

ENOUGH = 0.5
"""Share of the query's words above which a window is chosen by words only."""
PHRASE = 0.5
"""Weight of two adjacent words of the query, relative to a single word that occurs once."""
FEWEST = 20
"""Minimum characters of a piece; a shorter one is joined to the next."""


class Excerpt(NamedTuple):
    """Blocks of a passage. ``before``, ``after``: whether text was left out at the start or the end."""

    blocks: tuple[Block, ...]
    before: bool
    after: bool


class _Unit(NamedTuple):
    """A part of a block: a sentence, or a line of code. ``block``: the index of the block."""

    block: int
    start: int
    end: int
    matches: tuple[Match, ...]

    @property
    def size(self) -> int:
        return self.end - self.start


def similar_by(embedder: Embedder, query: str) -> Similar:
    """Return a function that computes cosine similarities to the query; calling it may raise `ModelError`."""

    def similar(texts: Sequence[str]) -> list[float]:
        [vector] = embedder.embed([query], role="query")
        return [float(cosine) for cosine in embedder.embed(texts) @ vector]

    return similar


def excerpt(
    blocks: Sequence[Block], query: str, language: str, room: int | None, similar: Similar | None = None
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
        similar: Also used to choose the window if the best one has few of the query's words.
    """
    if room is not None and len(blocks) > 1 and (blocks[0].kind, blocks[0].depth) == ("row", HEADER_ROW):
        head = _part(blocks[0], 0, _word_end(blocks[0].text, room // 3))
        rest = excerpt(blocks[1:], query, language, room - len(head.text), similar)
        found_in_head = matches(head.text, marked_terms(query, language), language)
        return rest._replace(blocks=(_marked(head, found_in_head), *rest.blocks))
    terms = marked_terms(query, language)
    found = [matches(block.text, terms, language) for block in blocks]
    if room is None or sum(len(block.text) for block in blocks) <= room:
        return Excerpt(tuple(map(_marked, blocks, found)), False, False)
    units = [unit for number, block in enumerate(blocks) for unit in _units(number, block, found[number])]
    counts = Counter(term for unit in units for match in unit.matches for term in match.terms)
    weigh = partial(_words_in, weights={term: 1 / sqrt(count) for term, count in counts.items()})
    nearness = [0.0] * len(units)
    first, last = _best(units, weigh, nearness, room)
    covered = {term for unit in units[first:last] for match in unit.matches for term in match.terms}
    if similar is not None and len(covered) < ENOUGH * len(terms):
        with suppress(ModelError):  # then only words decide
            nearness = _scaled(similar([blocks[unit.block].text[unit.start : unit.end] for unit in units]))
            first, last = _best(units, weigh, nearness, room)
    while first > 0 and sum(unit.size for unit in units[first - 1 : last]) <= room:
        first -= 1
    return _cut(blocks, found, units[first:last], room, (first > 0, last < len(units)))


def excerpt_line(part: Excerpt) -> str:
    """Write the excerpt as one line of text, with an ellipsis for omitted text."""
    words = " ".join(" ".join(f"{block.marker} {block.text}".split()) for block in part.blocks)
    return f"{'… ' if part.before else ''}{words}{' …' if part.after else ''}"


def _units(number: int, block: Block, found: Sequence[Match]) -> Iterator[_Unit]:
    for start, end in _pieces(block):
        yield _Unit(number, start, end, tuple(one for one in found if start <= one.start < end))


def _pieces(block: Block) -> Iterator[tuple[int, int]]:
    """Yield the lines of code, or the sentences of other text."""
    text, start = block.text, 0
    if block.kind == "code":
        for line in text.splitlines(keepends=True):
            yield start, start + len(line)
            start += len(line)
        return
    while start < len(text):
        end = first_sentence_start(text, start + FEWEST, len(text))
        end = len(text) if end < 0 else end
        yield start, end
        start = end


def _best(
    units: Sequence[_Unit], weigh: Callable[[Sequence[_Unit]], float], nearness: Sequence[float], room: int
) -> tuple[int, int]:
    """Return the best window ``[first, last)``; the first of equal ones."""
    best = (0, 0, -1.0)
    for first in range(len(units)):
        last, size = first, 0
        while last < len(units) and (last == first or size + units[last].size <= room):
            size += units[last].size
            last += 1
        near = max(nearness[first:last])
        score = weigh(units[first:last]) + near + 0.01 * nearness[first]
        # A window that starts at the words shows more of the text after them.
        score += 1e-6 * bool(units[first].matches)
        if score > best[2] + 1e-9:
            best = first, last, score
    return best[:2]


def _words_in(window: Sequence[_Unit], weights: dict[str, float]) -> float:
    found = [match for unit in window for match in unit.matches]
    terms = {term for match in found for term in match.terms}
    side_by_side = sum(
        0 <= after.start - before.end <= 2 and after.terms != before.terms
        for unit in window
        for before, after in zip(unit.matches, unit.matches[1:], strict=False)
    )
    return sum(weights[term] for term in terms) + PHRASE * min(side_by_side, 3) + 0.01 * len(found)


def _scaled(values: Sequence[float]) -> list[float]:
    low, high = min(values), max(values)
    return [(value - low) / (high - low) if high > low else 0.0 for value in values]


def _cut(
    blocks: Sequence[Block], found: Sequence[list[Match]], window: Sequence[_Unit], room: int, rest: tuple[bool, bool]
) -> Excerpt:
    parts: list[Block] = []
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


def _part(block: Block, start: int, end: int) -> Block:
    text = block.text[start:end]
    text, cut = text.rstrip(), len(text) - len(text.lstrip()) if block.kind != "code" else 0
    inside = [
        Style(max(s, start) - start - cut, min(e, start + len(text)) - start - cut, name)
        for s, e, name in block.styles
        if s < start + len(text) and e > start + cut
    ]
    styles = tuple(Style(max(0, s), e, name) for s, e, name in inside if s < e)
    return block._replace(text=text[cut:], styles=styles, marker=block.marker if start == 0 else "")


def _marked(block: Block, found: list[Match]) -> Block:
    spans = phrases(block.text, found)
    return block._replace(styles=(*block.styles, *(Style(start, end, "match") for start, end in spans)))
