"""Learned sparse retrieval against BM25: CPU time of a search over 100,000 chunks, and nDCG@10 on SciFact's passages.

    python -m benchmarks.sparse [--quick]

The model is SPLADE-tiny (`make parts`), from a folder. It encodes a part of the passages of SciFact; the library of
100,000 chunks repeats them, so that each term is in the same share of the chunks. BM25 is asked the same queries. With
a table, the queries are not read by the model: each of their tokens has its idf. Sides take turns.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from math import log
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from benchmarks.embedder import DATA, read_scifact
from ragistry.models.folder import FolderEncoder
from ragistry.stores.local import LocalStore
from ragistry.techniques.bm25 import BM25Technique
from ragistry.techniques.learned_sparse import LearnedSparseTechnique
from ragistry.types import EmbeddedChunk, Role
from tests.models import folders


class Known:
    """An encoder that encodes each text once."""

    def __init__(self, encoder: FolderEncoder, known: dict[str, dict[str, float]]) -> None:
        self.encoder, self.known = encoder, known
        self.fingerprint = encoder.fingerprint

    def encode(self, texts: list[str], *, role: Role) -> list[dict[str, float]]:
        if role == "query":
            return self.encoder.encode(texts, role=role)
        return [self.known[text] for text in texts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10,000 chunks")
    quick = parser.parse_args().quick
    if not Path(DATA / "scifact").is_dir():
        print(f"skipped: no {DATA / 'scifact'}")
        return
    count, distinct = (10_000, 200) if quick else (100_000, 500)
    passages, queries = read_scifact(DATA / "scifact", distinct)
    passages, queries = [one[:800] for one in passages], queries[:50]
    with tempfile.TemporaryDirectory() as place:
        folder, _ = folders.splade_tiny(Path(place) / "splade")
        encoder = FolderEncoder(path=str(folder))
        start = process_time()
        known = dict(zip(passages, encoder.encode(passages, role="document"), strict=True))
        rate = len(passages) / (process_time() - start)
        tokens = [set(one) for one in encoder._loaded().tokenizer.encode_batch(passages) for one in [one.tokens]]
        spread = Counter(token for one in tokens for token in one)
        table = {token: log(len(passages) / times) for token, times in spread.items() if times < len(passages)}
        quiet, _ = folders.splade_tiny(Path(place) / "table")
        (quiet / "idf.json").write_text(json.dumps(table))
        store = LocalStore(Path(place) / "store")
        for first in range(0, count, 5_000):
            numbers = range(first, first + 5_000)
            rows = [EmbeddedChunk(passages[one % distinct], {"n": one}, [1.0, 0.0]) for one in numbers]
            store.add_documents(rows, ids=[f"{one:06}" for one in numbers])
        sides: dict[str, Any] = {"bm25": BM25Technique({}, store=store)}
        for name, path in {"learned_sparse": folder, "learned_sparse, table": quiet}.items():
            made = {name: Known(FolderEncoder(path=str(path)), known)}
            config = {"encoder": name}
            sides[name] = LearnedSparseTechnique(config, store=store, folder=Path(place) / name, encoders=made)
        for side in sides.values():
            side.retrieve(queries[0], top_k=10)
        times: dict[str, list[float]] = {name: [] for name in sides}
        for number, query in enumerate(queries):
            for name in list(sides) if number % 2 else list(sides)[::-1]:
                start = process_time()
                sides[name].retrieve(query, top_k=10)
                times[name].append(process_time() - start)
        store.close()
    terms = sum(map(len, known.values())) / len(known)
    print(f"{count:,} chunks, {terms:.0f} terms each; the model encodes {rate:.0f} passages a CPU-second\n")
    print("| search | CPU-ms, median | over bm25 |\n|---|--:|--:|")
    base = median(times["bm25"])
    for name, found in times.items():
        print(f"| {name} | {1000 * median(found):.1f} | {median(found) / base:.1f} |")


if __name__ == "__main__":
    main()
