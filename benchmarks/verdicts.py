"""How often is a verdict or a gate wrong? ``python -m benchmarks.verdicts [--quick] [--only verdicts gate]``.

Four techniques are compared with a baseline on questions that are drawn, in groups, from the measured differences of
real techniques, whose means are shifted to a known truth. Wrong Use: three techniques equal the baseline, the fourth is
worse, and the verdict names one of them (at most 5 %). Wrong Keep: one technique is better by exactly the margin, and
the verdict keeps the baseline (at most 5 %). False alarm: a gate closes although nothing changed (at most 5 %). Power:
a gate closes at a planted loss of .05 of one technique over 200 questions with a deviation of .25 (80 % and more).
The figures of the gate need no data.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality import DATA
from ragistry import open_workspace
from ragistry.evaluation import compare, read_beir
from ragistry.evaluation.changes import LEAST_EFFECT
from ragistry.evaluation.figures import ALPHA
from ragistry.evaluation.result import MARGIN
from ragistry.evaluation.statistics import holm
from ragistry.evaluation.summary import pairs_of
from ragistry.evaluation.verdict import best_of, keeps

Values = NDArray[np.float64]
SETS = ("cranfield", "xquad-en")
TECHNIQUES = ("bm25", "naive", "hybrid", "graph", "newest")
MEASURE = "nDCG@10"
PARTS = ("verdicts", "gate")
RUNS, QUICK_RUNS = 2_000, 200
SIZES = (40, 100, 200)
GROUP = 4
"""Largest number of questions of a group, which share a part of their difference."""
STRUCTURES = 8
"""Number of divisions of the questions into groups."""
SHARED = 0.5
"""Share of the deviation that the questions of a group have in common."""
CACHE = Path(os.environ.get("RAGISTRY_BENCH_CACHE", Path.home() / ".cache" / "ragistry")) / "made"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_RUNS} runs for each figure")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="print these figures alone")
    parser.add_argument("--sets", nargs="+", default=SETS, help=f"of the verdicts [{' '.join(SETS)}]")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="numbers of questions of the verdicts")
    parser.add_argument("--runs", type=int, help=f"simulations for each figure [{RUNS}]")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"where vectors are kept [{CACHE}]")
    options = parser.parse_args()
    runs, draw = options.runs or (QUICK_RUNS if options.quick else RUNS), np.random.default_rng(0)
    if "verdicts" in options.only:
        print_verdicts(options.sets, options.sizes, runs, options.cache, draw)
    if "gate" in options.only:
        print_gate(runs, draw)


def print_gate(runs: int, draw: np.random.Generator) -> None:
    """Print how often a gate closes without and with a loss."""
    print("| gate over 200 questions | false alarms | loss of .05 found |\n|---|--:|--:|")
    for count in (1, 4):
        rates = [gates(200, [loss] + [0.0] * (count - 1), runs, draw) for loss in (0.0, 0.05)]
        label = f"{count} technique{'s' if count > 1 else ''}"
        print(f"| {label} | {rates[0]:.1%} | {rates[1]:.1%} |", flush=True)
    print()


def print_verdicts(
    sets: Sequence[str], sizes: Sequence[int], runs: int, cache: Path, draw: np.random.Generator
) -> None:
    """Print how often verdicts are wrong and right."""
    print(
        "| differences | questions | wrong Use | wrong Keep, margin .05 | right Use, .1 | right Keep, no difference |"
    )
    print("|---|--:|--:|--:|--:|--:|")
    for name in sets:
        pool = differences(name, cache)
        for size in sizes:
            wrong_use = share(verdicts(pool, size, [0, 0, 0, -MARGIN], runs, draw), "use")
            wrong_keep = share(verdicts(pool, size, [MARGIN, 0, 0, -MARGIN], runs, draw), "keep")
            right_use = share(verdicts(pool, size, [2 * MARGIN, 0, 0, -MARGIN], runs, draw), "use")
            right_keep = share(verdicts(pool, size, [0, 0, 0, 0], runs, draw), "keep")
            cells = " | ".join(f"{value:.1%}" for value in (wrong_use, wrong_keep, right_use, right_keep))
            print(f"| {name} | {size} | {cells} |", flush=True)
    print()


def differences(name: str, cache: Path) -> Values:
    """Return the difference of each technique to the first one on each question of a set, with means of 0."""
    with TemporaryDirectory() as folder, open_workspace(folder) as workspace:
        result = compare(
            TECHNIQUES, read_beir(DATA / name), MEASURE, workspace=workspace, cache=cache, depth=10,
            timing_repeats=0, progress=False,
        )  # fmt: skip
    columns = [list(result.techniques[one].per_query[MEASURE].values()) for one in TECHNIQUES]
    found: Values = np.array(columns[1:]) - np.array(columns[0])
    return found - found.mean(axis=1, keepdims=True)


def verdicts(pool: Values, size: int, truth: Sequence[float], runs: int, draw: np.random.Generator) -> list[str]:
    """Return ``use``, ``keep`` or nothing for each simulated comparison; ``use`` counts only if it is as asked."""
    names = [f"t{number}" for number in range(len(truth))]
    wanted = {name for name, true in zip(names, truth, strict=True) if true > 0} or set(names)
    found = []
    for seed in range(runs):
        rows, groups = clustered(pool, size, seed % STRUCTURES, draw)
        values = {
            name: dict(enumerate((row + true).tolist())) for name, row, true in zip(names, rows, truth, strict=True)
        }
        values["base"] = dict.fromkeys(range(size), 0.0)
        keyed = {name: {f"{query:04}": value for query, value in of.items()} for name, of in values.items()}
        pairs = pairs_of([(name, "base") for name in names], MEASURE, keyed, groups, seed=seed % 4)
        best = best_of(pairs)
        found.append("use" if best in wanted else "keep" if best is None and keeps(pairs, MARGIN) else "")
    return found


def clustered(pool: Values, size: int, structure: int, draw: np.random.Generator) -> tuple[Values, list[int]]:
    """Draw questions in groups of up to `GROUP`; a part of the difference is the group's."""
    lengths = np.random.default_rng(structure).integers(1, GROUP + 1, size=size)
    groups = np.repeat(np.arange(size), lengths)[:size].tolist()
    own = pool[:, draw.integers(pool.shape[1], size=size)]
    of_group = pool[:, draw.integers(pool.shape[1], size=size)][:, groups]
    return np.sqrt(1 - SHARED) * own + np.sqrt(SHARED) * of_group, groups


def gates(size: int, losses: Sequence[float], runs: int, draw: np.random.Generator) -> float:
    """Return the share of simulated pairs of reports at which a gate closes."""
    closed = 0
    for seed in range(runs):
        values = {"before": dict.fromkeys((f"{query:04}" for query in range(size)), 0.0)}
        for number, loss in enumerate(losses):
            row = draw.normal(-loss, 0.25, size).tolist()
            values[f"t{number}"] = dict(zip(values["before"], row, strict=True))
        names = [(f"t{number}", "before") for number in range(len(losses))]
        pairs = pairs_of(names, MEASURE, values, list(range(size)), seed=seed % 4)
        ps = holm([pair.p / 2 if pair.difference < 0 else 1 - pair.p / 2 for pair in pairs])
        closed += any(
            p < ALPHA and -pair.difference >= LEAST_EFFECT for p, pair in zip(ps, pairs, strict=True)
        )  # fmt: skip
    return closed / runs


def share(found: Sequence[str], what: str) -> float:
    return sum(one == what for one in found) / len(found)


if __name__ == "__main__":
    main()
