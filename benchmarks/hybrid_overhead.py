"""What `hybrid` costs over its two parts: ``python benchmarks/hybrid_overhead.py [--quick]``.

The bases do nothing but return 100 documents that are there already, half of them the same, so that what is left is
the fusion. All sides are called in turn within one run; a figure is the median (p50) of single calls.
"""

from __future__ import annotations

import argparse
import statistics
import timeit
from collections.abc import Callable
from typing import Any

from ragistry.techniques.hybrid import HybridTechnique
from ragistry.techniques.registered import RegisteredTechnique
from ragistry.trace import collect
from ragistry.types import Document, ScoreKind, StageScore
from ragistry.utils.ids import chunk_id

BAR_MS = 0.5
FETCH = 100


class Ready:
    """A technique whose answer is there already."""

    def __init__(self, kind: ScoreKind, first: int) -> None:
        self.documents = [_document(kind, first + rank, rank) for rank in range(FETCH)]

    def retrieve(self, _query: str, *, top_k: int | None = None, where: Any = None) -> list[Document]:  # noqa: ARG002
        return self.documents[:top_k]


def _document(kind: ScoreKind, number: int, rank: int) -> Document:
    score = 1.0 - rank / FETCH
    metadata = {
        "collection": "notes", "source_file": f"{number}.md", "chunk_index": 0, "start": 0, "end": 830,
        "type": "document",
    }  # fmt: skip
    return Document("x" * 830, metadata, score, chunk_id("notes", f"{number}.md", 0), (StageScore(kind, kind, score),))


def measure(sides: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Milliseconds a call, by side."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, call in sides.items():
            times[name].append(timeit.timeit(call, number=1) * 1e3)
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rounds")
    rounds = 200 if parser.parse_args().quick else 2_000
    bases = [RegisteredTechnique("words", Ready("bm25", 0)), RegisteredTechnique("vectors", Ready("cosine", 50))]
    default, by_rank, by_score = (
        HybridTechnique({"fusion": fusion}, bases=bases) for fusion in ("dbsf", "rrf", "min_max")
    )
    registered, where = RegisteredTechnique("hybrid", default), {"collection": "notes"}

    def parts(**options: Any) -> None:
        for base in bases:
            base.retrieve("query", top_k=FETCH, **options)

    def traced(call: Callable[[], object]) -> None:
        with collect() as trace:
            call()
        trace.stages()

    sides: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "dbsf, top_k 10": (lambda: default.retrieve("query", top_k=10), parts),
        "dbsf, top_k 100": (lambda: default.retrieve("query", top_k=100), parts),
        "rrf, top_k 10": (lambda: by_rank.retrieve("query", top_k=10), parts),
        "min_max, top_k 10": (lambda: by_score.retrieve("query", top_k=10), parts),
        "dbsf, top_k 10, registered, with where": (
            lambda: registered.retrieve("query", top_k=10, where=where),
            lambda: parts(where=where),
        ),
        "dbsf, top_k 10, registered, with trace": (
            lambda: traced(lambda: registered.retrieve("query", top_k=10)),
            lambda: traced(parts),
        ),
    }
    flat = {f"{name}/{side}": call for name, pair in sides.items() for side, call in zip("hp", pair, strict=True)}
    ms = measure(flat, rounds)
    print(f"| two bases of {FETCH} documents | parts, ms | hybrid, ms | over its parts, ms | bar, ms |")
    print("|---|--:|--:|--:|--:|")
    for name in sides:
        hybrid, alone = ms[f"{name}/h"], ms[f"{name}/p"]
        print(f"| {name} | {alone:.3f} | {hybrid:.3f} | {hybrid - alone:.3f} | {BAR_MS} |")


if __name__ == "__main__":
    main()
