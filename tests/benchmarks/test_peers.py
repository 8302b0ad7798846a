"""A side of the comparison with peers that hangs: the others go on, and what it came to is told."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.peers.__main__ import each
from benchmarks.peers.conversation import Conversation
from benchmarks.peers.environment import Framework
from benchmarks.peers.table import Measured, print_tables

QUICK = """
import json, sys
for line in sys.stdin:
    print(json.dumps({"wall": 0.5, "cpu": 0.25, "found": 20, "embedded": 0}), flush=True)
"""
HANGS = """
import json, pathlib, sqlite3, sys, time
folder = pathlib.Path(sys.argv[2])
folder.mkdir()
with sqlite3.connect(folder / "chroma.sqlite3") as database:
    database.execute("CREATE TABLE embeddings (id)")
    database.executemany("INSERT INTO embeddings VALUES (?)", [(number,) for number in range(7)])
time.sleep(60)
"""


class Environment:
    """Runs a script in place of a framework."""

    def __init__(self, name: str, script: str) -> None:
        self.framework = Framework(name, "", ())
        self.script = script

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-c", self.script, *arguments]

    def import_seconds(self) -> float:
        return 1.0

    def size(self) -> tuple[int, int]:
        return 1, 1_000_000

    def versions(self) -> str:
        return f"{self.framework.name} 1"


@pytest.mark.slow
def test_a_side_that_does_not_answer_in_time_is_told_with_how_far_it_came(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ExitStack() as stack:
        sides = []
        for name, script in (("Ragistry", QUICK), ("Slow", HANGS)):
            made = Environment(name, script)
            conversation = Conversation(made, tmp_path, tmp_path / name, timeout=4.0)  # type: ignore[arg-type]
            sides.append(Measured(made, stack.enter_context(conversation)))  # type: ignore[arg-type]
        for do in ("ingest", "count"):
            each(sides, do)
        print_tables(sides, 20, 1)
    printed = capsys.readouterr().out
    assert "| ingest, s | 0.50 | - |" in printed
    assert "| Ragistry | 20 | - |" in printed
    assert "Slow stopped at ingest: no answer within 4 s; 7 of 20 chunks were stored\n" in printed
    assert [side.failure != "" for side in sides] == [False, True]
