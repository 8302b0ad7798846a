"""Find small chunks and return the larger part of the source around each."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ragistry.chunking.joined import joined_text
from ragistry.config.numbers import Whole
from ragistry.config.problems import Configuration, parse_config
from ragistry.protocols import DocumentStore, Technique
from ragistry.techniques.built_in import TechniqueConfig
from ragistry.techniques.folding import retrieve_filled
from ragistry.techniques.neighbours import fetch_for, widened
from ragistry.types import Document, Where


class ParentDocumentTechnique:
    """Parent document: replaces each hit of the base by the largest part of its source that is not too long.

    Callan, "Passage-Level Evidence in Document Retrieval", 1994. The parts around a hit are, from small to
    large, its section, the enclosing sections (Markdown), its page (PDF), and the whole source. If the smallest has
    more than ``max_characters``, as much text around the hit as fits is returned. Hits in one part become one document
    with the best score (`neighbours.widened` describes a document).
    """

    class Config(TechniqueConfig):
        max_characters: Whole = Field(default=4_000, ge=1, description="maximum length of a document in characters")
        reach: Whole = Field(default=8, ge=1, le=100, description="number of chunks read on each side of a hit")

    def __init__(self, config: Configuration, *, base: Technique, store: DocumentStore) -> None:
        self.config = parse_config(self.Config, config, type(self).__name__)
        self.base = base
        self.store = store

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        wanted = self.config.checked_limit(query, top_k)
        return retrieve_filled(
            lambda number: self.base.retrieve(query, top_k=number, where=where),
            lambda hits: widened(
                self.store, hits, reach=self.config.reach, top_k=wanted, where=where, choose=self._part
            ),
            wanted,
            first=fetch_for(wanted),
        )

    def _part(self, chunks: list[Document], at: int) -> list[Document]:
        """Select the largest part around the hit that fits."""
        fitting: list[Document] = []
        path = _path(chunks[at])
        for depth in range(len(path), -1, -1):
            first, last = _same_part(chunks, at, path[:depth])
            if not self._fits(chunks[first:last]):
                return fitting or self._around(chunks[first:last], at - first)
            fitting = chunks[first:last]
        return fitting

    def _around(self, chunks: list[Document], at: int) -> list[Document]:
        """Select the hit and as many nearest neighbours as fit, alternating after and before it."""
        first = last = at
        for index in sorted(range(len(chunks)), key=lambda index: (abs(index - at), -index)):
            wider = min(first, index), max(last, index)
            if not self._fits(chunks[wider[0] : wider[1] + 1]):
                break
            first, last = wider
        return chunks[first : last + 1]

    def _fits(self, chunks: list[Document]) -> bool:
        return len(joined_text(chunks)) <= self.config.max_characters


def _path(chunk: Document) -> tuple[Any, ...]:
    """Return the names of the parts around a chunk, from the outermost; empty for a text without parts."""
    headings = chunk.metadata.get("heading_context")
    if isinstance(headings, str):
        return tuple(headings.split(" > "))
    return (chunk.metadata["page"],) if "page" in chunk.metadata else ()


def _same_part(chunks: list[Document], at: int, path: tuple[Any, ...]) -> tuple[int, int]:
    """Return start and end of the consecutive chunks around ``at`` in the part of that path."""
    first, last = at, at + 1
    while first > 0 and _path(chunks[first - 1])[: len(path)] == path:
        first -= 1
    while last < len(chunks) and _path(chunks[last])[: len(path)] == path:
        last += 1
    return first, last
