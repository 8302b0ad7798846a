"""Learned sparse retrieval against BM25: CPU time of a search over 100,000 chunks with SciFact's queries.

    python -m benchmarks.sparse [--quick]

The model is SPLADE-tiny (`make parts`), from a folder; it encodes the queries. It would take too long to encode 100,000
passages, so theirs are synthetic: 500 real passages are encoded, and the terms of each chunk are drawn from these, with
the share of passages that each term has, as many of them as a real passage has, and weights that the term has. BM25
searches real passages, repeated with a number. With a table, the queries are not read by the model: each of their
tokens has its idf. Sides take turns.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from math import log
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np

from benchmarks.embedder import DATA, read_scifact
from ragistry.models.folder import FolderEncoder
from ragistry.stores.local import LocalStore
from ragistry.techniques.bm25 import BM25Technique
from ragistry.techniques.learned_sparse import LearnedSparseTechnique
from ragistry.types import EmbeddedChunk, Role
from tests.models import folders

ENCODED = 500
"""Real passages that the model encodes."""
PASSAGES, QUERIES = 1_000, 50


class Synthetic:
    """An encoder of real queries, and of passages whose terms are drawn from encoded ones."""

    def __init__(self, encoder: FolderEncoder, real: Sequence[dict[str, float]]) -> None:
        self.encoder = encoder
        self.fingerprint = encoder.fingerprint
        self._chance = np.random.default_rng(0)
        weights: dict[str, list[float]] = {}
        for one in real:
            for term, weight in one.items():
                weights.setdefault(term, []).append(weight)
        self._terms, self._weights = list(weights), list(weights.values())
        self._share = np.array([len(one) / len(real) for one in self._weights])

    def encode(self, texts: list[str], *, role: Role) -> list[dict[str, float]]:
        if role == "query":
            return self.encoder.encode(texts, role=role)
        return [self._passage() for _ in texts]

    def _passage(self) -> dict[str, float]:
        """Each term with its own chance, so that the mean number of terms is that of real passages."""
        drawn = np.flatnonzero(self._chance.random(len(self._terms)) < self._share)
        picks = self._chance.random(len(drawn))
        of = [self._weights[place] for place in drawn]
        return {self._terms[place]: one[int(pick * len(one))] * (0.9 + 0.2 * pick)
                for place, one, pick in zip(drawn.tolist(), of, picks.tolist(), strict=True)}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10,000 chunks")
    count = 10_000 if parser.parse_args().quick else 100_000
    if not Path(DATA / "scifact").is_dir():
        print(f"skipped: no {DATA / 'scifact'}")
        return
    passages, queries = read_scifact(DATA / "scifact", PASSAGES)
    passages, queries = [one[:800] for one in passages], queries[:: len(queries) // QUERIES][:QUERIES]
    with tempfile.TemporaryDirectory() as place:
        folder = folders.splade_tiny(Path(place) / "splade")
        encoder = FolderEncoder(path=str(folder))
        start = process_time()
        real = encoder.encode(passages[:ENCODED], role="document")
        rate = len(real) / (process_time() - start)
        tokens = [set(one.tokens) for one in encoder._loaded().tokenizer.encode_batch(passages[:ENCODED])]
        spread = Counter(token for one in tokens for token in one)
        table = {token: log(len(tokens) / times) for token, times in spread.items() if times < len(tokens)}
        quiet = folders.splade_tiny(Path(place) / "table")
        (quiet / "idf.json").write_text(json.dumps(table))
        store = LocalStore(Path(place) / "store")
        for first in range(0, count, 5_000):
            numbers = range(first, first + 5_000)
            rows = [EmbeddedChunk(f"{passages[one % len(passages)]} {one}", {"n": one}, [1.0, 0.0]) for one in numbers]
            store.add_documents(rows, ids=[f"{one:06}" for one in numbers])
        sides: dict[str, Any] = {"bm25": BM25Technique({}, store=store)}
        for name, path in {"learned_sparse": folder, "learned_sparse, table": quiet}.items():
            made = {name: Synthetic(FolderEncoder(path=str(path)), real)}
            sides[name] = LearnedSparseTechnique({"encoder": name}, store=store, encoders=made)
        sides["learned_sparse, table"].rows = sides["learned_sparse"].rows  # the same passages
        start = process_time()
        for side in sides.values():
            side.retrieve(queries[0], top_k=10)
        built = process_time() - start
        times: dict[str, list[float]] = {name: [] for name in sides}
        for number, query in enumerate(queries):
            for name in list(sides) if number % 2 else list(sides)[::-1]:
                start = process_time()
                sides[name].retrieve(query, top_k=10)
                times[name].append(process_time() - start)
        asked = [len(one) for one in encoder.encode(queries, role="query")]
        start = process_time()
        for query in queries:
            encoder.encode([query], role="query")
        encoding = (process_time() - start) / len(queries)
        store.close()
    terms = sum(map(len, real)) / len(real)
    print(f"{count:,} chunks with synthetic terms, {terms:.0f} each as in {len(real)} real "
          f"passages; {median(asked):.0f} terms a query; the model encodes {rate:.0f} passages a CPU-second and a "
          f"query in {1000 * encoding:.1f} ms; indexes built in {built:.0f} s\n")  # fmt: skip
    print("| search | CPU-ms, median | over bm25 |\n|---|--:|--:|")
    base = median(times["bm25"])
    for name, found in times.items():
        print(f"| {name} | {1000 * median(found):.1f} | {median(found) / base:.1f} |")


if __name__ == "__main__":
    main()
