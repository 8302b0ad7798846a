"""Ends a process at each step of a write, as a kill would. A script: see `test_local_crash`.

    python -m tests.stores.crashes SCENARIO BASE TARGET

A child writes to a copy of the folder BASE and ends, without a word, before its first step; the next one before its
second, until one gets through. Steps are the statements that change the database, what changes the folder, and what
the indexes take in. For each child a line is printed: its folder, a tab, the step that it did not do.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any

from ragistry.stores import database, lexical, local, stamp, vector_index
from tests.stores.local_stores import ALL, put, version_of

CHANGES = ("BEGIN IMMEDIATE", "INSERT", "UPDATE", "DELETE", "COMMIT", "CREATE", "PRAGMA wal", "PRAGMA journal_mode")
FILE_EVENTS = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link")
CRASHED = 77


class Steps:
    """Counts the steps of this process, and ends it before one of them."""

    def __init__(self, folder: Path, last: int, report: int) -> None:
        self.folder, self.last, self.report = str(folder), last, report
        self.done = 0
        self.name = ""
        self.counts = False

    def step(self, name: str) -> None:
        if not self.counts or name == self.name:  # one of many rows, files …
            return
        self.name = name
        self.done += 1
        if self.done == self.last:
            os.write(self.report, name.encode())
            os._exit(CRASHED)

    def statement(self, sql: str) -> None:
        # Of what is committed, the transaction decides; of one that only reads there is nothing to see.
        if sql.startswith(CHANGES):
            self.step(" ".join(sql.split()[:3]))

    def event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in ("open", *FILE_EVENTS) or not str(arguments[0]).startswith(self.folder):
            return
        path = Path(os.fsdecode(arguments[0]))
        writes = event != "open" or (isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR))
        # Who holds the lock is a note for people.
        if writes and path.suffix not in (".lock", ".holder"):
            self.step(f"{event} {path.name[:20]}")

    def around(self, owner: Any, name: str) -> None:
        call = getattr(owner, name)

        @wraps(call)
        def stepped(*arguments: Any, **options: Any) -> Any:
            self.step(f"before {name}")
            result = call(*arguments, **options)
            self.step(f"after {name}")
            return result

        setattr(owner, name, staticmethod(stepped) if name == "build" else stepped)

    def install(self) -> None:
        connect = database.Database._connect

        def traced(owner: database.Database) -> sqlite3.Connection:
            connection = connect(owner)
            connection.set_trace_callback(self.statement)
            return connection

        database.Database._connect = traced
        for index in (lexical.LexicalIndex, vector_index.VectorIndex):
            self.around(index, "apply")
            self.around(index, "build")
        self.around(stamp.Stamp, "confirm")
        sys.addaudithook(self.event)


def create(store: local.LocalStore) -> Iterator[None]:
    put(store, version_of("a.md", 1))
    yield


def replace(store: local.LocalStore) -> Iterator[None]:
    yield
    put(store, version_of("a.md", 2))
    store.search_text("source")


def delete(store: local.LocalStore) -> Iterator[None]:
    yield
    store.delete(where={"source_file": "b.md"})


def move(store: local.LocalStore) -> Iterator[None]:
    yield
    store.move_source("a.md", "c", "d")


def clear(store: local.LocalStore) -> Iterator[None]:
    yield
    store.clear_collection()


def rebuild(store: local.LocalStore) -> Iterator[None]:
    (store.folder / "lexical" / "made-from.json").unlink()
    yield
    store.search_text("source")


def catch_up_vectors(store: local.LocalStore) -> Iterator[None]:
    put(store, version_of("a.md", 2))
    store.flush()
    yield
    store.search(ALL)


def rebuild_vectors(store: local.LocalStore) -> Iterator[None]:
    (store.folder / "chroma" / "made-from.json").unlink()
    yield
    store.search(ALL)


SCENARIOS: dict[str, Callable[[local.LocalStore], Iterator[None]]] = {
    scenario.__name__: scenario
    for scenario in (create, replace, delete, move, clear, rebuild, catch_up_vectors, rebuild_vectors)
}
"""What is done to a store; the steps after ``yield`` count, of `create` all of them."""


def open_store(scenario: str, folder: Path) -> local.LocalStore:
    """The store as the scenario uses it: those with vectors always search the approximate index."""
    vectors = scenario.endswith("vectors")
    return local.LocalStore(folder, exclusive=vectors, graph_above=0 if vectors else local.GRAPH_ABOVE)


def child(scenario: str, folder: Path, last: int, report: int) -> None:
    steps = Steps(folder, last, report)
    steps.install()
    steps.counts = scenario == "create"
    store = open_store(scenario, folder)
    scene = SCENARIOS[scenario](store)
    next(scene)
    steps.counts = True
    next(scene, None)
    store.close()
    os._exit(0)


def main(scenario: str, base: Path, target: Path) -> None:
    if scenario.endswith("vectors"):
        import_module("chromadb")  # once, before the fork
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
