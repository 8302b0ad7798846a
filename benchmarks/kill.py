"""Kills writers at random moments and looks at what is left: `ragistry ingest`, and a store that uses ChromaDB.

    python -m benchmarks.kill [--kills 100 | --quick] [--number 1234]

A source has two versions at any time, what was last acknowledged and what is being written; each chunk says which it
belongs to. After each kill a fresh process must find every source wholly in one of them, nothing that was
acknowledged lost, every chunk by its own vector and by its words, and the files sound. The number decides where the
kills fall; it is printed, so that a run can be made again.
"""

from __future__ import annotations

import argparse
import json
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

from benchmarks.kill_writers import ROOT, Ingest, Server

Writer = Ingest | Server


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


def looked(writer: Writer) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.kill_left", str(writer.store), json.dumps(writer.exclusive)]
    ended = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, timeout=600, check=False)
    if ended.returncode:
        raise RuntimeError(f"the store cannot be read after a kill (code {ended.returncode}): {ended.stderr[-2_000:]}")
    result: dict[str, Any] = json.loads(ended.stdout)
    return result


def judge(
    writer: Writer, tally: Tally, old: dict[str, int], new: dict[str, int], acknowledged: dict[str, int]
) -> dict[str, int]:
    """Count what is wrong, and return the version of each source that is there now."""
    left = looked(writer)
    present: dict[str, int] = {}
    for source in writer.sources:
        tokens = left["seen"].get(writer.file_of.format(source), [])
        versions = {int(token.rsplit("v", 1)[1]) for token in tokens}
        allowed = {acknowledged.get(source, old.get(source)), new.get(source)}
        if not tokens and None in allowed:
            continue
        if not versions & allowed:
            tally.lost += 1
        elif len(versions) != 1 or {len(tokens), left["whole"].get(writer.file_of.format(source))} != {writer.chunks}:
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


def run(writer: Writer, kills: int, rng: random.Random) -> Tally:
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
    main()
