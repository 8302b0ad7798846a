"""`LocalStore` from 10,000 to 1,000,000 clustered chunks: ``python -m benchmarks.scale [--sizes N …] [--keep DIR]``.

Default settings, 384 dimensions, 10 documents a search, a new process for each size. Recall is against a comparison of
every vector. ``--keep`` builds into a folder once and uses it again; ``--plot`` draws the figures (needs matplotlib).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.local_store_data import Truth, query_texts, query_vectors, sources
from benchmarks.local_store_process import memory
from ragistry.stores.local import LocalStore

ROOT = Path(__file__).resolve().parents[1]
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
QUICK_SIZES = (2_000, 20_000)
TOP_K, QUERIES = 10, 101
COLUMNS = (
    "chunks", "ingest, chunks/s", "first search, s", "p50 CPU, ms", "p95 CPU, ms", "p50, ms", "p95, ms", "recall@10",
    "BM25 p50 CPU, ms", "anonymous memory, MB",
)  # fmt: skip


def build(folder: Path, chunks: int) -> None:
    """Fill a store source by source, and record how long that took without making up the sources."""
    record = folder / "built.json"
    if record.exists():
        return
    seconds = 0.0
    with closing(LocalStore(folder, exclusive=True)) as store:
        for source in sources(chunks):
            start = perf_counter()
            store.replace_source(source.collection, source.source_file, source.chunks)
            seconds += perf_counter() - start
        start = perf_counter()
        store.flush()
        seconds += perf_counter() - start
    record.write_text(json.dumps(seconds), encoding="utf-8")


def search(folder: str) -> None:
    """In a process of its own: search, and print times in milliseconds, what was found, and memory."""
    queries, texts = query_vectors(QUERIES), query_texts(QUERIES)
    start = perf_counter()
    with closing(LocalStore(folder)) as store:
        found = [[document.id for document in store.search(queries[0], TOP_K)]]
        first = perf_counter() - start
        wall, cpu = [], []
        for query in queries[1:]:
            start, began = perf_counter(), process_time()
            documents = store.search(query, TOP_K)
            wall.append((perf_counter() - start) * 1e3)
            cpu.append((process_time() - began) * 1e3)
            found.append([document.id for document in documents])
        own = memory()["own"]
        store.search_text(texts[0], TOP_K)
        words = []
        for text in texts[1:]:
            began = process_time()
            store.search_text(text, TOP_K)
            words.append((process_time() - began) * 1e3)
    print(json.dumps({"first": first, "wall": wall, "cpu": cpu, "words": words, "found": found, "own": own}))


def measured(folder: Path, chunks: int) -> list[float]:
    """The figures of `COLUMNS`."""
    build(folder, chunks)
    code = f"from benchmarks.scale import search; search({str(folder)!r})"
    done = subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    seen: dict[str, Any] = json.loads(done.stdout)
    truth = Truth(chunks)
    pairs = zip(query_vectors(QUERIES), seen["found"], strict=True)
    recall = float(np.mean([truth.recall(query, found) for query, found in pairs]))
    rate = chunks / json.loads((folder / "built.json").read_text(encoding="utf-8"))
    p50, p95 = (float(np.percentile(seen["cpu"], q)) for q in (50, 95))
    wall50, wall95 = (float(np.percentile(seen["wall"], q)) for q in (50, 95))
    return [
        chunks, rate, seen["first"], p50, p95, wall50, wall95, recall, float(np.median(seen["words"])), seen["own"]
    ]  # fmt: skip


def plot(path: Path, rows: list[list[float]]) -> None:
    """Times and memory against size, both axes logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(8, 5), layout="constrained")
    for column in (2, 3, 4, 8, 9):
        axis.plot([row[0] for row in rows], [row[column] for row in rows], marker="o", label=COLUMNS[column])
    axis.set(xscale="log", yscale="log", xlabel="chunks")
    axis.grid(True, alpha=0.3)
    axis.legend(frameon=False)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two small sizes")
    parser.add_argument("--sizes", type=int, nargs="+", help="numbers of chunks")
    parser.add_argument("--keep", type=Path, help="folder for the stores, to be used again by the next run")
    parser.add_argument("--plot", type=Path, help="draw into this PNG file")
    options = parser.parse_args()
    rows = []
    print(f"| {' | '.join(COLUMNS)} |\n|{'--:|' * len(COLUMNS)}")
    with tempfile.TemporaryDirectory() as name:
        for size in options.sizes or (QUICK_SIZES if options.quick else SIZES):
            rows.append(measured((options.keep or Path(name)) / f"scale-{size}", size))
            print(
                f"| {' | '.join(f'{value:,.3g}' if value < 1000 else f'{value:,.0f}' for value in rows[-1])} |",
                flush=True,
            )
    if options.plot:
        plot(options.plot, rows)


if __name__ == "__main__":
    main()
