"""Routing over eight collections: ``python -m benchmarks.routing [--keep FOLDER] [--quick]``.

Each router's accuracy and what it does with queries that belong to no collection, at a threshold and margin that are
fitted on queries made of the collections themselves; then, for three bases and in one run, nDCG@10 and time of
searching everything at once, the routed collections, and the right collection. All sides of a query run one after
the other, each with an embedder that has not seen the query. Vectors are kept in the folder and made once.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import ir_measures
import numpy as np
from ir_measures import nDCG

from benchmarks.routing_data import Query, queries, workspace
from benchmarks.scifact import DATA
from ragistry import Workspace
from ragistry.models.queries import QueryEmbedder
from ragistry.protocols import Technique
from ragistry.techniques.bm25 import BM25Technique
from ragistry.techniques.hybrid import HybridTechnique
from ragistry.techniques.naive import NaiveRAGTechnique
from ragistry.techniques.routing.evaluate import FittedLimits, Labelled, evaluate_router, fit_limits, made_queries
from ragistry.techniques.routing.technique import CollectionRoutedTechnique
from ragistry.trace import collect
from ragistry.types import Document

BASES = ("bm25", "naive", "hybrid")
ROUTERS: dict[str, dict[str, Any]] = {
    "embedding": {"router": "embedding"},
    "evidence": {"router": "evidence"},
    "evidence, words only": {"router": "evidence", "evidence": ["words"]},
}
BARS = {"embedding": 0.88, "evidence": 0.93}
OF_BASE = {"bm25": "evidence, words only", "naive": "evidence", "hybrid": "evidence"}
"""The router of each base: `bm25` embeds no query, and would have to only to be routed."""
DEPTH = 10
PERMUTATIONS = 20_000


def base(name: str, opened: Workspace) -> Technique:
    """A base of its own, whose embedder remembers nothing of what other sides embed."""
    embedder = QueryEmbedder(opened.embedder.embedder)  # type: ignore[attr-defined]
    made: dict[str, Technique] = {
        "bm25": BM25Technique({}, store=opened.store),
        "naive": NaiveRAGTechnique({}, store=opened.store, embedder=embedder),
    }
    made["hybrid"] = HybridTechnique({}, bases=[made["naive"], made["bm25"]])
    return made[name]


def routed(name: str, router: str, opened: Workspace, **limits: float) -> CollectionRoutedTechnique:
    """The same with a router, which shares the embedder with its base."""
    over = base(name, opened)
    parts = getattr(over, "bases", [over])
    embedder = next((part.embedder for part in parts if hasattr(part, "embedder")), QueryEmbedder(opened.embedder))
    return CollectionRoutedTechnique(
        ROUTERS[router] | limits, base=over, store=opened.store, embedder=embedder, library=opened.library
    )


def routers(opened: Workspace, asked: list[Query]) -> dict[str, FittedLimits]:
    """Print how well each router chooses; returns what was fitted for each."""
    labelled = [Labelled(query.text, query.collection) for query in asked]
    fits, rows, matrix = {}, [], {}
    for name in ROUTERS:
        bare = routed("naive", name, opened)
        fits[name] = found = fit_limits(bare.route, made_queries(bare.targets(), opened.store))
        limits = {"margin": found.margin, "threshold": found.threshold}
        report = evaluate_router(routed("naive", name, opened, **limits).route, labelled, **limits)
        bar = f"{BARS[name]:.0%}" if name in BARS else ""
        rows.append(
            f"| {name} | {report.accuracy:.1%} | {bar} | {report.reached:.1%} | {report.searched:.2f} "
            f"| {report.kept:.1%} | {report.detected:.0%} | {found.threshold} | {found.margin} "
            f"| {found.accuracy:.1%} of {found.queries:,} |"
        )
        matrix[name] = report.confusion
        print(f"{name}: done", file=sys.stderr, flush=True)
    print("| router | accuracy | bar | right one searched | targets searched | kept | out of scope told apart |"
          " threshold | margin | made queries right |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")  # fmt: skip
    print("\n".join(rows))
    print("\nBars: 95 % kept, 50 % of the out-of-scope queries told apart.\n")
    _print_matrix(matrix["evidence"])
    sys.stdout.flush()
    return fits


def _print_matrix(confusion: dict[str, dict[str, int]]) -> None:
    columns = sorted({column for row in confusion.values() for column in row})
    print(f"| evidence: belongs to \\ best | {' | '.join(columns)} |\n|---|{'--:|' * len(columns)}")
    for label, row in confusion.items():
        print(f"| {label} | {' | '.join(str(row.get(column, '')) for column in columns)} |")


Side = Callable[[Query], list[Document]]


def sides(name: str, opened: Workspace, fits: dict[str, FittedLimits]) -> dict[str, Side]:
    """What is compared: by side, a search."""
    everything, perfect = base(name, opened), base(name, opened)
    routes = routed(name, OF_BASE[name], opened, margin=fits[OF_BASE[name]].margin)
    by_embedding = routed(name, "embedding", opened, margin=fits["embedding"].margin)
    return {
        "everything in one": lambda query: everything.retrieve(query.text, top_k=DEPTH),
        "routed": lambda query: routes.retrieve(query.text, top_k=DEPTH),
        "routed by embedding": lambda query: by_embedding.retrieve(query.text, top_k=DEPTH),
        "perfect routing": lambda query: perfect.retrieve(
            query.text, top_k=DEPTH, where={"collection": query.collection}
        ),
    }


class Run(NamedTuple):
    """By side, nDCG@10, milliseconds, and those of all cores of every query; and how well each fitted its route."""

    values: dict[str, list[float]]
    times: dict[str, list[float]]
    work: dict[str, list[float]]
    fits: list[float]


def run(compared: dict[str, Side], asked: list[Query]) -> Run:
    """Search every query on every side, one after the other; the order changes from query to query."""
    rankings: dict[str, dict[str, dict[str, float]]] = {side: {} for side in compared}
    times: dict[str, list[float]] = {side: [] for side in compared}
    work: dict[str, list[float]] = {side: [] for side in compared}
    fits = []
    for side in compared.values():
        for name in {query.collection: query for query in asked}.values():
            side(name)
    order = list(compared)
    for query in asked:
        order = [*order[1:], order[0]]
        for side in order:
            start, work_start = time.perf_counter(), time.process_time()
            with collect() as trace:
                found = compared[side](query)
            times[side].append((time.perf_counter() - start) * 1e3)
            work[side].append((time.process_time() - work_start) * 1e3)
            if side == "routed":
                fits += [stage.detail["fit"] for stage in trace.stages() if stage.name == "route"]
            rankings[side][query.id] = {str(hit.metadata["doc"]): 1.0 / rank for rank, hit in enumerate(found, 1)}
    qrels = {query.id: query.judged for query in asked}
    values = {}
    for side, ranking in rankings.items():
        measured = {one.query_id: one.value for one in ir_measures.iter_calc([nDCG @ 10], qrels, ranking)}
        values[side] = [measured.get(query.id, 0.0) for query in asked]
    return Run(values, times, work, fits)


def randomisation_test(one: list[float], other: list[float]) -> float:
    """The two-sided p-value of a mean difference of pairs as large as this, were the sides of a pair exchangeable.

    Fisher's randomisation test; Smucker, Allan and Carterette, "A Comparison of Statistical Significance Tests for
    Information Retrieval Evaluation", 2007.
    """
    differences = np.asarray(one) - np.asarray(other)
    signs = np.random.default_rng(0).choice(np.array([-1, 1], dtype=np.int8), size=(PERMUTATIONS, len(differences)))
    means = np.abs(signs @ differences) / len(differences)
    return float((np.sum(means >= abs(differences.mean()) - 1e-12) + 1) / (PERMUTATIONS + 1))


def compare(name: str, opened: Workspace, fits: dict[str, FittedLimits], asked: list[Query]) -> None:
    """Print the rows of one base."""
    values, times, work, found = run(sides(name, opened, fits), asked)
    kept = [fit >= fits[OF_BASE[name]].threshold for fit in found]
    values["routed, abstaining"] = [value * keep for value, keep in zip(values["routed"], kept, strict=True)]
    whole = "everything in one"
    p50, cpu = ({side: statistics.median(ms) for side, ms in by.items()} for by in (times, work))
    for side, of_side in values.items():
        p = "" if side == whole else f"{randomisation_test(of_side, values[whole]):.3f}"
        difference = statistics.fmean(of_side) - statistics.fmean(values[whole])
        speed = " | | | | "
        if side in p50:
            mean = statistics.fmean(work[side]) / statistics.fmean(work[whole])
            speed = (
                f"{p50[side]:.2f} | {p50[side] / p50[whole]:.2f} "
                f"| {cpu[side]:.2f} | {cpu[side] / cpu[whole]:.2f} | {mean:.2f}"
            )
        print(f"| {name} | {side} | {statistics.fmean(of_side):.4f} | {difference:+.4f} | {p} | {speed} |")
    cost, of_cpu = (statistics.median(np.subtract(by["routed"], by["perfect routing"])) for by in (times, work))
    print(
        f"| {name} | routing itself | | | | {cost:.2f} | {cost / p50[whole]:.2f} "
        f"| {of_cpu:.2f} | {of_cpu / cpu[whole]:.2f} | |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="folder for vectors and store; by default a temporary one")
    parser.add_argument("--quick", action="store_true", help="150 documents a collection, 80 queries: not comparable")
    given = parser.parse_args()
    if not (DATA / "routing").is_dir():
        sys.exit(f"skipped: no {DATA / 'routing'}")
    asked = queries()[:: 10 if given.quick else 1]
    with tempfile.TemporaryDirectory() as temporary, workspace(given.keep or Path(temporary), given.quick) as opened:
        print(f"{opened.store.count():,} chunks in 8 collections; {len(asked)} queries\n")
        fits = routers(opened, asked)
        print(
            "\n| base | searched | nDCG@10 | difference | p | p50, ms | ratio | p50 of CPU, ms | ratio | of the means |"
        )
        print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
        for name in BASES:
            compare(name, opened, fits, [query for query in asked if query.collection])


if __name__ == "__main__":
    main()
