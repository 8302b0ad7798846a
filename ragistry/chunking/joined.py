"""Join chunks of a source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragistry.chunking.places import joined_places
from ragistry.types import Document

Span = tuple[int, int]


def joined_text(chunks: Sequence[Document]) -> str:
    """Join consecutive chunks of a source to one text, with each overlap once.

    White space between two chunks, which no chunk contains, is replaced by the same number of line ends, so that the
    length is that of the source's text. If a chunk has no ``start`` and ``end``, or its content was changed, overlaps
    are unknown, and the chunks are joined as paragraphs.
    """
    known = spans(chunks)
    if known is None:
        return "\n\n".join(chunk.content for chunk in chunks)
    text, reached = "", min(known)[0]
    for (start, end), chunk in sorted(zip(known, chunks, strict=True), key=lambda pair: pair[0]):
        text += "\n" * (start - reached) + chunk.content[max(0, reached - start) :]
        reached = max(reached, end)
    return text


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
