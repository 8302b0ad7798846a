"""The writers that `benchmarks.kill` kills, and what they write. As a script: a server that writes sources."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np

from ragistry.stores.local import LocalStore
from ragistry.types import EmbeddedChunk

ROOT = Path(__file__).resolve().parents[1]
SOURCES, PARAGRAPHS = 16, 4
STORE_SOURCES, STORE_CHUNKS, DIMENSION = 30, 40, 32
"""Enough vectors that ChromaDB writes its index to disk, which it does every 1,000."""
WORDS = ("harbour", "lantern", "meadow", "copper", "violin", "glacier", "orchard", "compass", "thunder", "velvet")


def word(source: str, version: int) -> str:
    """The word that every chunk of a version of a source has, and no other chunk."""
    return f"{source}v{version}"


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
        self.chunks = PARAGRAPHS
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
        self.chunks = STORE_CHUNKS
        root.mkdir(parents=True)

    def start(self, versions: dict[str, int]) -> subprocess.Popen[str]:
        return started(["-m", "benchmarks.kill_writers", str(self.store), json.dumps(versions)], ROOT)

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
    store = LocalStore(folder, exclusive=True, graph_above=0)
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


if __name__ == "__main__":
    serve(sys.argv[1], json.loads(sys.argv[2]))
