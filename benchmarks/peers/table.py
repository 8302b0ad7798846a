"""What was measured on every side, as Markdown tables with ratios to ours."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benchmarks.peers.conversation import Conversation
from benchmarks.peers.environment import Environment


@dataclass
class Measured:
    """A side, and what it answered, by what it was asked."""

    environment: Environment
    conversation: Conversation
    answers: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    recall: dict[str, list[float]] = field(default_factory=dict)
    failure: str = ""

    @property
    def name(self) -> str:
        return self.environment.framework.name

    def seconds(self, asked: str, clock: str = "wall") -> float | None:
        """Median over the rounds; None where there was none."""
        taken = [answer[clock] for answer in self.answers.get(asked, [])]
        return median(taken) if taken else None


Value = Callable[[Measured], float | None]

ROWS: tuple[tuple[str, Value, str], ...] = (
    ("ingest, s", lambda side: side.seconds("ingest"), ".2f"),
    ("ingest, CPU-s", lambda side: side.seconds("ingest", "cpu"), ".2f"),
    ("the same again, unchanged, s", lambda side: side.seconds("ingest again"), ".3f"),
    ("the same again, CPU-s", lambda side: side.seconds("ingest again", "cpu"), ".3f"),
    ("query, p50, ms", lambda side: _ms(side, "query"), ".2f"),
    ("filtered to 50 %, p50, ms", lambda side: _ms(side, "filtered half"), ".2f"),
    ("filtered to 5 %, p50, ms", lambda side: _ms(side, "filtered p5"), ".2f"),
    ("hybrid, p50, ms", lambda side: _ms(side, "hybrid"), ".2f"),
    ("before the first hybrid query, s", lambda side: side.seconds("open_words"), ".3f"),
)


def print_tables(sides: Sequence[Measured], chunks: int, rounds: int) -> None:
    print(f"{chunks:,} chunks of about 830 characters, {rounds} rounds; in brackets: times ours\n")
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores\n")
    print("| | " + " | ".join(side.name for side in sides) + " |\n|---|" + "--:|" * len(sides))
    for name, value, form in ROWS:
        _row(name, [value(side) for side in sides], form, sides)
    _row("import, CPU-s", [side.environment.import_seconds() for side in sides], ".2f", sides)
    sizes = [side.environment.size() for side in sides]
    _row("distributions", [distributions for distributions, _ in sizes], ".0f", sides)
    _row("installed, MB", [bytes_ / 1e6 for _, bytes_ in sizes], ".0f", sides)
    print("\n| | chunks stored | embedded again | recall@10 | recall@10, 50 % | recall@10, 5 % |\n|---|" + "--:|" * 5)
    for side in sides:
        found = [f"{fmean(side.recall[of]):.3f}" if of in side.recall else "" for of in _SEARCHES]
        print(f"| {side.name} | {_said(side, 'count', 'found')} | {_said(side, 'ingest again', 'embedded')} | ", end="")
        print(" | ".join(found) + " |")
    print("\nVersions: " + "; ".join(side.environment.versions() for side in sides))
    for side in sides:
        if side.failure:
            print(f"\n{side.name} stopped at {side.failure}{_reached(side.conversation.store, chunks)}")


_SEARCHES = ("query", "filtered half", "filtered p5")


def _row(name: str, values: Sequence[float | None], form: str, sides: Sequence[Measured]) -> None:
    ours = next((value for value, side in zip(values, sides, strict=True) if side.name == "Ragistry"), None)
    cells = [_cell(value, ours, form, side.name) for value, side in zip(values, sides, strict=True)]
    print(f"| {name} | " + " | ".join(cells) + " |")


def _cell(value: float | None, ours: float | None, form: str, name: str) -> str:
    if value is None:
        return "-"
    if not ours or ours < 1e-3 or name == "Ragistry":  # a ratio to next to nothing says nothing
        return f"{value:{form}}"
    return f"{value:{form}} ({value / ours:.3g})"


def _ms(side: Measured, asked: str) -> float | None:
    seconds = side.seconds(asked)
    return None if seconds is None else seconds * 1000


def _reached(store: Path, chunks: int) -> str:
    """How far a side came with its ingest, where its store is ChromaDB's."""
    database = store / "chroma.sqlite3"
    if not database.is_file():
        return ""
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        [(stored,)] = connection.execute("SELECT count(*) FROM embeddings")
    return f"; {stored:,} of {chunks:,} chunks were stored"


def _said(side: Measured, asked: str, key: str) -> str:
    answers = side.answers.get(asked)
    return f"{answers[0][key]:,}" if answers else "-"
