"""The context of a hit: chunks of its source before and after it, joined into one document."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from ragistry.chunking.breadcrumb import SENTENCE_AFTER, SENTENCE_BEFORE
from ragistry.chunking.joined import joined_text, places_of_joined, spans
from ragistry.protocols import DocumentStore
from ragistry.trace import stage
from ragistry.types import TOP_K_LIMIT, Document, Where
from ragistry.utils.ids import chunk_id
from ragistry.utils.where import matches, normalise

Choose = Callable[[list[Document], int], list[Document]]
"""Selects chunks to return, including the hit, from consecutive chunks and the hit's position among them."""


class ChunkPlace(NamedTuple):
    """Identifies a chunk of a source; the fields follow `chunk_id`."""

    collection: str
    source_file: str
    chunk_index: int


def fetch_for(top_k: int) -> int:
    """Return the number of hits to request, so that ``top_k`` documents remain after neighbours are joined."""
    return min(3 * top_k, TOP_K_LIMIT)


def widened(
    store: DocumentStore, hits: Sequence[Document], *, reach: int, top_k: int, where: Where | None, choose: Choose
) -> list[Document]:
    """Join hits with chunks before and after them.

    Each chunk is used once, by the best hit that selects it; a hit inside a document above it is part of that document.
    A neighbour must meet ``where`` and come from the same version of the source. A hit without ``collection``,
    ``source_file`` and ``chunk_index`` does not change.

    Args:
        store: The store of the hits.
        hits: The hits, best first.
        reach: Number of chunks read on each side of a hit.
        top_k: Maximum number of documents.
        where: The condition of the search.
        choose: Selects the chunks of a document.

    Returns:
        Documents with the id, the score and the metadata of the hit, but their own ``start``, ``end`` and ``places``;
        ``chunk_indexes`` lists their chunks.
    """
    condition = normalise(where)
    documents: list[Document] = []
    taken: set[ChunkPlace | None] = set()
    rest = iter(hits)
    with stage("widen") as this:
        this.documents_in = len(hits)
        while some := list(islice((hit for hit in rest if _place(hit) not in taken), top_k - len(documents))):
            known = _around(store, some, reach, condition)
            for hit in some:
                place = _place(hit)
                if place is None:
                    documents.append(hit)
                elif place not in taken:
                    chosen = choose(*_run(hit, place, known, taken, reach))
                    wide = _joined(hit, chosen)
                    # each chunk meets a condition on `start` and `end`; the joined document may not
                    if condition is not None and not matches(condition, wide.metadata):
                        chosen, wide = [hit], hit
                    taken.update(map(_place, chosen))
                    documents.append(wide)
        this.documents_out = len(documents)
    return documents


def _place(document: Document) -> ChunkPlace | None:
    get = document.metadata.get
    collection, source_file, index = get("collection"), get("source_file"), get("chunk_index")
    if isinstance(collection, str) and isinstance(source_file, str) and type(index) is int:
        return ChunkPlace(collection, source_file, index)
    return None


def _around(
    store: DocumentStore, hits: Sequence[Document], reach: int, condition: Where | None
) -> dict[ChunkPlace | None, Document]:
    """Read the neighbours of all hits in one call."""
    wanted = dict.fromkeys(
        chunk_id(place.collection, place.source_file, index)
        for place in map(_place, hits)
        if place is not None
        for index in range(max(0, place.chunk_index - reach), place.chunk_index + reach + 1)
        if index != place.chunk_index
    )
    return {
        _place(chunk): chunk
        for chunk in store.get(list(wanted))
        if condition is None or matches(condition, chunk.metadata)
    }


def _run(
    hit: Document,
    place: ChunkPlace,
    known: Mapping[ChunkPlace | None, Document],
    taken: Container[ChunkPlace | None],
    reach: int,
) -> tuple[list[Document], int]:
    """Return the consecutive unused chunks around a hit, and the hit's position among them."""
    version = hit.metadata.get("source_hash")

    def side(step: int) -> list[Document]:
        chunks: list[Document] = []
        for distance in range(1, reach + 1):
            at = place._replace(chunk_index=place.chunk_index + step * distance)
            if at in taken or at not in known or known[at].metadata.get("source_hash") != version:
                break
            chunks.append(known[at])
        return chunks

    before = side(-1)[::-1]
    return [*before, hit, *side(1)], len(before)


def _joined(hit: Document, chunks: Sequence[Document]) -> Document:
    metadata = {**hit.metadata, "chunk_indexes": [chunk.metadata["chunk_index"] for chunk in chunks]}
    if len(chunks) > 1:  # these describe the hit alone
        for key in (SENTENCE_BEFORE, SENTENCE_AFTER):
            metadata.pop(key, None)
    known = spans(chunks)
    if known is not None:
        metadata |= {"start": min(start for start, _ in known), "end": max(end for _, end in known)}
        metadata |= places_of_joined(chunks)
    return replace(hit, content=joined_text(chunks), metadata=metadata)
