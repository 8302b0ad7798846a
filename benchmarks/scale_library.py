"""The libraries of `scale`: how they are filled, and how they are searched, with what that costs.

Chunks and vectors are made up (`local_store_data`), and the vector of a query is there already, so that what is
measured is the store and the techniques, without the model.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import psutil  # type: ignore[import-untyped]

from benchmarks.local_store_data import CHUNKS, query_texts, query_vectors, sources
from benchmarks.local_store_process import memory
from benchmarks.local_store_words import ReadyEmbedder
from ragistry.protocols import LibraryStore, Technique
from ragistry.stores.local import LocalStore
from ragistry.stores.postgres import PostgresStore
from ragistry.techniques.bm25 import BM25Technique
from ragistry.techniques.hybrid import HybridTechnique
from ragistry.techniques.naive import NaiveRAGTechnique
from ragistry.techniques.routing.target import Target
from ragistry.techniques.routing.technique import CollectionRoutedTechnique
from ragistry.types import Document
from tests.postgres_server import PostgresServer, postgres_server

STORES = ("local", "postgres")
TOP_K, QUERIES = 10, 101
FILTERS = {"half": 0.5, "p5": 0.05, "p05": 0.005, "p001": 0.0001}
"""Collections that take a part of all sources; the others share the rest alike."""
ROUTED = (10, 100, 1_000)
SERVER = {"shared_buffers": "2GB", "maintenance_work_mem": "3GB", "max_wal_size": "8GB", "fsync": "on"}


class Case(NamedTuple):
    """A library: its store, its chunks, and how many collections; ``even``: all of these of the same size."""

    store: str
    chunks: int
    collections: int
    even: bool = False

    @property
    def name(self) -> str:
        return f"{self.store}-{self.chunks}-{self.collections}{'-even' if self.even else ''}"

    @property
    def centres(self) -> int:
        """A larger library has more subjects, not more chunks of each: 500 chunks lie around a centre."""
        return max(1, self.chunks // 500)

    def names(self) -> list[str]:
        """Of the collections that share the rest."""
        return [f"c{number:04}" for number in range(self.collections - (0 if self.even else len(FILTERS)))]

    def layout(self) -> list[str]:
        """The collection of each source, in the order in which they are taken in."""
        count, rest = self.chunks // CHUNKS, self.names()
        shares = {} if self.even else {name: max(1, round(share * count)) for name, share in FILTERS.items()}
        names = [name for name, many in shares.items() for _ in range(many)]
        names += [rest[place % len(rest)] for place in range(count - len(names))]
        np.random.default_rng(6).shuffle(names)
        return names


@contextmanager
def opened(case: Case, folder: Path) -> Iterator[tuple[LibraryStore, PostgresServer | None]]:
    """The store of a case in its folder, and the server that it is on."""
    if case.store == "local":
        with closing(LocalStore(folder / "store", exclusive=True)) as local:
            yield local, None
    else:
        with (
            postgres_server(folder / "server", **SERVER) as server,
            closing(PostgresStore(server.url, folder=folder / "words", timeout=600)) as remote,
        ):
            yield remote, server


def _server_cpu(server: PostgresServer | None) -> float:
    """CPU seconds of the processes of the server."""
    if server is None or server.process is None:
        return 0.0
    main = psutil.Process(server.process.pid)
    ended = sum(main.cpu_times()[:4])  # and its own
    return float(ended + sum(sum(child.cpu_times()[:2]) for child in main.children(recursive=True)))


def build(case: Case, folder: Path) -> dict[str, float]:
    """Fill a store source by source, unless the folder has it; seconds on the clock and of CPU, and bytes on disk."""
    record = folder / "built.json"
    if not record.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        folder.chmod(0o755)  # the server may run as another user
        with opened(case, folder) as (store, server):
            written, written_cpu = 0.0, -_server_cpu(server)
            for source in sources(case.chunks, case.layout(), case.centres):
                start, began = perf_counter(), process_time()
                store.replace_source(source.collection, source.source_file, source.chunks)
                written += perf_counter() - start
                written_cpu += process_time() - began
            written_cpu += _server_cpu(server)
            start, began = perf_counter(), process_time() + _server_cpu(server)
            store.flush()
            indexed, indexed_cpu = perf_counter() - start, process_time() + _server_cpu(server) - began
        disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        figures = {
            "written": written, "written_cpu": written_cpu, "indexed": indexed, "indexed_cpu": indexed_cpu, "disk": disk
        }  # fmt: skip
        record.write_text(json.dumps(figures), encoding="utf-8")
    kept: dict[str, float] = json.loads(record.read_text(encoding="utf-8"))
    return kept


def search(case: Case, folder: Path) -> None:
    """Search in every way, and print for each the milliseconds of every query, and what was found; and memory."""
    texts, vectors = query_texts(QUERIES), query_vectors(QUERIES, case.centres)
    embedder = ReadyEmbedder(dict(zip(texts, vectors, strict=True)))
    told: dict[str, Any] = {"times": {}, "found": {}, "memory": {}}

    def measure(name: str, ask: Callable[[str], list[Document]]) -> None:
        start = perf_counter()
        ask(texts[0])
        first = (perf_counter() - start) * 1e3
        for text in texts:  # a library that was kept is not in memory yet
            ask(text)
        times, found = [], []
        for text in texts:
            start = perf_counter()
            documents = ask(text)
            times.append((perf_counter() - start) * 1e3)
            found.append([document.id for document in documents])
        told["times"][name] = [first, *times]
        told["found"][name] = found
        told["memory"][name] = memory()

    with opened(case, folder) as (store, server):
        dense, words = NaiveRAGTechnique({}, store=store, embedder=embedder), BM25Technique({}, store=store)
        hybrid = HybridTechnique({}, bases=[dense, words])
        measure("unfiltered", partial(dense.retrieve, top_k=TOP_K))
        filters = {case.names()[0]: 0.0} if case.even else FILTERS
        for name in filters:
            measure(name, partial(dense.retrieve, top_k=TOP_K, where={"collection": name}))
        measure("bm25", partial(words.retrieve, top_k=TOP_K))
        measure("hybrid", partial(hybrid.retrieve, top_k=TOP_K))
        for many in ROUTED:
            if many <= case.collections:
                routed = _routed(case, many, hybrid, store, embedder)
                measure(f"routed over {many:,}", partial(routed.retrieve, top_k=TOP_K))
        start = perf_counter()
        told["sources"] = len(store.sources())
        told["listing"] = (perf_counter() - start) * 1e3
        told["server"] = _server_memory(server)
    print(json.dumps(told))


def _routed(
    case: Case, many: int, base: Technique, store: LibraryStore, embedder: ReadyEmbedder
) -> CollectionRoutedTechnique:
    names = [*case.names(), *(() if case.even else FILTERS)][-many:]
    targets = [Target(name) for name in names]
    return CollectionRoutedTechnique({}, base=base, store=store, embedder=embedder, targets=lambda: targets)


def _server_memory(server: PostgresServer | None) -> float:
    """Megabytes that the processes of the server share and have, each page counted once."""
    if server is None or server.process is None:
        return 0.0
    main = psutil.Process(server.process.pid)
    every = [main, *main.children(recursive=True)]
    return float(sum(process.memory_full_info().pss for process in every) / 1e6)
