"""What a library of a billion chunks would take: a model of what `scale` measured, and a simulation of load.

The model has four terms for each figure: a constant, one that grows with the logarithm of the number of chunks
(descent of a graph or a tree), one that grows with the number itself (scanning sketches and postings), and one that
grows with its power 1.5 (building a graph that caches no longer hold). None is negative, and they are fitted to the
measured points by least squares of the relative error. The ratio of p95 to p50 is the largest that was measured.
``--check`` prints measured and modelled figures side by side, and what a model says that has not seen
libraries of this size. Left out: Postgres where it has no graph yet, and routing over 10 collections, of which one has
half of all chunks.

In the simulation, searches arrive at random (a Poisson process) at shards, each of which has some replicas of some
cores. A search of everything asks every shard, and is answered when the last one is; a search of one collection, or a
routed one, asks one. The times of a shard's answers are spread as the measured ones are, from p50 to p95.

usage: python -m benchmarks.capacity [--check] [--chunks N …] [--store S] [--search NAME] [--shard N] [--cores N]
                                     [--rate N] [--p95 MS]
"""

from __future__ import annotations

import argparse
import heapq
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls  # type: ignore[import-untyped]

from benchmarks.scale_library import STORES
from ragistry.stores.postgres.store import EXACT_BELOW

POINTS = Path(__file__).with_name("scale_points.json")
SIMULATED = 20_000
Z95 = 1.645
"""Standard deviations from the median to the 95th percentile of a normal distribution."""
EVERYWHERE = ("unfiltered", "bm25", "hybrid")
"""Searches that ask every shard."""

SERVED = {10: 19.0, 20: 18.0, 40: 18.0}
"""Searches a second of a server with 2,000 chunks, and p50 in ms (`serve_load`; 80 a second were too many)."""
SERIAL, PARALLEL = 13.0, 5.0
"""Of the milliseconds of a served search those that no other search can use, and the others."""

Point = dict[str, Any]


class Law:
    """A figure as a function of the number of chunks, fitted to measured values."""

    def __init__(self, chunks: Sequence[int], values: Sequence[float]) -> None:
        terms = _terms(np.asarray(chunks, dtype=np.float64))
        self.weights, _ = nnls(terms / np.asarray(values)[:, None], np.ones(len(values)))

    def __call__(self, chunks: float) -> float:
        return float(_terms(np.asarray([chunks], dtype=np.float64))[0] @ self.weights)


