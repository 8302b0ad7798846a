"""Kills writers at random moments and looks at what is left: `ragistry ingest`, and a store that uses ChromaDB.

    python benchmarks/kill.py [--kills 100 | --quick] [--number 1234]

A source has two versions at any time, what was last acknowledged and what is being written; each chunk says which it
belongs to. After each kill a fresh process must find every source wholly in one of them, nothing that was
acknowledged lost, every chunk by its own vector and by its words, and the files sound. The number decides where the
kills fall; it is printed, so that a run can be made again.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ragistry.stores.local import LocalStore
from ragistry.types import EmbeddedChunk

SOURCES = 16
PARAGRAPHS = 4
STORE_SOURCES, STORE_CHUNKS, DIMENSION = 30, 40, 32
"""Enough vectors that ChromaDB writes its index to disk, which it does every 1,000."""
WORDS = ("harbour", "lantern", "meadow", "copper", "violin", "glacier", "orchard", "compass", "thunder", "velvet")


@dataclass
class Tally:
    """What was seen of one kind of writer."""

    name: str
    kills: int = 0
    writing: int = 0
    lost: int = 0
    torn: int = 0
    chunks: int = 0
    rank_one: int = 0
    words: int = 0
    unsound: int = 0
    rebuilt: Counter[str] = field(default_factory=Counter)

    def row(self) -> str:
        rebuilt = ", ".join(f"{name} {times}" for name, times in sorted(self.rebuilt.items())) or "none"
        return (
            f"| {self.name} | {self.kills} | {self.writing} | {self.lost} | {self.torn} | {self.words} | "
            f"{100 * self.rank_one / max(self.chunks, 1):.2f} % of {self.chunks:,} | {self.unsound} | {rebuilt} |"
        )


def word(source: str, version: int) -> str:
    """The word that every chunk of a version of a source has, and no other chunk."""
    return f"{source}v{version}"


# The writers


def write_notes(folder: Path, versions: dict[str, int]) -> None:
    """Text files whose paragraphs become chunks."""
    for source, version in versions.items():
        rng = random.Random(f"{source} {version}")
        paragraphs = [
            f"{word(source, version)} part{part} " + " ".join(rng.choices(WORDS, k=14)) + "."
            for part in range(PARAGRAPHS)
        ]
        (folder / f"{source}.txt").write_text("\n\n".join(paragraphs), encoding="utf-8")


class Ingest:
    """`ragistry ingest` of a folder of notes."""

    name = "`ragistry ingest`"

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = root / ".ragistry"
        self.sources = [f"note{number:02}" for number in range(SOURCES)]
        self.exclusive = False
        self.file_of = "{}.txt"
        (root / "notes").mkdir(parents=True)
        (root / "config").mkdir()
        settings = "chunk_size: 150\nchunk_overlap: 0\ncollections:\n  - name: notes\n    description: 'Notes'\n"
        (root / "config" / "documents.yaml").write_text(settings, encoding="utf-8")

    def start(self, versions: dict[str, int]) -> subprocess.Popen[str]:
        write_notes(self.root / "notes", versions)
        command = ["-m", "ragistry", "ingest", "notes", "--collection", "notes", "--workspace", ".", "--json"]
        return started(command, self.root)

    def acknowledged(self, output: str, versions: dict[str, int]) -> dict[str, int]:
        """What it said to be stored: all of it with the last line of its report, before that nothing."""
        return versions if output.rstrip().endswith("}") else {}


class Server:
    """A store that keeps the right to write and searches by ChromaDB after each source that it writes."""

    name = "exclusive store with ChromaDB"

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = root / "store"
        self.sources = [f"page{number:02}" for number in range(STORE_SOURCES)]
        self.exclusive = True
        self.file_of = "{}"
        root.mkdir(parents=True)

    def start(self, versions: dict[str, int]) -> subprocess.Popen[str]:
        return started([__file__, "serve", str(self.store), json.dumps(versions)], self.root)

    def acknowledged(self, output: str, versions: dict[str, int]) -> dict[str, int]:
        """What it said to be stored: a line a source."""
        lines = output.splitlines()[:-1] if output and not output.endswith("\n") else output.splitlines()
        return {source: versions[source] for source in lines if source in versions}


def started(arguments: list[str], folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


def serve(folder: str, versions: dict[str, int]) -> None:
    """Write each source, and say so."""
    store = LocalStore(folder, exclusive=True, exact_below=0)
    for source, version in versions.items():
        store.replace_source("c", source, page(source, version))
        print(source, flush=True)
        assert store.search(np.ones(DIMENSION).tolist(), 1)
    store.close()


def page(source: str, version: int) -> list[EmbeddedChunk]:
    rng = np.random.default_rng(random.Random(f"{source} {version}").randrange(2**32))
    origin = {"collection": "c", "source_file": source, "source": source, "source_hash": str(version)}
    return [
        EmbeddedChunk(f"{word(source, version)} part{index}", {**origin, "chunk_index": index}, vector)
        for index, vector in enumerate(rng.normal(size=(STORE_CHUNKS, DIMENSION)))
    ]


# What is left, seen by a fresh process


class Warnings(logging.Handler):
    """Which indexes were made again."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.rebuilt: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if "making it again" in record.getMessage():
            self.rebuilt.append("words" if "/lexical:" in record.getMessage() else "vectors")


