"""The storage contract's performance table, with a measured column.

Run: ``python -m benchmarks.contract [--quick]``. Chunks are real documentation where it lies beside the checkout
(``RAGISTRY_DATA``), else made of words; their vectors are made before the clock starts where the table says "once
embedded"; queries are embedded inside it. Beside it stands the same work on bare ChromaDB collections in the same run,
with ChromaDB's own index and the same vectors.
"""

from __future__ import annotations

import argparse
import logging
import os
import resource
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any

import numpy as np

from ragistry.chunking.chunker import chunk_document
from ragistry.library.contract import (
    Collection,
    DocumentChunk,
    add_chunks,
    create_collection,
    get_collection,
    list_collections,
    search_chunks,
)
from ragistry.models.minilm import MiniLMEmbedder

DATA = Path(os.environ.get("RAGISTRY_DATA", Path(__file__).resolve().parents[1] / "../shared/data"))
QUERIES = [
    "install on linux", "configure logging", "back up the cluster", "templates for a list page", "renew certificates",
    "watch a key", "multilingual site", "deploy with github", "tune the heartbeat interval", "image processing",
]  # fmt: skip


class Ready:
    """The model, with the vectors of the texts that are known made beforehand."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.model = MiniLMEmbedder()
        self.fingerprint = self.model.fingerprint
        self.known = dict(zip(texts, self.model.embed(texts), strict=True))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def embed(self, texts: Sequence[str], *, role: Any = "document") -> Any:
        """The known vectors of documents; a query is embedded."""
        if role == "query":
            return self.model.embed(texts, role="query")
        return np.stack([self.known[text] for text in texts])


def real_chunks(wanted: int) -> list[DocumentChunk]:
    """Chunks of documentation, in the contract's form."""
    found: list[DocumentChunk] = []
    for path in sorted((DATA / "docs-hugo").rglob("*.md")) + sorted((DATA / "docs-etcd").rglob("*.md")):
        for text, metadata in chunk_document(path, 500):
            name = path.relative_to(DATA).as_posix()
            extra = {key: metadata[key] for key in ("title", "section", "has_code") if key in metadata}
            index = metadata["chunk_index"]
            found.append(
                DocumentChunk(
                    f"{name}#{index}", text, name, "docs", metadata.get("heading_context", ""), index, 0, extra
                )
            )
    if not found:
        words = np.random.default_rng(0).integers(0, 5_000, (wanted, 60))
        found = [
            DocumentChunk(
                f"made#{index}", " ".join(f"word{w}" for w in row), f"{index // 10}.md", "docs", "", index % 10, 0
            )
            for index, row in enumerate(words)
        ]
    return found[:wanted]


def timed(call: Callable[..., object], *arguments: Any, **options: Any) -> float:
    """Milliseconds of a call."""
    start = perf_counter()
    call(*arguments, **options)
    return (perf_counter() - start) * 1000


def p95(values: Sequence[float]) -> float:
    """The 95th percentile."""
    return quantiles(values, n=20)[-1]


