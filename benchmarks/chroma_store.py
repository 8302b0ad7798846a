"""What ChromaStore costs over the bare library: ingest, search, filtered search, by id, in one run.

    python benchmarks/chroma_store.py [--quick]

20,000 chunks of 384 dimensions with text and eight metadata keys (2,000 with --quick), clustered as text is; both
sides with the same index settings, taking turns. The bars: 1.3 x for ingest, 1.5 x for a search.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import chromadb
import numpy as np

from ragistry.stores.chroma import ChromaStore
from ragistry.stores.chroma.client import INDEX
from ragistry.stores.chroma.store import BATCH_SIZE
from ragistry.types import EmbeddedChunk

DIMENSION, CLUSTERS = 384, 200
SEARCHES = 200
METADATA = {"collection": "bench", "source": "/in/file.md", "source_hash": "0" * 64, "ingested_at": 1.5e9}
INGEST_BAR, SEARCH_BAR = 1.3, 1.5


def make_chunks(count: int) -> list[EmbeddedChunk]:
    dice = np.random.default_rng(0)
    centres = dice.normal(size=(CLUSTERS, DIMENSION))
    rows = centres[dice.integers(0, CLUSTERS, count)] + dice.normal(size=(count, DIMENSION))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return [
        EmbeddedChunk(
            f"Chunk {i}: " + "a few plain words of text to store " * 25,
            {**METADATA, "source_file": f"{i // 20}.md", "chunk_index": i % 20, "start": i, "end": i + 900},
            row,
        )
        for i, row in enumerate(rows)
    ]


def ingest_bare(collection: Any, chunks: list[EmbeddedChunk]) -> None:
    for start in range(0, len(chunks), BATCH_SIZE):
        part = chunks[start : start + BATCH_SIZE]
        collection.upsert(
            ids=[str(start + i) for i in range(len(part))],
            embeddings=[chunk.embedding for chunk in part],
            documents=[chunk.text for chunk in part],
            metadatas=[chunk.metadata for chunk in part],
        )


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def turns(ours: Callable[[int], Any], bare: Callable[[int], Any], times: int = SEARCHES) -> tuple[float, float]:
    """Median milliseconds of each, one call after the other."""
    pairs = [(seconds(lambda: ours(i)), seconds(lambda: bare(i))) for i in range(times)]  # noqa: B023
    return tuple(statistics.median(times) * 1000 for times in zip(*pairs, strict=True))  # type: ignore[return-value]


def measure(folder: Path, count: int) -> list[tuple[str, float, float, float]]:
    """Rows of the table: what, ours, bare, the bar (0: none)."""
    chunks = make_chunks(count)
    ids = [str(i) for i in range(count)]
    queries = [chunks[(i * 7919) % count].embedding for i in range(SEARCHES)]
    everything = {"include": ["documents", "metadatas", "distances"]}
    where = {"source_file": "7.md"}
    client = chromadb.PersistentClient(str(folder / "bare"))
    collection = client.create_collection("documents", configuration={"hnsw": INDEX}, embedding_function=None)
    with closing(ChromaStore(folder / "ours")) as store:
        rows = [
            (
                f"ingest of {count:,}, s",
                seconds(lambda: store.add_documents(chunks, ids=ids)),
                seconds(lambda: ingest_bare(collection, chunks)),
                INGEST_BAR,
            )
        ]
        for name, ours, bare in (
            (
                "search, top 10, p50 ms",
                lambda i: store.search(queries[i], 10),
                lambda i: collection.query(query_embeddings=[queries[i]], n_results=10, **everything),
            ),
            (
                "search of one source, p50 ms",
                lambda i: store.search(queries[i], 10, where=where),
                lambda i: collection.query(query_embeddings=[queries[i]], n_results=10, where=where, **everything),
            ),
            (
                "get of 10 ids, p50 ms",
                lambda i: store.get(ids[i : i + 10]),
                lambda i: collection.get(ids=ids[i : i + 10]),
            ),
        ):
            rows.append((name, *turns(ours, bare), SEARCH_BAR))
        listed = seconds(store.sources)
    client.close()
    rows.append(("sources(), s", listed, 0.0, 0.0))
    rows.append(("open and check, s", seconds(lambda: ChromaStore(folder / "ours").close()), 0.0, 0.0))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    count = 2_000 if parser.parse_args().quick else 20_000
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(Path(folder), count)
    print("| work | ChromaStore | bare chromadb | ratio | bar |\n|---|--:|--:|--:|--:|")
    for name, ours, bare, bar in rows:
        ratio = f"{ours / bare:.2f}" if bare else ""
        print(f"| {name} | {ours:.2f} | {f'{bare:.2f}' if bare else ''} | {ratio} | {f'<= {bar}' if bar else ''} |")


if __name__ == "__main__":
    main()