def look(folder: str, exclusive: bool) -> dict[str, Any]:
    """Versions by source, and how well each chunk is found."""
    warnings = Warnings()
    logging.getLogger("ragistry").addHandler(warnings)
    store = LocalStore(folder, exclusive=exclusive, exact_below=0 if exclusive else 20_000)
    with store._state.read() as (connection, _):
        pending = store._indexes.lexical.pending(connection) > 0
    seen: dict[str, list[str]] = {}
    documents = list(store.scan())
    for document in documents:
        seen.setdefault(document.metadata["source_file"], []).append(document.content.split()[0])
    whole = {info.source_file: info.chunks for info in store.sources() if info.source_hash}
    vectors = store.vectors([document.id for document in documents])
    rank_one = sum(
        document.id == store.search(vector.tolist(), 1)[0].id
        for document, vector in zip(documents, vectors, strict=True)
    )
    words = sum(len(store.search_text(token, 1000)) != len(tokens) for tokens in seen.values() for token in set(tokens))
    problems = store.verify()
    store.close()
    return {
        "seen": seen, "whole": whole, "chunks": len(documents), "rank_one": rank_one, "words": words,
        "problems": problems, "rebuilt": warnings.rebuilt, "pending": pending,
    }  # fmt: skip


def looked(writer: Ingest | Server) -> dict[str, Any]:
    command = [sys.executable, __file__, "look", str(writer.store), json.dumps(writer.exclusive)]
    ended = subprocess.run(command, text=True, capture_output=True, timeout=600, check=False)
    if ended.returncode:
        raise RuntimeError(f"the store cannot be read after a kill (code {ended.returncode}): {ended.stderr[-2_000:]}")
    result: dict[str, Any] = json.loads(ended.stdout)
    return result


def judge(
    writer: Ingest | Server, tally: Tally, old: dict[str, int], new: dict[str, int], acknowledged: dict[str, int]
) -> dict[str, int]:
    """Count what is wrong, and return the version of each source that is there now."""
    left = looked(writer)
    chunks = PARAGRAPHS if isinstance(writer, Ingest) else STORE_CHUNKS
    present: dict[str, int] = {}
    for source in writer.sources:
        tokens = left["seen"].get(writer.file_of.format(source), [])
        versions = {int(token.rsplit("v", 1)[1]) for token in tokens}
        allowed = {acknowledged.get(source, old.get(source)), new.get(source)}
        if not tokens and None in allowed:
            continue
        if not versions & allowed:
            tally.lost += 1
        elif len(versions) != 1 or {len(tokens), left["whole"].get(writer.file_of.format(source))} != {chunks}:
            tally.torn += 1
        present[source] = max(versions, default=0)
    written = sum(present.get(source) == new[source] != old.get(source) for source in new)
    tally.writing += left["pending"] or 0 < written < sum(new[source] != old.get(source) for source in new)
    tally.chunks += left["chunks"]
    tally.rank_one += left["rank_one"]
    tally.words += left["words"]
    tally.unsound += bool(left["problems"])
    tally.rebuilt.update(left["rebuilt"])
    return present


def run(writer: Ingest | Server, kills: int, rng: random.Random) -> Tally:
    """Let a writer change half of its sources again and again; at a random moment of each run, kill it."""
    tally = Tally(writer.name)
    version = 1
    present = dict.fromkeys(writer.sources, version)
    began = time.monotonic()
    process = writer.start(present)
    process.communicate()
    duration = time.monotonic() - began
    if process.returncode:
        raise RuntimeError(f"{writer.name} ended with code {process.returncode}")
    while tally.kills < kills:
        version += 1
        changed = rng.sample(writer.sources, len(writer.sources) // 2)
        wanted = present | dict.fromkeys(changed, version)
        began = time.monotonic()
        process = writer.start(wanted)
        try:
            output, _ = process.communicate(timeout=rng.uniform(0.05, 1.05) * duration)
            duration = 0.7 * duration + 0.3 * (time.monotonic() - began)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            output, _ = process.communicate()
            tally.kills += 1
        present = judge(writer, tally, present, wanted, writer.acknowledged(output or "", wanted))
        if sys.stderr.isatty():
            print(f"\r{writer.name}: {tally.kills} of {kills}", end="", file=sys.stderr)
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="of each writer (default 100)")
    parser.add_argument("--quick", action="store_true", help="10 kills of each")
    parser.add_argument("--number", type=int, default=random.randrange(10_000), help="decides where the kills fall")
    options = parser.parse_args()
    kills = 10 if options.quick else options.kills
    print(f"number {options.number}, {kills} kills of each\n")
    columns = (
        "writer", "kills", "of these while it wrote", "lost", "torn", "words not found",
        "found by its own vector at rank 1", "unsound after opening", "indexes made again",
    )  # fmt: skip
    print(f"| {' | '.join(columns)} |\n|---|{'--:|' * (len(columns) - 2)}---|")
    with tempfile.TemporaryDirectory() as folder:
        for kind in (Ingest, Server):
            writer = kind(Path(folder) / kind.__name__)
            print(run(writer, kills, random.Random(f"{options.number} {kind.__name__}")).row(), flush=True)
    print("\nasked for: nothing lost, nothing torn, at least 99.9 % at rank 1, sound after opening")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", folder, versions]:
            serve(folder, json.loads(versions))
        case ["look", folder, exclusive]:
            print(json.dumps(look(folder, json.loads(exclusive))))
        case _:
            main()
