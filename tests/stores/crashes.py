"""Ends a process at each step of a write, as a kill would. A script for `test_local_crash`.

    python -m tests.stores.crashes SCENARIO BASE TARGET

A child works on a copy of the folder BASE and exits without cleaning up before its first step; the next child exits
before its second step, and so on until one completes. A step is an SQL statement that changes the database, a change
of a file or folder, or a call that writes an index. Prints a line for each child: its folder, a tab, the step.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np

from ragistry.stores.local import LocalStore, vectors, words
from ragistry.types import EmbedderFingerprint
from tests.stores.local_stores import ALL, put, vector_of, version_of

CHANGES = ("BEGIN IMMEDIATE", "INSERT", "UPDATE", "DELETE", "COMMIT", "CREATE", "PRAGMA wal", "PRAGMA journal_mode")
FILE_EVENTS = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate", "shutil.rmtree")
CRASHED = 77


class Steps:
    """Counts the steps of this process and ends it before one of them."""

    def __init__(self, folder: Path, last: int, report: int) -> None:
        self.folder, self.last, self.report = str(folder), last, report
        self.done = 0
        self.name = ""
        self.counts = False

    def step(self, name: str) -> None:
        if not self.counts or name == self.name:  # one of many rows or files
            return
        self.name = name
        self.done += 1
        if self.done == self.last:
            os.write(self.report, name.encode())
            os._exit(CRASHED)

    def statement(self, sql: str) -> None:
        if sql.lstrip().startswith(CHANGES):
            self.step(" ".join(sql.split()[:3]))

    def event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in ("open", *FILE_EVENTS):
            return
        path = os.fsdecode(arguments[0]) if isinstance(arguments[0], str | bytes | os.PathLike) else ""
        if not path.startswith(self.folder) and (event == "open" or Path(path).is_absolute()):
            return
        writes = event != "open" or (isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR))
        if writes and not Path(path).name.startswith("lock"):
            self.step(f"{event} {Path(path).name[:20]}")

    def around(self, owner: Any, name: str) -> None:
        call = getattr(owner, name)

        @wraps(call)
        def stepped(*arguments: Any, **options: Any) -> Any:
            self.step(f"before {owner.__name__}.{name}")
            result = call(*arguments, **options)
            self.step(f"after {owner.__name__}.{name}")
            return result

        setattr(owner, name, stepped)

    def install(self) -> None:
        connect = sqlite3.connect

        def traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
            connection = connect(*arguments, **options)
            connection.set_trace_callback(self.statement)
            return connection

        sqlite3.connect = traced
        for index in (words.WordIndex, vectors.VectorIndex):
            self.around(index, "write")
        sys.addaudithook(self.event)


class Other:
    """Another embedder."""

    fingerprint = EmbedderFingerprint("test", "other", "", 8)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def embed(self, texts: Sequence[str], *, role: str = "document") -> Any:
        return np.array([vector_of(f"other {text}") for text in texts], dtype=np.float32)


def create(store: LocalStore) -> Iterator[None]:
    put(store, version_of("a.md", 1))
    yield


def replace(store: LocalStore) -> Iterator[None]:
    yield
    put(store, version_of("a.md", 2))


def add(store: LocalStore) -> Iterator[None]:
    yield
    store.add_documents(version_of("c.md", 1))


def delete(store: LocalStore) -> Iterator[None]:
    yield
    store.delete(where={"source_file": "b.md"})


def move(store: LocalStore) -> Iterator[None]:
    yield
    store.move_source("a.md", "c", "d")


def rename(store: LocalStore) -> Iterator[None]:
    yield
    store.move_collection("c", "d")


def clear(store: LocalStore) -> Iterator[None]:
    yield
    store.clear_collection()


def reembed(store: LocalStore) -> Iterator[None]:
    yield
    store.reembed(Other())


def flush(store: LocalStore) -> Iterator[None]:
    put(store, version_of("a.md", 2))
    yield
    store.flush()


def rebuild(store: LocalStore) -> Iterator[None]:
    for name in ("words", "vectors"):
        (store.folder / name / "stamp.json").unlink()
    yield
    store.search_text("source")
    store.search(ALL)


def repair(store: LocalStore) -> Iterator[None]:
    yield
    store.repair()


SCENARIOS: dict[str, Callable[[LocalStore], Iterator[None]]] = {
    scenario.__name__: scenario
    for scenario in (create, replace, add, delete, move, rename, clear, reembed, flush, rebuild, repair)
}
"""What is done to a store; the steps after ``yield`` count, and all steps of `create`."""


def child(scenario: str, folder: Path, last: int, report: int) -> None:
    steps = Steps(folder, last, report)
    steps.install()
    steps.counts = scenario == "create"
    store = LocalStore(folder)
    scene = SCENARIOS[scenario](store)
    next(scene)
    steps.counts = True
    next(scene, None)
    store.close()
    os._exit(0)


def main(scenario: str, base: Path, target: Path) -> None:
    number, code = 0, CRASHED
    while code == CRASHED:
        number += 1
        folder = target / f"{number:03}"
        if scenario != "create":
            shutil.copytree(base, folder)
        reading, writing = os.pipe()
        if os.fork() == 0:
            child(scenario, folder, number, writing)
        code = os.waitstatus_to_exitcode(os.wait()[1])
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8") as pipe:
            sys.stdout.write(f"{folder}\t{pipe.read()}\n")
            sys.stdout.flush()
    sys.exit(code)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
