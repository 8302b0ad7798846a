"""The two sides of `local_store`, filled with the same chunks: `LocalStore`, and ChromaDB by itself.

Building takes minutes, so what lies in a folder that is kept is used again, with the times that it took.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import chromadb
import numpy as np
from chromadb.api.models.Collection import Collection

from benchmarks.local_store_data import Source, query_vectors, sources
from ragistry.stores.local import LocalStore
from ragistry.utils.ids import id_of

RAW_BATCH = 5_000
SOURCES_AT_ONCE = 125
"""As many sources as make a batch of the raw side: the sides take turns, so that both see the same machine."""


class Cost(NamedTuple):
    """Seconds on the clock, and of all cores together."""

    wall: float
    cpu: float

    def __add__(self, other: object) -> Cost:
        return Cost(self.wall + other.wall, self.cpu + other.cpu) if isinstance(other, Cost) else NotImplemented


class Built(NamedTuple):
    """Both sides on disk, and what it cost: ours, ours until it has searched with all its indexes, and the raw side."""

    chunks: int
    ours: Path
    raw: Path
    written: Cost
    searched: Cost
    upserted: Cost


def build(folder: Path, chunks: int) -> Built:
    """Both sides with ``chunks`` chunks, in ``folder``; those that are there already are used again."""
    ours, raw, record = (folder / f"{name}-{chunks}" for name in ("ours", "raw", "costs"))
    if not record.exists():
        for left_over in (ours, raw):
            shutil.rmtree(left_over, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        record.write_text(json.dumps(_fill(ours, raw, chunks)), encoding="utf-8")
    return Built(chunks, ours, raw, *(Cost(*cost) for cost in json.loads(record.read_text(encoding="utf-8"))))


def _fill(ours: Path, raw: Path, chunks: int) -> tuple[Cost, Cost, Cost]:
    upserted = written = Cost(0, 0)
    store = LocalStore(ours, exclusive=True)
    with raw_collection(raw) as rows:
        for batch in _batches(chunks):
            arguments = _upsert(batch)
            with measured() as cost:
                rows.upsert(**arguments)
            upserted += cost[0]
            with measured() as cost:
                for source in batch:
                    store.replace_source(source.collection, source.source_file, source.chunks)
            written += cost[0]
    with measured() as cost:
        store.flush()
    written += cost[0]
    with measured() as cost:
        for query in query_vectors(2):  # what the first reads, the second makes sketches of
            store.search(query)
    store.close()
    return written, written + cost[0], upserted


def _batches(chunks: int) -> Iterator[list[Source]]:
    batch: list[Source] = []
    for source in sources(chunks):
        batch.append(source)
        if len(batch) == SOURCES_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def _upsert(batch: Sequence[Source]) -> dict[str, Any]:
    """The same chunks as ChromaDB takes them fastest: one array, as many at once as it lets in."""
    chunks = [chunk for source in batch for chunk in source.chunks]
    return {
        "ids": [id_of(chunk.text, chunk.metadata) for chunk in chunks],
        "embeddings": np.stack([chunk.embedding for chunk in chunks]),
        "documents": [chunk.text for chunk in chunks],
        "metadatas": [{k: v for k, v in chunk.metadata.items() if k != "source_hash"} for chunk in chunks],
    }


@contextmanager
def raw_collection(folder: Path) -> Iterator[Collection]:
    """ChromaDB by itself: cosine space, otherwise as it comes."""
    client = chromadb.PersistentClient(str(folder))
    configuration: Any = {"hnsw": {"space": "cosine"}}
    try:
        yield client.get_or_create_collection("chunks", configuration=configuration, embedding_function=None)
    finally:
        client.close()


@contextmanager
def measured() -> Iterator[list[Cost]]:
    """What the block costs, as the one item of the list once it is done."""
    cost: list[Cost] = []
    wall, cpu = perf_counter(), process_time()
    yield cost
    cost.append(Cost(perf_counter() - wall, process_time() - cpu))
