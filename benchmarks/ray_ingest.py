"""Ingest in this process and on Ray: one folder, both in one run, and what each stage takes.

``python -m benchmarks.ray_ingest [--quick]``. Ray runs on this machine, with a worker for each core, so that it has no
more to work with than this process, which computes on all cores too. What it costs is measured; from how many cores on
it pays is calculated from the stages, and so an extrapolation: work that is dealt out evenly, and a driver that reads
results and writes them one after the other. ``--quick``: few pages.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, NamedTuple

from ragistry import open_workspace
from ragistry.engines.ray import RayEngine
from ragistry.library.ingest.report import IngestReport
from ragistry.protocols import Embedder, Engine

DATA = Path(os.environ.get("RAGISTRY_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
FOLDER = "docs-etcd"
TASKS = 2_000
STAGES = {
    "prepare": "workers",
    "known_vectors": "the driver",
    "replace_source": "the driver",
    "flush": "the driver, once",
}
"""What is called, and where."""


class Stages:
    """`map` in this process, and CPU and clock seconds of each kind of work."""

    def __init__(self) -> None:
        self.cpu: Counter[str] = Counter()
        self.clock: Counter[str] = Counter()

    def map(self, work: Callable[[list[Any]], list[Any]], groups: Iterable[list[Any]]) -> Iterator[list[Any]]:
        return map(self.measured(work, getattr(work, "func", work).__name__), groups)

    def measured(self, work: Callable[..., Any], name: str) -> Callable[..., Any]:
        """The same work, which counts as ``name``."""

        def run(*given: Any) -> Any:
            cpu, clock = process_time(), perf_counter()
            try:
                return work(*given)
            finally:
                self.cpu[name] += process_time() - cpu
                self.clock[name] += perf_counter() - clock

        return run


class Ingested(NamedTuple):
    """Seconds of an ingest by the clock, and of this process alone in CPU time; the same where nothing has changed."""

    clock: float
    cpu: float
    clock_again: float
    report: IngestReport


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few pages")
    pages = 20 if parser.parse_args().quick else 100
    with TemporaryDirectory() as home:
        folder = copied(DATA / FOLDER, Path(home) / "docs", pages)
        stages = Stages()
        local = ingested(folder, stages, stages)
        start = perf_counter()
        with RayEngine() as engine:
            list(engine.map(list, [[number] for number in range(8)]))
            starting, start = perf_counter() - start, perf_counter()
            list(engine.map(list, [[number] for number in range(TASKS)]))
            a_task = (perf_counter() - start) / TASKS
            ray = ingested(folder, engine)
    assert (local.report.added, local.report.chunks) == (ray.report.added, ray.report.chunks)
    sources, chunks = len(local.report.added), local.report.chunks
    print(f"{sources} sources, {chunks:,} chunks, {os.cpu_count()} cores\n")
    print("| seconds | this process | Ray | ratio |")
    print("|---|--:|--:|--:|")
    print(f"| first ingest, by the clock | {local.clock:.1f} | {ray.clock:.1f} | {ray.clock / local.clock:.2f} |")
    print(f"| CPU time of this process | {local.cpu:.1f} | {ray.cpu:.1f} | {ray.cpu / local.cpu:.2f} |")
    again = ray.clock_again / local.clock_again
    print(f"| nothing has changed, by the clock | {local.clock_again:.3f} | {ray.clock_again:.3f} | {again:.1f} |")
    print(f"| start of a cluster and its first worker | 0 | {starting:.1f} | |")
    print(f"\nAn empty task takes {1000 * a_task:.2f} ms by the clock.\n")
    print("| stage, in this process | CPU s | clock s | CPU ms a source | with Ray on |")
    print("|---|--:|--:|--:|---|")
    for stage, place in STAGES.items():
        cpu = stages.cpu[stage]
        print(f"| {stage} | {cpu:.2f} | {stages.clock[stage]:.2f} | {1000 * cpu / sources:.2f} | {place} |")
    extrapolated(local, ray, stages)


def extrapolated(local: Ingested, ray: Ingested, stages: Stages) -> None:
    """Print how long the ingest would take with more cores."""
    indexing = stages.clock["flush"]
    driver = max(ray.cpu - stages.cpu["flush"], stages.clock["replace_source"])
    work, own = stages.cpu["prepare"], os.cpu_count() or 1
    here = driver + work / own
    print(f"\nExtrapolated, without starting ({indexing:.1f} s to bring indexes up to date come on top of each):\n")
    print("| cores | chunks a second | times as fast as this process |")
    print("|--:|--:|--:|")
    print(f"| {own}, this process | {local.report.chunks / here:.0f} | 1 |")
    for cores in (2, 4, 8, 16, 32, 64, 128):
        seconds = max(driver, work / cores)
        print(f"| {cores} | {local.report.chunks / seconds:.0f} | {here / seconds:.1f} |")
    print(f"\nFrom {work / driver:.0f} cores on, the driver is the limit: {local.report.chunks / driver:.0f} chunks/s.")


def copied(tree: Path, folder: Path, pages: int) -> Path:
    """The first pages of a tree, flat."""
    folder.mkdir()
    found = sorted(tree.rglob("*.md"))[:pages]
    if not found:
        raise SystemExit(f"no pages in {str(tree)!r}; set RAGISTRY_DATA")
    for number, path in enumerate(found):
        (folder / f"{number:04}.md").write_bytes(path.read_bytes())
    return folder


def ingested(folder: Path, engine: Engine, stages: Stages | None = None) -> Ingested:
    """A first ingest, and one where nothing has changed. ``stages``: where the calls of the store are counted."""
    with TemporaryDirectory() as home, open_workspace(home) as workspace:
        library, store = workspace.library, workspace.store
        library.create_collection("docs", "Documentation")
        library.embedder.embed(["the model is loaded before the clock starts"])
        list(engine.map(partial(embed_one, library.embedder), [[number] for number in range(8)]))
        for name in ("known_vectors", "replace_source", "flush") if stages is not None else ():
            setattr(store, name, stages.measured(getattr(store, name), name))
        cpu, start = process_time(), perf_counter()
        report = library.ingest_folder(folder, "docs", engine=engine)
        clock, cpu, start = perf_counter() - start, process_time() - cpu, perf_counter()
        library.ingest_folder(folder, "docs", engine=engine)
        return Ingested(clock, cpu, perf_counter() - start, report)


def embed_one(embedder: Embedder, numbers: list[int]) -> list[int]:
    """Loads the model where it is called."""
    embedder.embed([str(number) for number in numbers])
    return numbers


if __name__ == "__main__":
    main()
