"""How many grades decide between two techniques, and how often wrongly? ``python -m benchmarks.judging [--quick]``.

The judge of `naive` against `bm25` is simulated by the grades of four test sets, with a share of wrong grades. For runs
without a difference, the techniques are swapped at random in each question; at most 5 % of these runs may decide. For
runs with one, questions are drawn with weights that give it (exponential tilting). `--margin` is that difference, so
that the first look plans enough questions, at most `MOST`. Every tenth grade is asked for twice. Equal lists need no
grades.
"""

from __future__ import annotations

import argparse
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from benchmarks.fusion_data import read_set
from benchmarks.verdicts import CACHE
from ragistry import open_workspace
from ragistry.evaluation import compare
from ragistry.evaluation.statistics import Values
from ragistry.evaluation.stopping import DEPTH, FIRST, QUESTIONS, flip_ps, level, looks, raised

SETS = ("cranfield", "xquad-en", "scifact", "claude-docs")
PAIR = ("naive", "bm25")
ERRORS = (0.0, 0.05, 0.15)
DIFFERENCES = (0.25, 0.10, 0.05)
SECONDS = (4, 10)
MOST = 640
RUNS, QUICK_RUNS = 2_000, 300
PLANNED = 400
"""Runs with a difference."""
AGAIN = 1.1
"""Grades asked for each new one."""


class Pool(NamedTuple):
    """The candidates of each question, ``(questions, 2 * DEPTH)``: 1 / rank in each list, and whether one answers."""

    default: Values
    challenger: Values
    right: Values
    candidates: Values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_RUNS} runs for each figure")
    options = parser.parse_args()
    runs, draw = QUICK_RUNS if options.quick else RUNS, np.random.default_rng(0)
    pools = {name: pool_of(name) for name in SETS}
    print(f"No difference, {QUESTIONS} questions, {runs:,} runs: decisions, all of them wrong\n")
    heads = " | ".join(f"errs in {error:.0%}" for error in ERRORS)
    print(
        f"| test set | equal lists | deviation | {heads} | a test after each question |\n|---|--:|--:|--:|--:|--:|--:|"
    )
    for name, pool in pools.items():
        null = [judged(pool, None, error, QUESTIONS, runs, draw)[0] for error in ERRORS]
        null = [rows * draw.choice([-1, 1], rows.shape) for rows in null]
        rates = [(stops(rows, None)[0] != 0).mean() for rows in null]
        always = [flip_ps(null[0][:, :count]) <= 0.05 for count in range(1, QUESTIONS + 1)]
        exact = exact_differences(pool)
        cells = [f"{(pool.candidates == 0).mean():.0%}", f"{exact.std():.2f}", *(f"{rate:.1%}" for rate in rates)]
        print(f"| {name} | {' | '.join(cells)} | {np.any(always, axis=0).mean():.0%} |", flush=True)
    print(f"\nWith a difference, and that as the margin ({MOST} questions at most)\n")
    minutes = " | ".join(f"minutes, {seconds} s" for seconds in SECONDS)
    print(f"| test set | errs in | difference | found | wrong | questions | grades | {minutes} |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name, pool in pools.items():
        for error in ERRORS:
            for difference in DIFFERENCES:
                rows, grades = judged(pool, difference, error, MOST, min(runs, PLANNED), draw)
                sides, questions = stops(rows, difference)
                asked = AGAIN * np.take_along_axis(grades.cumsum(axis=1), questions[:, None] - 1, axis=1).mean()
                times = f"{asked:.0f} | " + " | ".join(f"{asked * seconds / 60:.0f}" for seconds in SECONDS)
                shares = f"{(sides > 0).mean():.0%} | {(sides < 0).mean():.1%}"
                print(f"| {name} | {error:.0%} | {difference:.2f} | {shares} | {questions.mean():.0f} | {times} |")


def pool_of(name: str) -> Pool:
    """Return the first results of both techniques, with people's grades."""
    dataset = read_set(name)
    with TemporaryDirectory() as folder, open_workspace(folder) as workspace:
        result = compare(
            PAIR, dataset, ["RR@3"], workspace=workspace, cache=CACHE, depth=10, timing_repeats=0, progress=False
        )  # fmt: skip
    shape = (3, len(dataset.judged), 2 * DEPTH)
    values, candidates = np.zeros(shape), np.zeros(shape[1])
    for number, query in enumerate(dataset.judged):
        lists = [[document for document, _ in result.runs[one][query][:DEPTH]] for one in PAIR]
        union = list(dict.fromkeys(lists[0] + lists[1]))
        for place, document in enumerate(union):
            for side, found in enumerate(lists):
                values[side, number, place] = 1 / (found.index(document) + 1) if document in found else 0
            values[2, number, place] = dataset.qrels[query].get(document, 0) > 0
        candidates[number] = 0 if lists[0] == lists[1] else len(union)
    return Pool(values[0], values[1], values[2], candidates)


def exact_differences(pool: Pool) -> Values:
    """Return challenger minus default in RR@3, without errors."""
    difference: Values = (pool.right * pool.challenger).max(axis=1) - (pool.right * pool.default).max(axis=1)
    return difference


def judged(
    pool: Pool, difference: float | None, error: float, size: int, runs: int, draw: np.random.Generator
) -> tuple[Values, Values]:
    """Draw questions, and return ``(runs, size)`` differences by a person who errs, and the numbers of grades."""
    exact = exact_differences(pool)
    weights = np.full(len(exact), 1 / len(exact))
    if difference is not None:
        low, high = -200.0, 200.0
        for _ in range(60):
            middle = (low + high) / 2
            weights = np.exp(middle * exact - (middle * exact).max())
            weights /= weights.sum()
            low, high = (middle, high) if weights @ exact < difference else (low, middle)
    drawn = draw.choice(len(exact), (runs, size), p=weights)
    grades = pool.right[drawn] != (draw.random((*drawn.shape, 2 * DEPTH)) < error)
    rows: Values = (grades * pool.challenger[drawn]).max(axis=2) - (grades * pool.default[drawn]).max(axis=2)
    return rows, pool.candidates[drawn]


def stops(rows: Values, margin: float | None) -> tuple[Values, np.ndarray]:
    """Return for each run the side that is decided for, 1 or -1, else 0, and the number of questions."""
    sides, ends = np.zeros(len(rows)), np.zeros(len(rows), dtype=int)
    totals = np.full(len(rows), QUESTIONS)
    if margin is not None:
        totals = np.minimum(raised(rows[:, :FIRST], QUESTIONS, margin), MOST)
    for total in np.unique(totals):
        for number, look in enumerate(looks(int(total))):
            [still] = np.nonzero((totals == total) & (ends == 0))
            if not len(still):
                break
            seen = rows[still, :look]
            crossed = flip_ps(seen) <= level(look, QUESTIONS if number == 0 else int(total))
            sides[still[crossed]] = np.sign(seen[crossed].sum(axis=1))
            ends[still[crossed | (look == total)]] = look
    return sides, ends


if __name__ == "__main__":
    main()