class Bare:
    """ChromaDB without anything around it."""

    def __init__(self, folder: Path, embedder: Ready) -> None:
        import chromadb

        self.client = chromadb.PersistentClient(str(folder))
        self.embedder = embedder
        self.made = 0

    def create(self) -> Any:
        """A new collection."""
        self.made += 1
        return self.client.create_collection(f"bare-{self.made}", embedding_function=None)

    def add(self, rows: Any, chunks: Sequence[DocumentChunk]) -> None:
        """Chunks in batches of 100."""
        for start in range(0, len(chunks), 100):
            batch = chunks[start : start + 100]
            rows.add(
                ids=[chunk.chunk_id for chunk in batch],
                documents=[chunk.content for chunk in batch],
                embeddings=self.embedder.embed([chunk.content for chunk in batch]),
                metadatas=[
                    {"file_path": chunk.file_path, "repository": chunk.repository_name, **chunk.metadata}
                    for chunk in batch
                ],
            )

    def search(self, rows: Any, query: str, where: Any = None) -> None:
        """Ten results."""
        vector = self.embedder.embed([query], role="query")
        rows.query(query_embeddings=vector, n_results=10, where=where)

    def list(self) -> None:
        """Every collection with its count; they are open already."""
        for rows in self.client.list_collections():
            rows.count()


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    logging.disable(logging.WARNING)  # pages of a section that have no text
    quick = parser.parse_args().quick
    rounds, searches = (3, 40) if quick else (7, 200)
    chunks = real_chunks(1_000)
    embedder = Ready([chunk.content for chunk in chunks])
    with tempfile.TemporaryDirectory() as folder:
        ours = measure(Path(folder, "contract"), embedder, chunks, rounds, searches)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        bare = measure_bare(Bare(Path(folder, "bare"), embedder), chunks, rounds, searches)
    print(f"{len(chunks):,} chunks; {rounds} rounds (medians), {searches} searches (p95)\n")
    print("| operation | target | measured | bare ChromaDB | ratio | |\n|---|--:|--:|--:|--:|---|")
    for name, bar, value, other in zip(NAMES, BARS, ours, bare, strict=True):
        verdict = "met" if value < bar else "MISSED"
        print(f"| {name} | < {bar:,} ms | {value:.1f} ms | {other:.1f} ms | {value / other:.2f} | {verdict} |")
    verdict = "met" if memory < 512 else "MISSED"
    print(f"| memory of the process, with the model | < 512 MB | {memory:.0f} MB | | | {verdict} |")


NAMES = ["create collection", "add 100 chunks", "add 1,000 chunks", "search, p95", "search with a filter, p95",
         "list 20 collections"]  # fmt: skip
BARS = [10, 500, 5_000, 100, 150, 50]


def measure(root: Path, embedder: Ready, chunks: list[DocumentChunk], rounds: int, searches: int) -> list[float]:
    """Milliseconds of each line of the table."""
    create, hundred, thousand = [], [], []
    for number in range(rounds):
        names = f"create-{number}", f"hundred-{number}", f"thousand-{number}"
        create.append(timed(create_collection, names[0], {"commit_hash": "a"}, path=root, embedder=embedder))
        small, large = (create_collection(name, {}, path=root, embedder=embedder) for name in names[1:])
        hundred.append(timed(add_chunks, small, chunks[:100]))
        thousand.append(timed(add_chunks, large, chunks))
    collection: Collection = get_collection("thousand-0", path=root, embedder=embedder)
    search_chunks(collection, "warm", 10)
    queries = [QUERIES[number % len(QUERIES)] + f" {number}" for number in range(searches)]
    plain = [timed(search_chunks, collection, query) for query in queries]
    filtered = [timed(search_chunks, collection, query, where={"has_code": True}) for query in queries]
    for number in range(20 - 3 * rounds):
        add_chunks(create_collection(f"more-{number}", {}, path=root, embedder=embedder), chunks[:10])
    listed = [timed(list_collections, path=root) for _ in range(rounds)]
    return [median(create), median(hundred), median(thousand), p95(plain), p95(filtered), median(listed)]


def measure_bare(bare: Bare, chunks: list[DocumentChunk], rounds: int, searches: int) -> list[float]:
    """The same of ChromaDB alone."""
    create, hundred, thousand = [], [], []
    rows: Any = None
    for _ in range(rounds):
        create.append(timed(bare.create))
        small, rows = bare.create(), bare.create()
        hundred.append(timed(bare.add, small, chunks[:100]))
        thousand.append(timed(bare.add, rows, chunks))
    queries = [QUERIES[number % len(QUERIES)] + f" {number}" for number in range(searches)]
    bare.search(rows, "warm")
    plain = [timed(bare.search, rows, query) for query in queries]
    filtered = [timed(bare.search, rows, query, {"has_code": True}) for query in queries]
    listed = [timed(bare.list) for _ in range(rounds)]
    return [median(create), median(hundred), median(thousand), p95(plain), p95(filtered), median(listed)]


if __name__ == "__main__":
    main()
