"""Ends processes at steps of writes, as a kill would. A script for `test_local_crash`.

    python -m tests.stores.crashes BASE TARGET SAMPLE [SCENARIO...]

A child works on a copy of the folder BASE and exits without cleaning up before one of its steps; the last child of a
scenario completes. A step is an SQL statement that changes the database, a change of a file or folder, or a call that
writes an index. SAMPLE: number of steps of each scenario that a seeded generator chooses beside the first, the last and
every begin of a transaction, which show all that is ever committed; 0: all. Prints a line for each child: scenario, its
folder, the step.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

from ragistry.library.embedding import reembed
from ragistry.stores.local import LocalStore, vectors, words
from ragistry.testing.hashed import HashingEmbedder
from tests.stores.local_stores import ALL, DIMENSION, Truth, moved, put, truth_of, version_of

BEGIN = "BEGIN IMMEDIATE"
CHANGES = (BEGIN, "INSERT", "UPDATE", "DELETE", "COMMIT", "CREATE", "PRAGMA wal", "PRAGMA journal_mode")
FILE_EVENTS = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate", "shutil.rmtree")
CRASHED = 77


class Steps:
    """Counts the steps of this process and ends it before one of them."""

    def __init__(self, folder: Path, last: int, report: int) -> None:
        self.folder, self.last, self.report = str(folder), last, report
        self.names = [""]
        self.counts = False

    def step(self, name: str) -> None:
        if not self.counts or name == self.names[-1]:  # one of many rows or files
            return
        self.names.append(name)
        if len(self.names) - 1 == self.last:
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


A, A2, B, C = version_of("a.md", 1), version_of("a.md", 2), version_of("b.md", 1), version_of("c.md", 1)
OTHER = HashingEmbedder(DIMENSION, model="other")
WRITES: dict[str, tuple[Callable[[LocalStore], object], Truth]] = {
    "replace": (lambda store: put(store, A2), truth_of(A2, B)),
    "add": (lambda store: store.add_documents(C), truth_of(A, B, C)),
    "delete": (lambda store: store.delete(where={"source_file": "b.md"}), truth_of(A)),
    "move": (lambda store: store.move_source("a.md", "c", "d"), truth_of(moved(A, "d"), B)),
    "rename": (lambda store: store.move_collection("c", "d"), truth_of(moved(A, "d"), moved(B, "d"))),
    "clear": (lambda store: store.clear_collection(), {}),
    "reembed": (
        lambda store: reembed(store, OTHER),
        truth_of(*([c._replace(embedding=OTHER.embed([c.text])[0]) for c in source] for source in (A, B))),
    ),
}
"""Every write, and what a store of A and B holds afterwards."""
PREPARED: dict[str, Callable[[LocalStore], object]] = {
    "flush": lambda store: put(store, A2),
    "rebuild": lambda store: [(store.folder / name / "stamp.json").unlink() for name in ("words", "vectors")],
}
"""What is done before the steps count."""
SCENARIOS: dict[str, Callable[[LocalStore], object]] = {
    "create": lambda store: put(store, A),
    **{name: write for name, (write, _) in WRITES.items()},
    "flush": lambda store: store.flush(),
    "rebuild": lambda store: (store.search_text("source"), store.search(ALL)),
    "repair": lambda store: store.repair(),
}
"""What is done to a store."""


def child(scenario: str, folder: Path, last: int, report: int) -> None:
    steps = Steps(folder, last, report)
    steps.install()
    steps.counts = scenario == "create"
    store = LocalStore(folder)
    PREPARED.get(scenario, bool)(store)
    steps.counts = True
    SCENARIOS[scenario](store)
    store.close()
    os.write(report, "\n".join(steps.names[1:]).encode())
    os._exit(0)


def run(scenario: str, base: Path, folder: Path, last: int) -> str:
    """Run a child; return the step before which it ended, or its steps, one a line, if it completed."""
    if scenario != "create":
        shutil.copytree(base, folder)
    reading, writing = os.pipe()
    if os.fork() == 0:
        child(scenario, folder, last, writing)
    code = os.waitstatus_to_exitcode(os.wait()[1])
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        said = pipe.read()
    if code != (CRASHED if last else 0):
        sys.exit(f"{scenario}: a child ended with {code} before step {last}")
    return said


def main(base: Path, target: Path, sample: int, scenarios: Sequence[str]) -> None:
    dice = random.Random(5)
    for scenario in scenarios:
        place = target / scenario
        place.mkdir()
        origin = base.with_name("damaged") if scenario == "repair" else base
        steps = run(scenario, origin, place / "whole", 0).splitlines()
        chosen = range(1, len(steps) + 1)
        if 0 < sample < len(steps):
            begun = [number for number, step in enumerate(steps, 1) if step == BEGIN]
            chosen = sorted({1, len(steps), *begun, *dice.sample(chosen, sample)})
        for number in chosen:
            step = run(scenario, origin, place / f"{number:03}", number)
            sys.stdout.write(f"{scenario}\t{place / f'{number:03}'}\t{step}\n")
        sys.stdout.write(f"{scenario}\t{place / 'whole'}\t\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:] or list(SCENARIOS))
