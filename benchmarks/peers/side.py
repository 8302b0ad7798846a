"""What every side is given, and how it is asked. It runs in each side's own environment: numpy and nothing else.

A side is asked over its standard input, one JSON object a line, and answers so on its standard output, so that all
sides can stay open and take turns.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple, Protocol

import numpy as np

TOP_K, FETCH = 10, 100
"""How many results are asked for, and how many of each part before they are fused."""


class Chunk(NamedTuple):
    """A chunk as every side stores it."""

    text: str
    metadata: dict[str, Any]

    @staticmethod
    def name(metadata: dict[str, Any]) -> str:
        """What a chunk is called in every answer, whatever its id is on that side."""
        return f"{metadata['source_file']}#{metadata['chunk_index']}"


class Corpus:
    """The chunks and queries in a folder that `prepare` has written; no model is needed by anyone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def chunks(self) -> list[Chunk]:
        lines = (self.folder / "chunks.jsonl").read_text(encoding="utf-8").splitlines()
        return [Chunk(**json.loads(line)) for line in lines]

    @cached_property
    def queries(self) -> list[str]:
        queries: list[str] = json.loads((self.folder / "queries.json").read_text(encoding="utf-8"))
        return queries

    @cached_property
    def by_source(self) -> dict[str, list[Chunk]]:
        """Source → its chunks, in order."""
        sources: dict[str, list[Chunk]] = {}
        for chunk in self.chunks:
            sources.setdefault(chunk.metadata["source_file"], []).append(chunk)
        return sources

    @cached_property
    def vectors(self) -> dict[str, Any]:
        """Text → its vector ``(d,)``, of chunks and of queries."""
        texts = [*(chunk.text for chunk in self.chunks), *self.queries]
        rows = np.concatenate([np.load(self.folder / name) for name in ("vectors.npy", "queries.npy")])
        return dict(zip(texts, rows, strict=True))


class Ready:
    """Gives the vectors that are there already, and counts how many texts it was asked for."""

    def __init__(self, corpus: Corpus) -> None:
        self.vectors = corpus.vectors
        self.asked = 0

    def rows(self, texts: Sequence[str]) -> Any:
        """``(n, d)`` float32."""
        self.asked += len(texts)
        return np.stack([self.vectors[text] for text in texts])

    def lists(self, texts: Sequence[str]) -> list[list[float]]:
        rows: list[list[float]] = self.rows(texts).tolist()
        return rows


class Side(Protocol):
    """One framework over its store. Searches give the names of chunks, best first."""

    ready: Ready

    def ingest(self) -> None:
        """Take in everything that is new, and close what was opened."""

    def open(self) -> None:
        """Be ready for searches by vector."""

    def open_words(self) -> None:
        """Be ready for hybrid searches."""

    def query(self, text: str) -> list[str]:
        """The nearest chunks."""

    def filtered(self, text: str, collection: str) -> list[str]:
        """The nearest of one collection."""

    def hybrid(self, text: str) -> list[str]:
        """The best by vector and by words, fused by rank."""

    def count(self) -> int:
        """How many chunks are stored."""


def serve(make: Callable[[Corpus, Path], Side]) -> None:
    """Answer what is asked until the input ends; arguments: the folder of the corpus, and one for the store."""
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever a library prints is no answer
    corpus = Corpus(Path(sys.argv[1]))
    side = make(corpus, Path(sys.argv[2]))
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(_answer(side, corpus, **asked)), file=answers, flush=True)


def _answer(side: Side, corpus: Corpus, do: str, number: int = 0, collection: str = "") -> dict[str, Any]:
    before = side.ready.asked
    arguments: list[Any] = []
    if do in ("query", "filtered", "hybrid"):
        arguments.append(corpus.queries[number])
    if do == "filtered":
        arguments.append(collection)
    wall, cpu = perf_counter(), process_time()
    found = getattr(side, do)(*arguments)
    taken = {"wall": perf_counter() - wall, "cpu": process_time() - cpu}
    return {**taken, "found": found, "embedded": side.ready.asked - before}
