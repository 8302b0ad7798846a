"""Statistics against scipy, and by simulation: how often chance alone is called a winner."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks.statistics import (
    LEVELS,
    Values,
    coverage,
    family_rate,
    high_values,
    mean_values,
    normal,
    null_rate,
    power,
    tied,
)
from ragistry.errors import EvaluationError
from ragistry.evaluation.statistics import (
    detectable_difference,
    effect_size,
    flip_tests,
    holm,
    mean_intervals,
    paired_test,
    smallest_p,
    wins_ties_losses,
)

A = [0.0, 0.5, 1.0, 0.63, 0.43, 1.0, 0.0, 0.39, 1.0, 0.5, 0.63, 1.0]
B = [0.0, 0.43, 0.63, 0.63, 0.5, 0.5, 0.0, 0.0, 1.0, 0.39, 0.5, 1.0]
PAIRS = (-1.0, 1.0)


# How often it is right; benchmarks/statistics.py prints the whole tables


@pytest.mark.parametrize(("queries", "grouped"), [(20, False), (60, True)])
def test_null_rate_is_near_five_percent(queries: int, grouped: bool) -> None:
    assert 0.03 <= null_rate(tied, queries, 1_000, grouped=grouped) <= 0.065


def test_family_of_ten_pairs_is_rarely_wrong_anywhere() -> None:
    assert 0 < family_rate(5, 40, 300, grouped=False) <= 0.07


@pytest.mark.parametrize(("queries", "grouped"), [(10, False), (40, True)])
def test_intervals_cover_the_true_difference(queries: int, grouped: bool) -> None:
    assert 0.93 <= coverage(normal, 0.0, queries, 800, grouped=grouped) <= 0.97


@pytest.mark.parametrize("make", [mean_values, high_values])
def test_intervals_cover_the_true_mean(make: Callable[..., Values]) -> None:
    truth = float(np.mean(make(np.random.default_rng(0), (1, 500_000))))
    assert 0.92 <= coverage(make, truth, 15, 800, of_means=True) <= 0.98


@pytest.mark.parametrize(
    ("make", "queries", "pairs", "grouped"), [(normal, 6, 1, False), (normal, 10, 10, False), (tied, 40, 1, True)]
)
def test_detectable_difference_is_found_in_four_of_five_cases(
    make: Callable[..., Values], queries: int, pairs: int, grouped: bool
) -> None:
    assert 0.74 <= power(make, 0.0, queries, pairs, 500, grouped=grouped) <= 0.87


# The test


def by_scipy(differences: list[float]) -> float:
    found = scipy.stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=100_000, rng=np.random.default_rng(0)
    )
    return float(found.pvalue)


@settings(max_examples=60, deadline=None)
@example([(0.0, 1.0), (0.3869, 0.0), (0.3869, 0.4307), (0.6309, 0.4307), (1.0, 0.5), (0.3869, 0.4307)], "abcdefghi")
@given(
    st.lists(st.tuples(*[st.sampled_from(LEVELS)] * 2), min_size=2, max_size=9),
    st.just("abcdefghi") | st.text("abcde", min_size=9, max_size=9),
)
def test_few_groups_of_queries_are_tested_exactly_as_scipy_does(pairs: list[tuple[float, float]], names: str) -> None:
    a, b = np.array(pairs).T
    groups = list(names[: len(pairs)])
    # Whole numbers for scipy, which otherwise treats rounding as a difference between equal sums.
    whole = np.rint(10_000 * a) - np.rint(10_000 * b)
    sums = [whole[[one == group for one in groups]].sum() for group in sorted(set(groups))]
    assert paired_test(a, b, groups) == pytest.approx(by_scipy(sums) if len(sums) > 1 else 1.0, abs=1e-12)


def test_many_queries_are_tested_by_chance_as_scipy_does() -> None:
    draw = np.random.default_rng(1)
    a, b = draw.choice(LEVELS, size=(2, 200))
    b = np.clip(b + 0.04, 0, 1)
    assert paired_test(a, b) == pytest.approx(by_scipy(a - b), abs=0.01)
    assert paired_test(a, b, seed=5) == paired_test(a, b, seed=5) == paired_test(b, a, seed=5)


@pytest.mark.parametrize(
    ("a", "b", "groups"),
    [
        (A, A, None),
        ([0.1 + 0.2, 0.3], [0.3, 0.1 + 0.2], None),
        ([1.0], [0.0], None),
        ([1.0, 0.9, 0.8], [0.0] * 3, ["one"] * 3),
    ],
    ids=["equal", "rounding", "one query", "one group"],
)
def test_no_difference_is_never_significant(a: list[float], b: list[float], groups: list[str] | None) -> None:
    assert paired_test(a, b, groups) == 1.0


@pytest.mark.parametrize("n", [2, 5, 12])
def test_smallest_p_is_attained_by_the_same_sign_everywhere(n: int) -> None:
    assert paired_test([0.5] * n, [0.25] * n) == smallest_p(n) == 2 / 2**n
    assert smallest_p(n, 3) == min(1, 6 / 2**n)


# Intervals


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([-1.0, -0.5, -0.3690, 0.0, 0.0, 0.1309, 0.5, 1.0]), min_size=1, max_size=25), st.data())
def test_interval_excludes_zero_exactly_when_the_test_rejects(values: list[float], data: st.DataObject) -> None:
    groups = data.draw(st.none() | st.lists(st.integers(0, 9), min_size=len(values), max_size=len(values)))
    [test] = flip_tests([values], groups, rounds=999)
    for alpha in (0.05, 0.05 / 3, 0.005, 0.3):
        for bounds in ((-math.inf, math.inf), PAIRS):
            low, high = test.interval(alpha, bounds)
            assert (low > 0 or high < 0) == (test.p() < alpha)
            assert low - 1e-8 <= np.mean(values) <= high + 1e-8


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=6, max_size=9), st.floats(-1, 1))
def test_interval_holds_the_differences_that_are_not_rejected(values: list[float], true: float) -> None:
    [test] = flip_tests([values])
    low, high = test.interval()
    if min(abs(true - low), abs(true - high)) > 1e-6:
        assert (low < true < high) == (by_scipy([value - true for value in values]) >= 0.05)


def test_intervals_are_those_of_student_for_normal_differences() -> None:
    values = np.random.default_rng(2).normal(0.1, 0.3, 150).tolist()
    theirs = scipy.stats.ttest_1samp(values, 0).confidence_interval()
    [test], [grouped] = flip_tests([values]), flip_tests([values], ["all"] * 150)
    assert test.interval() == pytest.approx((theirs.low, theirs.high), abs=0.003)
    assert grouped.interval() == (-math.inf, math.inf)


def test_equal_differences_leave_room_for_what_was_not_seen() -> None:
    [test] = flip_tests([[0.0] * 10])
    low, high = test.interval(bounds=PAIRS)
    assert high == -low == pytest.approx(1 - 0.05**0.1)


def test_intervals_of_means_stay_within_the_measure() -> None:
    (low, one), (zero, high), *others = mean_intervals([[1.0] * 10, [0.0] * 10, [0.5] * 10, [0.0, 1.0] * 5])
    assert (zero, one) == (0.0, 1.0)
    assert 0.6 < low < 1
    assert high == pytest.approx(1 - low)
    assert all(0 < below < 0.5 < above < 1 for below, above in others)
    assert list(mean_intervals([[0.7]])) == list(mean_intervals([[0.2, 0.4]], ["one"] * 2)) == [(0.0, 1.0)]


# The rest


@pytest.mark.parametrize("n", [13, 300])
def test_detectable_difference_is_near_the_noncentral_t(n: int) -> None:
    differences = np.random.default_rng(n).normal(0, 0.25, n).tolist()
    least = detectable_difference(differences)
    assert least is not None
    shift = least / np.std(differences, ddof=1) * math.sqrt(n)
    found = scipy.stats.nct.sf(scipy.stats.t.ppf(0.975, n - 1), n - 1, shift)
    assert 0.78 <= found <= 0.85, "a little more than 0.8, because the spread is estimated"


def test_nothing_is_detectable_where_nothing_can_be_significant() -> None:
    differences = np.random.default_rng(0).normal(0, 0.25, 5).tolist()
    assert detectable_difference(differences * 2) is not None
    assert detectable_difference(differences) is None
    assert detectable_difference(differences * 2, list("abcde") * 2) is None
    assert detectable_difference(differences * 2, alpha=0.05 / 100) is None
    assert detectable_difference([0.0] * 50) is None, "no variance was seen, which does not mean that there is none"


@settings(max_examples=60, deadline=None)
@example([0.01, 0.04, 0.03, 0.005])
@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_rejects_what_stepping_down_rejects(ps: list[float]) -> None:
    rejected, left = set(), len(ps)
    for index in sorted(range(len(ps)), key=ps.__getitem__):
        if ps[index] * left > 0.05:
            break
        rejected.add(index)
        left -= 1
    corrected = holm(ps)
    assert {index for index, p in enumerate(corrected) if p <= 0.05} == rejected
    assert all(p <= c <= 1 for p, c in zip(ps, corrected, strict=True))


def test_effect_size_and_counts() -> None:
    differences = np.array(A) - np.array(B)
    assert effect_size(A, B) == pytest.approx(differences.mean() / differences.std(ddof=1))
    assert effect_size(A, A) is effect_size([1.0], [0.0]) is None
    assert (wins_ties_losses(A, B), wins_ties_losses(B, A)) == ((6, 5, 1), (1, 5, 6))


@pytest.mark.parametrize(
    ("a", "b", "groups"),
    [
        ([1.0], [1.0, 2.0], None),
        ([], [], None),
        ([math.nan], [1.0], None),
        ([1.0], [math.inf], None),
        (A, B, ["a", "b"]),
    ],
)
def test_values_that_cannot_be_paired_are_refused(a: list[float], b: list[float], groups: list[str] | None) -> None:
    with pytest.raises(EvaluationError):
        paired_test(a, b, groups)
