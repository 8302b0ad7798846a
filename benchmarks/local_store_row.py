"""A line of the table of `local_store`, and how its figures are taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple


class Row(NamedTuple):
    """What was measured on both sides, and the bar for it; ``met``: None where there is none."""

    work: str
    ours: str
    raw: str = ""
    ratio: str = ""
    bar: str = ""
    met: bool | None = None


def milliseconds(call: Callable[..., object], *arguments: Any, **options: Any) -> float:
    start = perf_counter()
    call(*arguments, **options)
    return (perf_counter() - start) * 1e3


def in_turn(rounds: int, *sides: Callable[[int], object]) -> list[list[float]]:
    """Milliseconds of each call, by side; each is called with the number of its round, and once before in vain."""
    times: list[list[float]] = [[] for _ in sides]
    for number in range(-1, rounds):
        for side, taken in zip(sides, times, strict=True):
            spent = milliseconds(side, max(number, 0))
            if number >= 0:
                taken.append(spent)
    return times


def ratio_row(work: str, ours: Sequence[float], raw: Sequence[float], at_most: float | None, detail: str = "") -> Row:
    """A line about milliseconds; ``at_most``: the share of the raw side's that ours may take."""
    mine, theirs = median(ours), median(raw)
    met = None if at_most is None else mine <= at_most * theirs
    bar = "" if at_most is None else share(at_most)
    return Row(work, f"{mine:.2f} ms{detail}", f"{theirs:.2f} ms", share(mine / theirs), bar, met)


def share(ratio: float) -> str:
    """A ratio as it is said: ``0.80``, or ``1/50`` for a small one."""
    return f"{ratio:.2f}" if ratio > 0.21 else f"1/{1 / ratio:.0f}"


def print_table(rows: Sequence[Row]) -> None:
    print("| work | LocalStore | raw | ratio | at most | met |\n|---|--:|--:|--:|--:|---|")
    for row in rows:
        met = {True: "yes", False: "NO", None: ""}[row.met]
        print(f"| {row.work} | {row.ours} | {row.raw} | {row.ratio} | {row.bar} | {met} |")
