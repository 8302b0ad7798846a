"""Join chunks of a source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ragistry.chunking.places import joined_places, place_at
from ragistry.types import Document

Span = tuple[int, int]
LINE_FEEDS = "line_feeds"
"""Key of the number of line feeds before a chunk in the text of its source. Chunks of earlier versions lack it."""


class Piece(NamedTuple):
    """The part of a chunk that no chunk before it has.

    Attributes:
        gap: White space before it, which no chunk contains.
        text: The text.
        chunk: The chunk.
        inside: Offset of the text in the content of the chunk.
        line_feeds: Number of line feeds before the chunk.
    """

    gap: str
    text: str
    chunk: Document
    inside: int
    line_feeds: int


def pieces_of(chunks: Iterable[Document], line_feeds: int = 0, *, whole: bool = False) -> Iterator[Piece]:
    """Divide the text of a source among its chunks, which follow each other by ``start``; each overlap is in one piece.

    The white space between two chunks has as many line feeds as the chunks say, by their number or else
    by their lines of the file. If they say nothing, or the offsets of a chunk are unknown, it has line feeds alone.

    Args:
        chunks: Chunks of the source.
        line_feeds: Number of line feeds before the first one, unless it has the number itself.
        whole: The first one is the first of its source, and the white space before it belongs to the text.
    """
    reached: int | None = 0 if whole else None
    feeds, before = line_feeds, None
    for chunk in chunks:
        known, content = spans([chunk]), chunk.content
        stored = chunk.metadata.get(LINE_FEEDS)
        if type(stored) is not int and before is not None:
            stored = _by_file(before, chunk, feeds)
        if reached is None:
            feeds = stored if type(stored) is int else feeds
            reached = known[0][0] if known else 0
            start = reached
        else:
            start = known[0][0] if known else reached + 2
        overlap = max(0, reached - start)
        blanks = max(0, start - reached)
        ends = min(blanks, max(0, stored - feeds)) if type(stored) is int and known else blanks
        gap = "\n" * ends + " " * (blanks - ends)
        earlier = feeds + ends - content.count("\n", 0, overlap)
        text = content[overlap:]
        yield Piece(gap, text, chunk, min(overlap, len(content)), earlier)
        feeds += ends + text.count("\n")
        if start + len(content) > reached or before is None:
            before = chunk
        reached = max(reached, start + len(content))


def whole_text(chunks: Iterable[tuple[str, int, int]]) -> str:
    """Join all chunks of a source as `pieces_of` does: texts, their ``start``, and the number of line feeds before."""
    parts, reached, feeds = list[str](), 0, 0
    for text, start, line_feeds in chunks:
        blanks = start - reached
        if blanks > 0:
            ends = min(blanks, max(0, line_feeds - feeds))
            parts.append("\n" * ends + " " * (blanks - ends))
            feeds += ends
        part = text[max(0, -blanks) :]
        parts.append(part)
        feeds += part.count("\n")
        reached = max(reached, start + len(text))
    return "".join(parts)


def _by_file(before: Document, chunk: Document, feeds: int) -> int | None:
    """Count the line feeds before a chunk by the lines of the file of both chunks; None if they are unknown."""
    last, first = place_at(before, len(before.content)).get("line"), chunk.metadata.get("line")
    return feeds + first - last if type(last) is int and type(first) is int else None


def joined_text(chunks: Sequence[Document]) -> str:
    """Join consecutive chunks of a source to one text, with each overlap once.

    White space between two chunks, which no chunk contains, is replaced by blanks and line ends (`pieces_of`), so that
    the length is that of the source's text. If a chunk has no ``start`` and ``end``, or its content was changed,
    overlaps are unknown, and the chunks are joined as paragraphs.
    """
    known = spans(chunks)
    if known is None:
        return "\n\n".join(chunk.content for chunk in chunks)
    ordered = [chunk for _, chunk in sorted(zip(known, chunks, strict=True), key=lambda pair: pair[0])]
    return "".join(piece.gap + piece.text for piece in pieces_of(ordered))


def places_of_joined(chunks: Sequence[Document]) -> dict[str, Any]:
    """Return the metadata that name the places of the text of `joined_text`; empty if they are unknown."""
    known = spans(chunks)
    if known is None:
        return {}
    pieces: list[tuple[int, Document, int, int]] = []
    first = reached = min(known)[0]
    for (start, end), chunk in sorted(zip(known, chunks, strict=True), key=lambda pair: pair[0]):
        if end > reached:
            begin = max(start, reached)
            pieces.append((begin - first, chunk, begin - start, end - start))
        reached = max(reached, end)
    return joined_places(pieces)


def spans(chunks: Sequence[Document]) -> list[Span] | None:
    """Return the offsets of the chunks in their source; None if offsets are unknown or content was changed."""
    found: list[Span] = []
    for chunk in chunks:
        start, end = chunk.metadata.get("start"), chunk.metadata.get("end")
        if type(start) is not int or type(end) is not int or end - start != len(chunk.content):
            return None
        found.append((start, end))
    return found
