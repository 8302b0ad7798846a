"""What every side is given, written once: chunks, their vectors, queries and theirs; and what is right."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from benchmarks.local_store_data import Truth, query_texts, query_vectors, sources
from ragistry.utils.ids import chunk_id


def prepare(folder: Path, chunks: int, queries: int) -> None:
    """The files that `side.Corpus` reads, made up as for `local_store`: the same in every run."""
    folder.mkdir(parents=True, exist_ok=True)
    vectors = []
    with (folder / "chunks.jsonl").open("w", encoding="utf-8") as lines:
        for source in sources(chunks):
            for text, metadata, vector in source.chunks:
                lines.write(json.dumps({"text": text, "metadata": metadata}) + "\n")
                vectors.append(vector)
    np.save(folder / "vectors.npy", np.stack(vectors))
    np.save(folder / "queries.npy", query_vectors(queries))
    (folder / "queries.json").write_text(json.dumps(query_texts(queries)), encoding="utf-8")


class Right:
    """How much of what is nearest a side finds."""

    def __init__(self, folder: Path, chunks: int) -> None:
        self.truth = Truth(chunks)
        self.queries = np.load(folder / "queries.npy")
        self.collections = {source.source_file: source.collection for source in sources(chunks)}

    def recall(self, number: int, found: list[str], collection: str | None = None) -> float:
        """Of the chunks that are named, the share that belongs to as many nearest ones."""
        ids = []
        for name in found:
            source_file, _, index = name.rpartition("#")
            ids.append(chunk_id(self.collections[source_file], source_file, int(index)))
        return self.truth.recall(self.queries[number], ids, collection)
