"""Statistics against scipy, and by simulation: how often chance alone is called a winner."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks import statistics as simulated
from benchmarks.statistics import LEVELS
from ragistry.errors import EvaluationError
from ragistry.evaluation import statistics
from ragistry.evaluation.statistics import detectable_difference, flip_tests, mean_intervals, paired, smallest_p
from tests.conftest import full_run
from tests.messages import refused

A = [0.0, 0.5, 1.0, 0.63, 0.43, 1.0, 0.0, 0.39, 1.0, 0.5, 0.63, 1.0]
B = [0.0, 0.43, 0.63, 0.63, 0.5, 0.5, 0.0, 0.0, 1.0, 0.39, 0.5, 1.0]
PAIRS = (-1.0, 1.0)
MEAN = sum(LEVELS) / len(LEVELS)
HIGH = 0.75 + 0.25 * MEAN


# How often it is right; benchmarks/statistics.py prints the whole tables

SIMULATIONS: dict[str, tuple[Callable[[int], float], int, float, float]] = {
    "null": (lambda n: simulated.null_rate(simulated.tied, 20, n, grouped=False), 1_000, 0.03, 0.065),
    "null, grouped": (lambda n: simulated.null_rate(simulated.tied, 60, n, grouped=True), 1_000, 0.03, 0.065),
    "ten pairs": (lambda n: simulated.family_rate(5, 40, n, grouped=False), 300, 0.001, 0.07),
    "coverage": (lambda n: simulated.coverage(simulated.normal, 0.0, 10, n), 800, 0.93, 0.97),
    "coverage, grouped": (lambda n: simulated.coverage(simulated.normal, 0.0, 40, n, grouped=True), 800, 0.93, 0.97),
    "means": (lambda n: simulated.coverage(simulated.mean_values, MEAN, 15, n, of_means=True), 800, 0.92, 0.98),
    "high means": (lambda n: simulated.coverage(simulated.high_values, HIGH, 15, n, of_means=True), 800, 0.92, 0.98),
    "power": (lambda n: simulated.power(simulated.normal, 0.0, 6, 1, n, grouped=False), 500, 0.74, 0.87),
    "power, ten pairs": (lambda n: simulated.power(simulated.normal, 0.0, 10, 10, n, grouped=False), 500, 0.74, 0.87),
    "power, grouped": (lambda n: simulated.power(simulated.tied, 0.0, 40, 1, n, grouped=True), 500, 0.74, 0.87),
}


@pytest.mark.parametrize("name", SIMULATIONS)
def test_simulated_shares_are_right(name):
    simulate, total, low, high = SIMULATIONS[name]
    more = 0.0 if full_run() else 0.05  # of fewer test sets the share is less precise
    assert low - more <= simulate(total if full_run() else 100) <= high + more


# The test


def by_scipy(differences: list[float]) -> float:
    found = scipy.stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=100_000, rng=np.random.default_rng(0)
    )
    return float(found.pvalue)


def p_value(a, b, groups=None, **options) -> float:
    [test] = flip_tests([paired(a, b).tolist()], groups, **options)
    return test.p()


@settings(max_examples=25, deadline=None)
@example([(0.0, 1.0), (0.3869, 0.0), (0.3869, 0.4307), (0.6309, 0.4307), (1.0, 0.5), (0.3869, 0.4307)], "abcdefghi")
@given(
    st.lists(st.tuples(*[st.sampled_from(LEVELS)] * 2), min_size=2, max_size=9),
    st.just("abcdefghi") | st.text("abcde", min_size=9, max_size=9),
)
def test_few_groups_of_queries_are_tested_exactly_as_scipy_does(pairs, names):
    a, b = np.array(pairs).T
    groups = list(names[: len(pairs)])
    # Whole numbers for scipy, which otherwise treats rounding as a difference between equal sums.
    whole = np.rint(10_000 * a) - np.rint(10_000 * b)
    sums = [whole[[one == group for one in groups]].sum() for group in sorted(set(groups))]
    assert p_value(a, b, groups) == pytest.approx(by_scipy(sums) if len(sums) > 1 else 1.0, abs=1e-12)


def test_many_queries_are_tested_by_chance_as_student_does():
    draw = np.random.default_rng(1)
    a, b = draw.choice(LEVELS, size=(2, 200))
    b = np.clip(b + 0.04, 0, 1)
    assert p_value(a, b) == pytest.approx(scipy.stats.ttest_rel(a, b).pvalue, abs=0.005)
    assert p_value(a, b, seed=5) == p_value(a, b, seed=5) == p_value(b, a, seed=5)
    assert p_value(np.ones(17), np.zeros(17), rounds=99) == smallest_p(17, rounds=99) == 1 / 100
    assert p_value(np.ones(16), np.zeros(16), rounds=99) == smallest_p(16, rounds=99) == 2 / 2**16


def test_numbers_held_at_once_change_no_result(monkeypatch):
    rows, groups = np.random.default_rng(3).normal(0.1, 0.3, (5, 40)).tolist(), [n // 2 for n in range(40)]

    def results() -> list[tuple[float, ...]]:
        return [(test.p(), *test.interval()) for test in flip_tests(rows, groups, rounds=499)]

    whole = results()
    for block in (1, 1_000):
        monkeypatch.setattr(statistics, "_BLOCK", block)
        assert np.allclose(results(), whole)


def test_no_difference_is_never_significant():
    assert p_value(A, A) == 1.0
    assert p_value([0.1 + 0.2, 0.3], [0.3, 0.1 + 0.2]) == 1.0, "rounding"
    assert p_value([1.0], [0.0]) == 1.0, "one query"
    assert p_value([1.0, 0.9, 0.8], [0.0] * 3, ["one"] * 3) == 1.0, "one group"
    assert list(flip_tests([])) == list(mean_intervals([])) == []


@pytest.mark.parametrize("n", [2, 5, 12])
def test_smallest_p_is_attained_by_the_same_sign_everywhere(n):
    assert p_value([0.5] * n, [0.25] * n) == smallest_p(n) == 2 / 2**n
    assert smallest_p(n, 3) == min(1, 6 / 2**n)


# Intervals


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([-1.0, -0.5, -0.3690, 0.0, 0.0, 0.1309, 0.5, 1.0]), min_size=1, max_size=25), st.data())
def test_interval_excludes_zero_exactly_when_the_test_rejects(values, data):
    groups = data.draw(st.none() | st.lists(st.integers(0, 9), min_size=len(values), max_size=len(values)))
    [test] = flip_tests([values], groups, rounds=999)
    for alpha in (0.05, 0.05 / 3, 0.005, 0.3):
        for bounds in ((-math.inf, math.inf), PAIRS):
            low, high = test.interval(alpha, bounds)
            assert (low > 0 or high < 0) == (test.p() < alpha)
            assert low - 1e-8 <= np.mean(values) <= high + 1e-8


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=6, max_size=9), st.floats(-1, 1))
def test_interval_holds_the_differences_that_are_not_rejected(values, true):
    [test] = flip_tests([values])
    low, high = test.interval()
    if min(abs(true - low), abs(true - high)) > 1e-6:
        assert (low < true < high) == (by_scipy([value - true for value in values]) >= 0.05)


def test_intervals_are_those_of_student_for_normal_differences():
    values = np.random.default_rng(2).normal(0.1, 0.3, 150).tolist()
    theirs = scipy.stats.ttest_1samp(values, 0).confidence_interval()
    [test], [grouped] = flip_tests([values]), flip_tests([values], ["all"] * 150)
    assert test.interval() == pytest.approx((theirs.low, theirs.high), abs=0.003)
    assert grouped.interval() == (-math.inf, math.inf)


def test_equal_differences_leave_room_for_what_was_not_seen():
    [test] = flip_tests([[0.0] * 10])
    low, high = test.interval(bounds=PAIRS)
    assert high == -low == pytest.approx(1 - 0.05**0.1)


def test_intervals_of_means_stay_within_the_measure():
    (low, one), (zero, high), *others = mean_intervals([[1.0] * 10, [0.0] * 10, [0.5] * 10, [0.0, 1.0] * 5])
    assert (zero, one) == (0.0, 1.0)
    assert 0.6 < low < 1
    assert high == pytest.approx(1 - low)
    assert all(0 < below < 0.5 < above < 1 for below, above in others)
    values = [1.0, 0.39, 0.5, 0.0, 1.0, 0.63, 0.43, 1.0, 0.5, 0.63, 0.3, 0.2]
    [recorded], [grouped] = mean_intervals([values]), mean_intervals([values], list("aabcdefghijk"), alpha=0.1)
    assert recorded == pytest.approx((0.345833, 0.741429), abs=1e-5)
    assert grouped == pytest.approx((0.381481, 0.691667), abs=1e-5)
    assert list(mean_intervals([[0.7]])) == list(mean_intervals([[0.2, 0.4]], ["one"] * 2)) == [(0.0, 1.0)]


# The rest


@pytest.mark.parametrize("n", [13, 300])
def test_detectable_difference_is_near_the_noncentral_t(n):
    differences = np.random.default_rng(n).normal(0, 0.25, n).tolist()
    least = detectable_difference(differences)
    assert least is not None
    shift = least / np.std(differences, ddof=1) * math.sqrt(n)
    found = scipy.stats.nct.sf(scipy.stats.t.ppf(0.975, n - 1), n - 1, shift)
    assert 0.78 <= found <= 0.85, "a little more than 0.8, because the spread is estimated"


def test_nothing_is_detectable_where_nothing_can_be_significant():
    differences = np.random.default_rng(0).normal(0, 0.25, 5).tolist()
    assert detectable_difference(differences * 2) is not None
    assert detectable_difference(differences) is None
    assert detectable_difference(differences * 2, list("abcde") * 2) is None
    assert detectable_difference(differences * 2, alpha=0.05 / 100) is None
    assert detectable_difference([0.0] * 50) is None, "no variance was seen, which does not mean that there is none"


@settings(max_examples=30, deadline=None)
@example([0.01, 0.04, 0.03, 0.005])
@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_rejects_what_stepping_down_rejects(ps):
    rejected, left = set(), len(ps)
    for index in sorted(range(len(ps)), key=ps.__getitem__):
        if ps[index] * left > 0.05:
            break
        rejected.add(index)
        left -= 1
    corrected = statistics.holm(ps)
    assert {index for index, p in enumerate(corrected) if p <= 0.05} == rejected
    assert all(p <= c <= 1 for p, c in zip(ps, corrected, strict=True))


def test_counts():
    assert (statistics.wins_ties_losses(A, B), statistics.wins_ties_losses(B, A)) == ((6, 5, 1), (1, 5, 6))


@pytest.mark.parametrize(
    ("a", "b", "groups", "said"),
    [
        ([1.0], [1.0, 2.0], None, "1 values against 2"), ([], [], None, "[]"), ([math.nan], [1.0], None, "nan"),
        ([1.0], [math.inf], None, "inf"), (A, B, ["a", "b"], "12 values and 2 groups"),
    ],
)  # fmt: skip
def test_values_that_cannot_be_paired_are_refused(a, b, groups, said):
    with refused(EvaluationError, said):
        p_value(a, b, groups)
