"""What `local_store` measures on whole processes: ingest twice, a search from the command line, memory."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.local_store_build import Built, measured
from benchmarks.local_store_data import CHARACTERS, SHARES, query_texts, query_vectors, sources
from benchmarks.local_store_row import Row
from benchmarks.local_store_words import ReadyEmbedder
from ragistry.config.resolve import resolve
from ragistry.library.ingest.folder import files_of
from ragistry.library.ingest.run import Ingest
from ragistry.library.ingest.source import ReadOptions
from ragistry.models.minilm import MiniLMEmbedder
from ragistry.stores.local import LocalStore

REPOSITORY = Path(__file__).resolve().parents[1]
UNCHANGED_CHUNKS, UNCHANGED = 4_000, 0.03
COMMAND_SECONDS, COMMAND_RUNS = 1.5, 5
MEMORY_MB = {"ingest": 700, "search": 500}
CHILD = "from benchmarks.local_store_process import {name}; {name}({arguments})"


def reingest_row(temporary: Path) -> Row:
    """Files that have not changed, by an embedder that costs nothing, so that all the rest is seen."""
    folder = temporary / "files"
    for source in sources(UNCHANGED_CHUNKS):
        path = folder / source.source_file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n\n".join(chunk.text for chunk in source.chunks), encoding="utf-8")
    reading, files = ReadOptions(chunk_size=CHARACTERS + 10, chunk_overlap=0), files_of(folder)
    embedder, costs, chunks = ReadyEmbedder(), [], 0
    for _ in range(2):
        with closing(LocalStore(temporary / "twice")) as store:
            before = embedder.calls
            with measured() as cost:
                report = Ingest(store, embedder, reading, "notes").run(files)
            costs.append(cost[0].wall)
            chunks = store.count()
    calls, ratio = embedder.calls - before, costs[1] / costs[0]
    return Row(
        f"ingest of {chunks:,} unchanged chunks in {len(report.skipped)} files (raw: the first)",
        f"{costs[1]:.3f} s, {calls} model calls", f"{costs[0]:.2f} s", f"{ratio:.1%}", f"{UNCHANGED:.0%}, no call",
        ratio <= UNCHANGED and calls == 0,
    )  # fmt: skip


def search_command_row(temporary: Path, chunks: int) -> Row:
    """``ragistry search`` with the technique that is the default, and the model that is."""
    workspace = temporary / "workspace"
    (workspace / "config").mkdir(parents=True)
    lines = [f"  - {{name: {name}, description: made up}}" for name in SHARES]
    (workspace / "config" / "documents.yaml").write_text("\n".join(["collections:", *lines]), encoding="utf-8")
    with closing(LocalStore(workspace / resolve(workspace).settings.data_dir)) as store:
        store.use_embedder(MiniLMEmbedder().fingerprint)
        for source in sources(chunks):
            store.replace_source(source.collection, source.source_file, source.chunks)
    text = query_texts(1)[0]
    command = ["-m", "ragistry", "search", text, "--json", "--workspace", str(workspace)]
    traced = subprocess.run([sys.executable, "-X", "importtime", *command], check=True, capture_output=True, text=True)
    imported = any(line.rpartition("|")[2].split(".")[0].strip() == "chromadb" for line in traced.stderr.splitlines())
    answer = json.loads(traced.stdout)
    seconds = []
    for _ in range(COMMAND_RUNS):
        start = perf_counter()
        subprocess.run([sys.executable, *command], check=True, capture_output=True)
        seconds.append(perf_counter() - start)
    wall = median(seconds)
    stages = ", ".join(stage["name"] for stage in answer["trace"] if not stage["depth"])
    return Row(
        f"`ragistry search`, new process, {chunks:,} chunks ({stages}, {answer['total_results']} documents)",
        f"{wall:.2f} s, chromadb {'imported' if imported else 'not imported'}", "", "",
        f"{COMMAND_SECONDS} s, not imported", wall <= COMMAND_SECONDS and not imported and bool(answer["documents"]),
    )  # fmt: skip


def memory_rows(built: Built, temporary: Path) -> list[Row]:
    """The largest that a process of its own was, most of which an operating system may take back: pages of files."""
    cases = [
        ("ingest", "ingested", "ingest", (str(temporary / "memory"), built.chunks, False)),
        ("ingest", "ingested by a server, then searched", "ingest", (str(temporary / "server"), built.chunks, True)),
        ("search", "searched in all ways", "search", (str(built.ours),)),
    ]
    rows = []
    for kind, work, name, arguments in cases:
        code = CHILD.format(name=name, arguments=", ".join(map(repr, arguments)))
        done = subprocess.run(
            [sys.executable, "-c", code], check=True, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
        )
        memory = json.loads(done.stdout)
        rows.append(
            Row(
                f"{built.chunks:,}: memory, {work}",
                f"{memory['peak']:.0f} MB at most, {memory['own']:.0f} + {memory['files']:.0f} of files at the end",
                bar=f"{MEMORY_MB[kind]} MB", met=memory["peak"] <= MEMORY_MB[kind],
            )
        )  # fmt: skip
    return rows


def ingest(folder: str, chunks: int, server: bool) -> None:
    """In a process of its own: take chunks in, source by source, and print what memory that took."""
    store = LocalStore(folder, exclusive=server)
    for source in sources(chunks):
        store.replace_source(source.collection, source.source_file, source.chunks)
    store.flush()
    if server:
        for query in query_vectors(2):
            store.search(query)
    print(json.dumps(memory()))
    store.close()


def search(folder: str) -> None:
    """In a process of its own: search in every way, and print what memory that took."""
    with closing(LocalStore(folder)) as store:
        for query, text in zip(query_vectors(20), query_texts(20), strict=True):
            store.search(query, 10)
            store.search_text(text, 10)
            for name in SHARES:
                store.search(query, 10, where={"collection": name})
        print(json.dumps(memory()))


def memory() -> dict[str, float]:
    """Megabytes resident of this process: the most so far, and now its own and those of files (Linux)."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    kilobytes = {
        key: int(value.split()[0]) for key, _, value in (line.partition(":") for line in lines) if " kB" in value
    }
    return {
        "peak": kilobytes["VmHWM"] / 1024,
        "own": kilobytes["RssAnon"] / 1024,
        "files": kilobytes["RssFile"] / 1024,
    }
