"""Whether the verdicts of a comparison hold: simulated test sets whose truth is known.

    python -m benchmarks.statistics           # 2,000 simulated test sets for each figure, minutes
    python -m benchmarks.statistics --quick   # 400, under a minute; then a figure is right to about 2 %

Null: share of test sets in which two equally good techniques differ significantly (5 % is right, 3.5 to 6.5 % asked).
Families: share with any false verdict among the pairs, after Holm's correction (at most 6.5 %). Coverage: share of 95 %
intervals that hold the true value (93 to 97 %). Power: share of test sets in which a true difference of the size called
detectable is found (75 to 85 %).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragistry.evaluation.statistics import detectable_difference, flip_tests, holm, mean_intervals, smallest_p

Values = NDArray[np.float64]
LEVELS = (0.0, 0.3010, 0.3869, 0.4307, 0.5, 0.6309, 1.0)
"""Frequent values of nDCG and reciprocal rank."""
SIZES = (10, 15, 20, 30, 50, 100, 200)
BATCH = 50
"""Simulated test sets that share their sign flips."""
ROUNDS = 1_999
ALPHA = 0.05


def normal(draw: np.random.Generator, shape: tuple[int, ...]) -> Values:
    """Differences without ties."""
    return draw.normal(0, 0.3, shape)


def levels(draw: np.random.Generator, shape: tuple[int, ...]) -> Values:
    """Values of techniques as nDCG has them: few levels, many ties, skewed, and some queries hard for all."""
    hard = draw.choice([0.1, 0.5, 0.9], size=(shape[0], 1, shape[-1]), p=[0.2, 0.3, 0.5])
    kept = draw.random(shape) < 0.5 + 0.3 * hard
    return np.where(kept, np.where(draw.random(shape) < hard, 1.0, draw.choice(LEVELS, size=shape)), 0.0)


def tied(draw: np.random.Generator, shape: tuple[int, ...]) -> Values:
    """Differences between nDCG-like values."""
    values = levels(draw, (shape[0], 2, shape[1]))
    return values[:, 0] - values[:, 1]


def similar(draw: np.random.Generator, shape: tuple[int, ...]) -> Values:
    """Differences between two techniques that return the same for 6 of 10 queries."""
    return np.where(draw.random(shape) < 0.6, 0.0, tied(draw, shape))


def skewed(draw: np.random.Generator, shape: tuple[int, ...]) -> Values:
    """Differences of mean 0, of which one in four is a gain of .5 to 1 and the others are small losses."""
    gains = draw.uniform(0.5, 1.0, shape)
    return np.where(draw.random(shape) < 0.25, gains, draw.uniform(-0.5, 0.0, shape))


def better(draw: np.random.Generator, shape: tuple[int, ...]) -> Values:
    """Differences of mean .1: ties for half of the queries, and two gains for a loss."""
    sign = draw.choice([0.0, 1.0, -1.0], p=[0.5, 1 / 3, 1 / 6], size=shape)
    return sign * draw.choice([0.3, 0.5, 1.0], size=shape)


def clusters(draw: np.random.Generator, queries: int) -> list[int]:
    """A group for each query: documents with one to five queries each, and one with a quarter of all."""
    sizes = [max(1, queries // 4)]
    while sum(sizes) < queries:
        sizes.append(min(int(draw.integers(1, 6)) if queries >= 50 else 1, queries - sum(sizes)))
    return [group for group, size in enumerate(sizes) for _ in range(size)]


def clustered(values: Values, draw: np.random.Generator, groups: Sequence[int]) -> Values:
    """The same differences with three quarters of the variance common to a group."""
    common = draw.normal(0, 0.3, (len(values), max(groups) + 1))[:, list(groups)]
    return common * np.sqrt(0.75) + values * 0.5


def batches(total: int) -> list[int]:
    return [BATCH] * (total // BATCH)


def null_rate(make: Callable[..., Values], queries: int, total: int, *, grouped: bool, known: bool = True) -> float:
    """Share of significant differences between equals; not ``known``: the groups are not told to the test."""
    draw, found = np.random.default_rng(queries), []
    for number, size in enumerate(batches(total)):
        rows, groups = make(draw, (size, queries)), None
        if grouped:
            groups = clusters(draw, queries)
            rows = clustered(rows, draw, groups)
        tests = flip_tests(rows.tolist(), groups if known else None, seed=number, rounds=ROUNDS)
        found += [test.p() < ALPHA for test in tests]
    return float(np.mean(found))


def family_rate(techniques: int, queries: int, total: int, *, grouped: bool) -> float:
    """Share of test sets with any false verdict among all pairs of equally good techniques."""
    draw, wrong = np.random.default_rng(techniques + queries), 0
    for number in range(total):
        values = levels(draw, (1, techniques, queries))[0]
        groups = None
        if grouped:
            groups = clusters(draw, queries)
            values = clustered(values, draw, groups)
        rows = [values[a] - values[b] for a, b in combinations(range(techniques), 2)]
        ps = [test.p() for test in flip_tests(rows, groups, seed=number, rounds=ROUNDS)]
        wrong += min(holm(ps)) < ALPHA
    return wrong / total


def coverage(
    make: Callable[..., Values],
    truth: float,
    queries: int,
    total: int,
    *,
    grouped: bool = False,
    of_means: bool = False,
) -> float:
    """Share of intervals that hold the true mean of differences, or of the values of one technique."""
    draw, held = np.random.default_rng(queries + 1), []
    for number, size in enumerate(batches(total)):
        rows, groups = make(draw, (size, queries)), None
        if grouped:
            groups = clusters(draw, queries)
            rows = clustered(rows, draw, groups)
        tests = flip_tests(rows.tolist(), groups, seed=number, rounds=ROUNDS)
        found = (test.interval(bounds=(-1.0, 1.0)) for test in tests)
        if of_means:
            found = mean_intervals(rows.tolist(), groups, seed=number, rounds=ROUNDS)
        held += [low <= truth <= high for low, high in found]
    return float(np.mean(held))


def power(make: Callable[..., Values], truth: float, queries: int, pairs: int, total: int, *, grouped: bool) -> float:
    """Share of new test sets that show the difference which an earlier one called detectable."""
    draw, found, alpha = np.random.default_rng(queries + 2), [], ALPHA / pairs
    for number, size in enumerate(batches(total)):
        pilots, rows, groups = make(draw, (size, queries)), make(draw, (size, queries)) - truth, None
        if grouped:
            groups = clusters(draw, queries)
            pilots, rows = clustered(pilots, draw, groups), clustered(rows, draw, groups)
        least = [detectable_difference(pilot, groups, alpha=alpha) for pilot in pilots.tolist()]
        pilots_with = [index for index, one in enumerate(least) if one is not None]
        shifted = [(rows[index] + (least[index] or 0.0)).tolist() for index in pilots_with]
        rounds = max(ROUNDS, round(20 / alpha))
        found += [test.p() < alpha for test in flip_tests(shifted, groups, seed=number, rounds=rounds)]
    return float(np.mean(found)) if found else float("nan")


def mean_values(draw: np.random.Generator, shape: tuple[int, ...]) -> Values:
    """Values of one technique, uniform over the levels."""
    return draw.choice(LEVELS, size=shape)


def high_values(draw: np.random.Generator, shape: tuple[int, ...]) -> Values:
    """Values of a good technique: 1 for three queries of four."""
    return np.where(draw.random(shape) < 0.75, 1.0, draw.choice(LEVELS, size=shape))


def show(title: str, headers: Sequence[str], rows: Sequence[tuple[str, Sequence[Any]]]) -> None:
    print(f"\n{title}")
    print(f"{'':34}" + "".join(f"{header:>9}" for header in headers))
    for name, cells in rows:
        print(f"{name:34}" + "".join(f"{cell:>9}" for cell in cells))


def percent(value: float) -> str:
    return "-" if np.isnan(value) else f"{100 * value:.1f}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="400 simulated test sets for each figure")
    total = 400 if parser.parse_args(arguments).quick else 2_000
    headers = [f"n={size}" for size in SIZES]
    kinds = {"normal": normal, "nDCG-like, ties": tied, "nDCG-like, 6 of 10 ties": similar}

    def over(figure: Callable[[int], float]) -> list[str]:
        return [percent(figure(size)) for size in SIZES]

    rows = [(name, over(lambda n, make=make: null_rate(make, n, total, grouped=False))) for name, make in kinds.items()]
    rows += [
        (f"{name}, clustered", over(lambda n, make=make: null_rate(make, n, total, grouped=True)))
        for name, make in kinds.items()
    ]
    rows.append(
        ("(clusters ignored: what it was)", over(lambda n: null_rate(tied, n, total, grouped=True, known=False)))
    )
    show("Null: % significant", headers, rows)

    few = [size for size in SIZES if size in (10, 20, 50, 200)]
    rows = [
        (
            f"{count} techniques, {count * (count - 1) // 2} pairs{', clustered' if grouped else ''}",
            [percent(family_rate(count, n, total, grouped=grouped)) for n in few],
        )
        for count, grouped in ((3, False), (5, False), (5, True), (10, False))
    ]
    show("Families: % with any false verdict after Holm", [f"n={size}" for size in few], rows)

    differences = (
        ("difference, normal", normal, 0.0, False),
        ("difference, nDCG-like", tied, 0.0, False),
        ("difference, nDCG-like, clustered", tied, 0.0, True),
        ("difference, 6 of 10 ties", similar, 0.0, False),
        ("difference, a real gain", better, 0.1, False),
        ("difference, skewed", skewed, 0.0, False),
    )
    means = (
        ("mean, nDCG-like", mean_values, float(np.mean(LEVELS))),
        ("mean, 8 of 10 are 1", high_values, 0.75 + 0.25 * float(np.mean(LEVELS))),
    )
    rows = [
        (name, [percent(coverage(make, truth, n, total, grouped=grouped)) for n in SIZES])
        for name, make, truth, grouped in differences
    ] + [
        (name, [percent(coverage(make, truth, n, total, of_means=True)) for n in SIZES]) for name, make, truth in means
    ]
    show("Coverage of 95 % intervals", headers, rows)

    cases_of_power = [
        ("normal", normal, 1, False),
        ("normal, 10 pairs", normal, 10, False),
        ("nDCG-like", tied, 1, False),
        ("nDCG-like, 10 pairs", tied, 10, False),
        ("nDCG-like, clustered", tied, 1, True),
    ]
    sizes = (5, 6, 8, *SIZES)
    rows = [
        (name, [percent(power(make, 0.0, n, pairs, total, grouped=grouped)) for n in sizes])
        for name, make, pairs, grouped in cases_of_power
    ]
    show("Power: % found at the detectable difference (-: none can be)", [f"n={size}" for size in sizes], rows)
    rows = [(f"{pairs} pairs", [f"{smallest_p(n, pairs):.4f}" for n in sizes]) for pairs in (1, 3, 10, 45)]
    show("Smallest p-value that n groups can give, after Holm", [f"n={size}" for size in sizes], rows)


if __name__ == "__main__":
    main()