def _terms(chunks: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.stack([np.ones_like(chunks), np.log(chunks), chunks / 1e6, (chunks / 1e6) ** 1.5], axis=1)


def figures(point: Point) -> dict[str, float]:
    """What the model says of a library, by name, as it was measured."""
    ingest = point["ingest"]
    found = {
        "ingest, CPU s": ingest["written_cpu"] + ingest["indexed_cpu"],
        "memory, MB": point["memory"]["own"] + point["memory"]["server"],
        "disk, MB": point["disk"],
    }
    for name, times in point["searches"].items():
        if name != "routed over 10":
            found[f"{name}, p50 ms"] = times["p50"]
    return found


def ratio(points: Sequence[Point], store: str, search: str) -> float:
    """The largest ratio of p95 to p50 of a search."""
    found = (point["searches"][search] for point in of_store(points, store) if search in point["searches"])
    return max(float(times["p95"] / times["p50"]) for times in found)


def of_store(points: Sequence[Point], store: str) -> list[Point]:
    """The points that the model is made of."""
    least = EXACT_BELOW if store == "postgres" else 0
    return [point for point in points if point["store"] == store and not point["even"] and point["chunks"] > least]


def model(points: Sequence[Point], store: str) -> dict[str, Law]:
    """The law of each figure that was measured at two sizes or more."""
    own = [(point["chunks"], figures(point)) for point in of_store(points, store)]
    laws = {}
    for name in {name for _, found in own for name in found}:
        having = [(chunks, found[name]) for chunks, found in own if name in found]
        if len(having) > 1:
            laws[name] = Law(*zip(*having, strict=True))
    return laws


@dataclass(frozen=True, slots=True)
class Cluster:
    """Shards of the same size, each with replicas of some cores."""

    shards: int = 1
    replicas: int = 1
    cores: int = 1


def simulate(
    cluster: Cluster, rate: float, p50: float, p95: float, *, everywhere: bool = True, searches: int = SIMULATED
) -> NDArray[np.float64]:
    """Milliseconds until each search is answered, ``(searches,)``, when ``rate`` arrive in a second.

    ``p50``, ``p95``: milliseconds of one shard's answer on an idle core.
    """
    random = np.random.default_rng(0)
    asked, seen = (cluster.shards, rate) if everywhere else (1, rate / cluster.shards)  # or one shard, and its share
    arrivals = np.cumsum(random.exponential(1_000 / seen, searches))
    spread = np.log(max(p95 / p50, 1.0)) / Z95
    waits = np.zeros(searches)
    for _ in range(asked):
        free = [0.0] * (cluster.replicas * cluster.cores)  # when each core will be
        service = p50 * np.exp(spread * random.standard_normal(searches))
        for place, time in enumerate(service.tolist()):
            end = max(arrivals[place], heapq.heappop(free)) + time
            heapq.heappush(free, end)
            waits[place] = max(waits[place], end - arrivals[place])
    return waits


def replicas_for(simulated: Callable[[int], NDArray[np.float64]], p95: float, most: int = 256) -> int | None:
    """The fewest replicas with which the 95th percentile is kept; None: not with the most."""
    replicas = 1
    while replicas <= most:
        if np.percentile(simulated(replicas), 95) <= p95:
            return replicas
        replicas += max(1, replicas // 4)
    return None


def check(points: Sequence[Point]) -> list[tuple[str, float, float]]:
    """What was measured, by name, and what the model or the simulation says of it."""
    rows = []
    for store in STORES:
        laws = model(points, store)
        for point in of_store(points, store):
            rows += [
                (f"{store}, {point['chunks']:,}: {name}", value, laws[name](point["chunks"]))
                for name, value in figures(point).items()
                if name in laws
            ]
    for rate, measured in SERVED.items():
        told = float(np.median(simulate(Cluster(), rate, SERIAL, SERIAL * 1.3))) + PARALLEL
        rows.append((f"served, {rate} searches a second: p50 ms", measured, told))
    return rows


def unseen(points: Sequence[Point]) -> dict[str, float]:
    """What models say that have not seen a size between two others, by name as in `check`."""
    told = {}
    for store in STORES:
        own = sorted(of_store(points, store), key=lambda point: int(point["chunks"]))
        for point in own[1:-1]:
            laws = model([other for other in own if other is not point], store)
            for name in figures(point).keys() & laws.keys():
                told[f"{store}, {point['chunks']:,}: {name}"] = laws[name](point["chunks"])
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="as without")
    parser.add_argument("--check", action="store_true", help="measured beside modelled figures, and no more")
    parser.add_argument("--chunks", type=float, nargs="+", default=[1e6, 1e7, 1e8, 1e9], help="chunks in all")
    parser.add_argument("--store", choices=STORES, default="postgres")
    parser.add_argument("--search", default="hybrid", help="a search as `scale` names it [hybrid]")
    parser.add_argument("--shard", type=float, default=1e6, help="chunks of a shard [1e6]")
    parser.add_argument("--cores", type=int, default=4, help="cores of a replica [4]")
    parser.add_argument("--rate", type=float, default=50, help="searches a second [50]")
    parser.add_argument("--p95", type=float, default=500, help="milliseconds that 95 of 100 searches must keep [500]")
    options = parser.parse_args()
    points = json.loads(POINTS.read_text(encoding="utf-8"))
    if options.check:
        guessed = unseen(points)
        print("| figure | measured | modelled | off by | unseen |\n|---|--:|--:|--:|--:|")
        for name, measured, told in check(points):
            without = f"{guessed[name] / measured - 1:+.0%}" if name in guessed else ""
            print(f"| {name} | {measured:,.2f} | {told:,.2f} | {told / measured - 1:+.0%} | {without} |")
        return
    print(plan(points, options))


def plan(points: Sequence[Point], options: argparse.Namespace) -> str:
    """A row for each size: its shards and replicas, and what they take."""
    laws, slower = model(points, options.store), ratio(points, options.store, options.search)
    largest = max(point["chunks"] for point in points)
    lines = [
        "| chunks | shards | replicas of each | p50 / p95 ms | cores | memory, GB | disk, GB | ingest, CPU hours | |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|---|",
    ]
    for chunks in options.chunks:
        shards = max(1, round(chunks / options.shard))
        size = chunks / shards
        p50 = laws[f"{options.search}, p50 ms"](size)
        everywhere = options.search in EVERYWHERE

        def simulated(
            replicas: int, shards: int = shards, p50: float = p50, all_shards: bool = everywhere
        ) -> NDArray[np.float64]:
            cluster = Cluster(shards, replicas, options.cores)
            searches = max(1_000, SIMULATED // shards)
            return PARALLEL + simulate(
                cluster, options.rate, p50, p50 * slower, everywhere=all_shards, searches=searches
            )

        replicas = replicas_for(simulated, options.p95)
        known = "measured" if chunks <= largest else "extrapolated"
        if replicas is None:
            lines.append(f"| {chunks:,.0f} | {shards:,} | not reached | | | | | | {known} |")
            continue
        waits = simulated(replicas)
        machines = shards * replicas
        lines.append(
            f"| {chunks:,.0f} | {shards:,} | {replicas} | {np.median(waits):.0f} / {np.percentile(waits, 95):.0f} "
            f"| {machines * options.cores:,} | {machines * laws['memory, MB'](size) / 1e3:,.0f} "
            f"| {machines * laws['disk, MB'](size) / 1e3:,.0f} | {shards * laws['ingest, CPU s'](size) / 3600:,.1f} "
            f"| {known} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
