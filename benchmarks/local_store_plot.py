"""The plot of `local_store`: query time against size, and against the part of the chunks that a condition selects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from chromadb.api.models.Collection import Collection

from benchmarks.local_store_build import build, raw_collection
from benchmarks.local_store_data import SHARES, Truth, query_vectors
from benchmarks.local_store_queries import TOP_K, Queries, ask
from benchmarks.local_store_row import in_turn, milliseconds
from ragistry.stores.local import LocalStore

SIZES = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000)
"""Some 20 minutes, most of which ChromaDB takes to be filled; a minute for what is kept from an earlier run."""
QUICK_SIZES = (1_000, 2_000, 4_000)
SELECTED_AT = GRAPH_FROM = 100_000
"""A store searches a graph only above `GRAPH_ABOVE`; from half of that on it is shown what this is good for."""
ROUNDS, MEMORY = 21, 2**30
Curves = dict[str, list[tuple[float, float]]]
"""Points by curve: chunks, or percent of them, and milliseconds."""


def plot(path: Path, folder: Path, sizes: Sequence[int]) -> None:
    """Measure, print the points, and draw them where matplotlib is installed."""
    by_size: Curves = {}
    for size in sizes:
        for name, value in times_at(folder, size).items():
            by_size.setdefault(name, []).append((size, value))
    selected_at = max((size for size in sizes if size <= SELECTED_AT), default=min(sizes))
    by_share = times_by_share(folder, selected_at)
    for title, curves in (("chunks", by_size), (f"percent of {selected_at:,} chunks", by_share)):
        columns = [x for x, _ in next(iter(curves.values()))]
        print(f"\n| {title} | {' | '.join(f'{x:,g}' for x in columns)} |\n|---|{'--:|' * len(columns)}")
        for name, points in curves.items():
            cells = [f"{dict(points)[x]:.2f}" if x in dict(points) else "" for x in columns]
            print(f"| {name}, ms | {' | '.join(cells)} |")
    try:
        import matplotlib
    except ModuleNotFoundError:
        print("no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    draw(path, by_size, by_share, selected_at)


def times_at(folder: Path, size: int) -> dict[str, float]:
    """Medians in milliseconds of each way to search a store of this size."""
    built = build(folder, size)
    queries, where = query_vectors(ROUNDS), {"collection": "tenth"}
    with (
        raw_collection(built.raw) as raw,
        closing(LocalStore(built.ours, exact_below=2 * size, memory=MEMORY)) as exact,
        closing(LocalStore(built.ours, exact_below=0, memory=MEMORY)) as sketches,
        closing(LocalStore(built.ours, exclusive=True, graph_above=0)) as graph,
    ):
        ways: dict[str, Callable[[int], object]] = {
            "exact": lambda n: exact.search(queries[n], TOP_K),
            "sketches": lambda n: sketches.search(queries[n], TOP_K),
            "exact, 10 % selected": lambda n: exact.search(queries[n], TOP_K, where=where),
            "raw ChromaDB": lambda n: ask(raw, queries[n]),
            "raw ChromaDB, 10 % selected": lambda n: ask(raw, queries[n], where),
        }
        if size >= GRAPH_FROM:
            ways["a graph"] = lambda n: graph.search(queries[n], TOP_K)
        times = in_turn(ROUNDS, *ways.values())
    return {name: median(taken) for name, taken in zip(ways, times, strict=True)}


def times_by_share(folder: Path, size: int) -> Curves:
    """Medians by the share of the chunks that a condition selects, the smallest first."""
    built = build(folder, size)
    queries, collections = query_vectors(ROUNDS), Truth(size).collections
    curves: Curves = {name: [] for name in ("first search", "repeated", "raw ChromaDB, where")}
    with raw_collection(built.raw) as raw:
        for name in sorted(SHARES, key=SHARES.__getitem__):
            where = {"collection": name}
            first: list[float] = []
            for query in queries[:7]:
                with closing(LocalStore(built.ours)) as store:
                    store.count()
                    first.append(milliseconds(store.search, query, TOP_K, where=where))
            with closing(LocalStore(built.ours)) as store:
                again, theirs = _repeated(store, raw, queries[:7], where)
            percent = 100 * float(np.mean(collections == name))
            for curve, taken in zip(curves.values(), (first, again, theirs), strict=True):
                curve.append((percent, median(taken)))
    return curves


def _repeated(store: LocalStore, raw: Collection, queries: Queries, where: Any) -> list[list[float]]:
    return in_turn(
        len(queries),
        lambda n: store.search(queries[n], TOP_K, where=where),
        lambda n: ask(raw, queries[n], where),
    )


def draw(path: Path, by_size: Curves, by_share: Curves, selected_at: int) -> None:
    """Two pictures side by side, both axes logarithmic."""
    from matplotlib import pyplot, ticker

    figure, axes = pyplot.subplots(1, 2, figsize=(12, 5), sharey=True, layout="constrained")
    labels = ("chunks in the store", f"percent of {selected_at:,} chunks selected by collection")
    for axis, curves, label in zip(axes, (by_size, by_share), labels, strict=True):
        for name, points in curves.items():
            style = "--" if name.startswith("raw") else "-"
            axis.plot(*zip(*points, strict=True), style, marker="o", markersize=4, label=name)
        axis.set(xscale="log", yscale="log", xlabel=label)
        for scale in (axis.xaxis, axis.yaxis):
            scale.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.grid(True, which="major", alpha=0.3)
        axis.legend(frameon=False, loc="upper left")
    axes[0].set_ylim(top=8 * axes[0].get_ylim()[1])  # room for the legend
    axes[0].set_ylabel("milliseconds a query, 10 documents")
    figure.suptitle("LocalStore and raw ChromaDB: 384 dimensions, documents included")
    figure.savefig(path, dpi=120)
