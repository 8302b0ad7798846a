"""Making the index of a corpus: cut, embedded, written, and what each of these took."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

from ragistry.evaluation.dataset import Dataset, Text
from ragistry.evaluation.vectors import TEXTS_AT_ONCE, KeptVectors
from ragistry.library.source import Reading, chunks_of
from ragistry.stores.registry import open_local
from ragistry.types import Chunk, EmbeddedChunk, Progress
from ragistry.utils.extracted import Extracted

WRITTEN_AT_ONCE = 1_000
CARD = "index.json"
"""What an index took, written when it is whole."""


@dataclass(frozen=True, slots=True)
class Chunking:
    """How documents are cut: at most ``size`` characters, neighbours sharing at most ``overlap``.

    ``size`` None: each document is one chunk, as published figures have it; a model still sees only its beginning.
    ``fit``: what is too long for the model is cut again. ``library``: nothing is cut, the library of a workspace is
    searched as it is. ``ingested``: as the workspace cuts what it takes in, which its settings say.
    """

    size: int | None = None
    overlap: int = 0
    fit: bool = False
    library: bool = False
    ingested: bool = False

    def __str__(self) -> str:
        if self.library:
            return "library"
        cut = f"{self.size}/{self.overlap}{' fitted' if self.fit else ''}"
        return "document" if self.size is None else cut


@dataclass(frozen=True, slots=True)
class IndexCost:
    """What an index took when it was made, and what it takes up.

    ``cut``: chunks that are longer than the model takes in, and found by their beginning only. ``embed_seconds``:
    spent in the model, however long ago. ``write_seconds``: to cut, to write and to make the index of words.
    """

    chunking: str
    documents: int
    chunks: int
    cut: int
    embed_seconds: float
    embed_tokens: int
    write_seconds: float
    disk_bytes: int


def build(
    dataset: Dataset, chunking: Chunking, vectors: KeptVectors, home: Path, language: str, progress: Progress | None
) -> IndexCost:
    """Cut, embed and write a corpus to a store in ``home``, with a card that says what that took."""
    start = perf_counter()
    chunks = [chunk for document in dataset.corpus for chunk in _chunks(document, chunking, vectors, dataset.name)]
    seconds = perf_counter() - start
    with _without_warnings():  # how many chunks were cut stands in the cost
        rows = list(_embedded(chunks, vectors, progress))
    start = perf_counter()
    store = open_local(home, language=language)
    try:
        store.use_embedder(vectors.fingerprint)
        for first in range(0, len(rows), WRITTEN_AT_ONCE):
            store.add_documents(rows[first : first + WRITTEN_AT_ONCE])
            if progress is not None:
                progress("writing the index", min(first + WRITTEN_AT_ONCE, len(rows)), len(rows))
    finally:
        store.close()
    seconds += perf_counter() - start
    limit = vectors.fingerprint.max_tokens
    embed_seconds, tokens = vectors.cost([chunk.text for chunk in chunks])
    cost = IndexCost(
        chunking=str(chunking),
        documents=len(dataset.corpus),
        chunks=len(chunks),
        cut=sum(chunk.metadata.get("token_count", 0) > limit for chunk in chunks) if limit else 0,
        embed_seconds=embed_seconds,
        embed_tokens=round(tokens),
        write_seconds=seconds,
        disk_bytes=bytes_below(home),
    )
    (home / CARD).write_text(json.dumps(asdict(cost)), encoding="utf-8")
    return cost


def _chunks(document: Text, chunking: Chunking, vectors: KeptVectors, collection: str) -> list[Chunk]:
    """The chunks of a document, with the metadata that a library gives them; none where it has no text."""
    text = document.whole
    size = max(len(text), 1) if chunking.size is None else chunking.size
    chunks = chunks_of(Extracted(text, document.id), Reading(size, chunking.overlap, chunking.fit), vectors)
    for chunk in chunks:
        chunk.metadata.update(source_file=document.id, collection=collection, type="document")
        if document.title:
            chunk.metadata["title"] = document.title
    return chunks


def _embedded(chunks: Sequence[Chunk], vectors: KeptVectors, progress: Progress | None) -> Iterator[EmbeddedChunk]:
    for start in range(0, len(chunks), TEXTS_AT_ONCE):
        if progress is not None:
            progress("embedding", start, len(chunks))
        group = chunks[start : start + TEXTS_AT_ONCE]
        for chunk, vector in zip(group, vectors.embed([chunk.text for chunk in group]), strict=True):
            yield EmbeddedChunk(chunk.text, chunk.metadata, vector)


def bytes_below(folder: Path) -> int:
    """What the files of a folder take up."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@contextmanager
def _without_warnings() -> Iterator[None]:
    logger = logging.getLogger("ragistry.embedders")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
