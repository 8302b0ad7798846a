"""Join chunks of a source to its text and lines: the file may be gone, or on another machine."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ragistry.chunking.places import joined_places, place_at, places_in
from ragistry.protocols import LibraryStore
from ragistry.types import Document, SourceInfo
from ragistry.utils.ids import chunk_id

Span = tuple[int, int]
LINE_FEEDS = "line_feeds"
"""Key of the number of line feeds before a chunk in the text of its source. Chunks of earlier versions lack it."""
AT_ONCE = 200
"""Maximum number of chunks that are read from the store at once."""
FIRST = 8
"""Number of chunks that are read first: often one line is wanted. Then it is four times as many, and so on."""


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


class Lines(NamedTuple):
    """Consecutive whole lines of a source.

    Attributes:
        first: Number of the first line, from 1.
        texts: The lines without their ends.
        pieces: Offsets in the text of these lines, each with the piece that begins there.
        chunk: Position of the chunk in which the first line begins.
        line_feeds: Number of line feeds before that chunk.
        read: Number of chunks that were read for these lines.
    """

    first: int
    texts: list[str]
    pieces: list[tuple[int, Piece]]
    chunk: int
    line_feeds: int
    read: int

    def place_at(self, offset: int) -> dict[str, Any]:
        """Return the place at an offset of the text of these lines."""
        return place_at(*self.chunk_at(offset))

    def chunk_at(self, offset: int) -> tuple[Document, int]:
        """Return the chunk at an offset of the text of these lines, and the offset there."""
        at = max(0, bisect_right(self.pieces, offset, key=lambda one: one[0]) - 1)
        start, piece = self.pieces[at]
        return piece.chunk, max(0, piece.inside + offset - start)

    def places(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield each place that begins in these lines, with the number of its line."""
        size, line, reached = self.offset(self.first + len(self.texts)), self.first, 0
        text = "\n".join(self.texts)
        for start, piece in self.pieces:
            for inside, _ in places_in(piece.chunk.metadata):
                offset = start + max(inside - piece.inside, 0)
                if 0 <= offset < size:
                    line, reached = line + text.count("\n", reached, offset), max(reached, offset)
                    yield line, self.place_at(offset)

    def offset(self, line: int) -> int:
        """Return the offset at which a line begins in the text of these lines."""
        return sum(map(len, self.texts[: line - self.first])) + line - self.first


def lines_of(store: LibraryStore, info: SourceInfo, chunk: int = 0, line_feeds: int = 0) -> Iterator[Lines]:
    """Yield the lines of a source in order, some chunks at a time.

    Args:
        store: The store.
        info: The source, under its name in the store.
        chunk: Position of the first chunk to read. Its first line may have lost its beginning.
        line_feeds: Number of line feeds before this chunk.
    """
    first, text, pieces = line_feeds + 1, "", list[tuple[int, Piece]]()
    began, feeds, waiting, most = chunk, line_feeds, 0, FIRST
    for position, piece in enumerate(pieces_of(stored_chunks(store, info, chunk), line_feeds, whole=not chunk), chunk):
        text += piece.gap
        indent = len(piece.gap) - piece.gap.rfind("\n") - 1  # of the first line, which no chunk may contain
        pieces.append((len(text) - indent, piece._replace(inside=piece.inside - indent)))
        text += piece.text
        waiting += 1
        end = text.rfind("\n") + 1 if waiting >= min(most, AT_ONCE) else 0
        if end:
            most *= 4
            texts = text[: end - 1].split("\n")
            yield Lines(first, texts, pieces, began, feeds, waiting)
            first, text, waiting = first + len(texts), text[end:], 0
            at = max(0, bisect_right(pieces, end, key=lambda one: one[0]) - 1)
            pieces = [(start - end, one) for start, one in pieces[at:]]
            began, feeds = position + 1 - len(pieces), pieces[0][1].line_feeds
    if pieces and (text or waiting):
        yield Lines(first, text.removesuffix("\n").split("\n"), pieces, began, feeds, waiting)


def stored_chunks(store: LibraryStore, info: SourceInfo, first: int = 0) -> Iterator[Document]:
    """Yield the chunks of a source in order, from a position on; they are found by their ids, without a search."""
    start, most = first, FIRST
    while start < info.chunks:
        numbers = range(start, min(start + min(most, AT_ONCE), info.chunks))
        found = store.get([chunk_id(info.collection, info.source_file, number) for number in numbers])
        if len(found) < len(numbers):  # chunks with other ids, or fewer than there were
            where = {"$and": [{"collection": info.collection}, {"source_file": info.source_file}]}
            rest = sorted(
                store.scan(where), key=lambda one: (one.metadata.get("start", 0), one.metadata["chunk_index"])
            )
            yield from rest[start:]
            return
        yield from found
        start, most = numbers.stop, most * 4


def chunk_before(store: LibraryStore, info: SourceInfo, line: int) -> tuple[int, int]:
    """Return the position of a chunk that begins before a line, and the number of line feeds before the chunk.

    It is the last such chunk if the chunks have these numbers, otherwise the first one of the source.
    """
    low, high, feeds = 0, info.chunks - 1, 0
    while low < high:
        middle = (low + high + 1) // 2
        found = store.get([chunk_id(info.collection, info.source_file, middle)])
        before = found[0].metadata.get(LINE_FEEDS) if found else None
        if type(before) is not int:
            return 0, 0
        if before < line - 1:
            low, feeds = middle, before
        else:
            high = middle - 1
    return low, feeds
