"""A library from 10,000 to 1,000,000 chunks in up to 1,000 collections, on `LocalStore` and `PostgresStore`.

Ingest, searches (all, filtered to 50, 5, 0.5 and 0.01 % of the sources, BM25, hybrid, routed over 10, 100 and 1,000
collections), memory and disk; then 100,000 chunks in 10, 100 and 1,000 collections. Default settings, 384 dimensions,
10 documents a search, a new process for each library. Recall is against a comparison of every vector. `capacity` makes
its model of the figures that ``--out`` writes.

usage: python -m benchmarks.scale [--quick] [--stores S …] [--sizes N …] [--keep DIR] [--out FILE] [--plot FILE]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.local_store_data import CHUNKS, Truth, query_vectors
from benchmarks.scale_library import FILTERS, QUERIES, STORES, Case, build

ROOT = Path(__file__).resolve().parents[1]
SIZES, QUICK_SIZES = (10_000, 100_000, 300_000, 1_000_000), (4_000, 12_000)
COLLECTIONS, QUICK_COLLECTIONS = (10, 100, 1_000), (10, 100)
EVEN, QUICK_EVEN = 100_000, 12_000
"""Chunks of the libraries that differ in the number of their collections only."""
PARTS = {name: f"filtered to {share:.2%}".replace(".00", "") for name, share in FILTERS.items()}

Point = dict[str, Any]


def measured(case: Case, folder: Path) -> Point:
    """What a library took to be built, and what its searches take; times in milliseconds, memory and disk in MB."""
    built = build(case, folder)
    code = f"from benchmarks.scale_library import *; search(Case{tuple(case)!r}, Path({str(folder)!r}))"
    done = subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    told = json.loads(done.stdout)
    truth = Truth(case.chunks, case.layout(), case.centres)
    queries = query_vectors(QUERIES, case.centres)
    searches = {}
    for name, times in told["times"].items():
        p50, p95 = np.percentile(times[1:], [50, 95])
        searches[PARTS.get(name, name)] = {"first": times[0], "p50": float(p50), "p95": float(p95)}
        if name in FILTERS or name == "unfiltered":
            within = None if name == "unfiltered" else name
            pairs = [pair for pair in zip(queries, told["found"][name], strict=True) if pair[1]]
            recalls = [truth.recall(query, found, within) for query, found in pairs]
            searches[PARTS.get(name, name)]["recall"] = float(np.mean(recalls))
    return {
        "store": case.store, "chunks": case.chunks, "collections": case.collections, "even": case.even,
        "ingest": {key: built[key] for key in ("written", "written_cpu", "indexed", "indexed_cpu")},
        "disk": built["disk"] / 1e6,
        "memory": {"own": max(each["own"] for each in told["memory"].values()), "server": told["server"],
                   "dense": told["memory"]["unfiltered"]["own"]},
        "listing": told["listing"], "searches": searches,
    }  # fmt: skip


def table(points: Sequence[Point]) -> str:
    """A column for each library."""
    heads = [f"{point['store']}, {point['chunks']:,} in {point['collections']:,}" for point in points]
    rows = {
        "ingest, chunks a second of the clock": [_rate(point, "written", "indexed") for point in points],
        "ingest, chunks a CPU second": [_rate(point, "written_cpu", "indexed_cpu") for point in points],
        "indexes of that, CPU seconds": [f"{point['ingest']['indexed_cpu']:,.1f}" for point in points],
    }
    for name in dict.fromkeys(name for point in points for name in point["searches"]):
        rows[f"{name}, p50 / p95 ms"] = [_times(point["searches"].get(name)) for point in points]
    for name in dict.fromkeys(name for point in points for name in point["searches"]):
        if any("recall" in point["searches"].get(name, {}) for point in points):
            found = [point["searches"].get(name, {}).get("recall") for point in points]
            rows[f"{name}, recall@10"] = ["" if recall is None else f"{recall:.3f}" for recall in found]
    rows |= {
        "list every source, ms": [f"{point['listing']:,.0f}" for point in points],
        "memory of the program, MB": [f"{point['memory']['own']:,.0f}" for point in points],
        "memory of the server, MB": [f"{point['memory']['server']:,.0f}" or "" for point in points],
        "disk, MB": [f"{point['disk']:,.0f}" for point in points],
    }
    lines = [f"| | {' | '.join(heads)} |", f"|---|{'--:|' * len(heads)}"]
    return "\n".join([*lines, *(f"| {name} | {' | '.join(values)} |" for name, values in rows.items())])


def _rate(point: Point, *parts: str) -> str:
    return f"{point['chunks'] / sum(point['ingest'][part] for part in parts):,.0f}"


def _times(found: dict[str, float] | None) -> str:
    return "" if found is None else f"{found['p50']:.2f} / {found['p95']:.2f}"


def plot(path: Path, points: Sequence[Point]) -> None:
    """p50 of each search, memory and disk against chunks, all axes logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 3, figsize=(15, 5), layout="constrained")
    for axis, store in zip(axes, STORES, strict=False):
        own = [point for point in points if point["store"] == store and not point["even"]]
        for name in dict.fromkeys(name for point in own for name in point["searches"]):
            having = [point for point in own if name in point["searches"]]
            axis.plot(
                [point["chunks"] for point in having], [point["searches"][name]["p50"] for point in having],
                marker="o", label=name,
            )  # fmt: skip
        axis.set(title=f"{store}: p50 of a search, ms")
    for store in STORES:
        own = [point for point in points if point["store"] == store and not point["even"]]
        chunks = [point["chunks"] for point in own]
        axes[2].plot(chunks, [point["disk"] for point in own], marker="o", label=f"{store}: disk")
        memory = [point["memory"]["own"] + point["memory"]["server"] for point in own]
        axes[2].plot(chunks, memory, marker="o", label=f"{store}: memory")
    axes[2].set(title="MB")
    for axis in axes:
        axis.set(xscale="log", yscale="log", xlabel="chunks")
        axis.grid(True, alpha=0.3)
        axis.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=80)


def cases(options: argparse.Namespace) -> list[Case]:
    """Of each size with as many collections as there are sources for; then with other numbers of collections."""
    found = []
    sizes = options.sizes or (QUICK_SIZES if options.quick else SIZES)
    for store in options.stores:
        found += [Case(store, size, min(1_000, size // CHUNKS // 2)) for size in sizes]
        if not options.sizes:
            counts = QUICK_COLLECTIONS if options.quick else COLLECTIONS
            found += [Case(store, QUICK_EVEN if options.quick else EVEN, count, even=True) for count in counts]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two small sizes")
    parser.add_argument("--stores", nargs="+", choices=STORES, default=STORES, help="which stores")
    parser.add_argument("--sizes", type=int, nargs="+", help="numbers of chunks")
    parser.add_argument("--keep", type=Path, help="folder for the libraries, to be used again by the next run")
    parser.add_argument("--out", type=Path, help="write the figures into this JSON file")
    parser.add_argument("--plot", type=Path, help="draw into this PNG file (needs matplotlib)")
    options = parser.parse_args()
    points = []
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)  # Postgres may run as another user
        for case in cases(options):
            points.append(measured(case, (options.keep or Path(name)) / case.name))
            print(f"{case.name}: done", file=sys.stderr, flush=True)
    for even in (False, True):
        if chosen := [point for point in points if point["even"] == even]:
            print(f"{table(chosen)}\n")
    if options.out:
        options.out.write_text(json.dumps(points, indent=1) + "\n", encoding="utf-8")
    if options.plot:
        plot(options.plot, points)


if __name__ == "__main__":
    main()
