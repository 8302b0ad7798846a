"""Chunks of a source put together again."""

from __future__ import annotations

from collections.abc import Sequence

from ragistry.types import Document

Span = tuple[int, int]


def joined_text(chunks: Sequence[Document]) -> str:
    """The text from the first chunk to the last, what two of them share once; chunks are consecutive ones of a source.

    White space that lies between two chunks, and so in none, comes back as line ends, as many as there were
    characters: the length is that of the text in the source. Where a chunk does not say its ``start`` and ``end``, or
    its content was changed, it is not known what chunks share, and they are joined as paragraphs.
    """
    known = spans(chunks)
    if known is None:
        return "\n\n".join(chunk.content for chunk in chunks)
    text, reached = "", min(known)[0]
    for (start, end), chunk in sorted(zip(known, chunks, strict=True), key=lambda pair: pair[0]):
        text += "\n" * (start - reached) + chunk.content[max(0, reached - start) :]
        reached = max(reached, end)
    return text


def spans(chunks: Sequence[Document]) -> list[Span] | None:
    """Where the chunks stand in their source's text; None where one does not say so, or its content was changed."""
    found: list[Span] = []
    for chunk in chunks:
        start, end = chunk.metadata.get("start"), chunk.metadata.get("end")
        if type(start) is not int or type(end) is not int or end - start != len(chunk.content):
            return None
        found.append((start, end))
    return found
