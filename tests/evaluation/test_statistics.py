"""Statistics against scipy, and by simulation: how often chance alone is called a winner."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import scipy.stats
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ragistry.errors import EvaluationError
from ragistry.evaluation.statistics import (
    bootstrap_interval,
    detectable_difference,
    effect_size,
    holm,
    paired_test,
    wins_ties_losses,
)
from ragistry.evaluation.student import student_p, student_quantile

LIKE_NDCG = (0.0, 0.3010, 0.3869, 0.4307, 0.5, 0.6309, 1.0)
A = [0.0, 0.5, 1.0, 0.63, 0.43, 1.0, 0.0, 0.39, 1.0, 0.5, 0.63, 1.0]
B = [0.0, 0.43, 0.63, 0.63, 0.5, 0.5, 0.0, 0.0, 1.0, 0.39, 0.5, 1.0]


def null(draw: np.random.Generator, queries: int, techniques: int) -> NDArray[np.float64]:
    """``(techniques, queries)`` values of equally good techniques: few levels, many ties, skewed, and each query as
    hard for one as for the other."""
    hard = draw.choice([0.1, 0.5, 0.9], size=queries, p=[0.2, 0.3, 0.5])
    levels = draw.choice(LIKE_NDCG, size=(techniques, queries))
    kept = draw.random((techniques, queries)) < 0.5 + 0.3 * hard
    return np.where(kept, np.where(draw.random((techniques, queries)) < hard, 1.0, levels), 0.0)


def test_chance_alone_is_called_significant_as_often_as_it_says() -> None:
    draw = np.random.default_rng(20)
    values = [null(draw, 50, 2) for _ in range(2_000)]
    found = [paired_test(*pair, seed=number, rounds=999) <= 0.05 for number, pair in enumerate(values)]
    assert 0.035 <= np.mean(found) <= 0.065
    by_t = [paired_test(*pair, method="t") <= 0.05 for pair in values]
    assert 0.035 <= np.mean(by_t) <= 0.065


def test_a_family_of_ten_pairs_is_rarely_wrong_anywhere() -> None:
    draw = np.random.default_rng(21)
    wrong = 0
    for number in range(2_000):
        five = null(draw, 40, 5)
        pairs = [(one, other) for one in range(5) for other in range(one)]
        ps = [paired_test(five[a], five[b], seed=number, rounds=599) for a, b in pairs]
        assert len(ps) == 10
        wrong += min(holm(ps)) <= 0.05
    assert 0 < wrong / 2_000 <= 0.065


def test_a_real_difference_is_found_as_often_as_the_detectable_difference_says() -> None:
    draw = np.random.default_rng(22)
    pilot = draw.normal(0, 0.3, 60)
    least = detectable_difference(pilot)
    assert least is not None
    deviation = pilot.std(ddof=1)
    found = [paired_test(draw.normal(least, deviation, 60), np.zeros(60), method="t") <= 0.05 for _ in range(2_000)]
    assert np.mean(found) == pytest.approx(0.8, abs=0.03)


def test_intervals_cover_the_mean_as_often_as_they_say() -> None:
    draw = np.random.default_rng(23)
    truth = float(np.mean(LIKE_NDCG))
    covered = 0
    for number in range(500):
        low, high = bootstrap_interval(draw.choice(LIKE_NDCG, size=100), seed=number, rounds=1_000)
        covered += low <= truth <= high
    assert 0.92 <= covered / 500 <= 0.975


def by_scipy(a: Sequence[float], b: Sequence[float], rounds: int) -> float:
    result = scipy.stats.permutation_test(
        (a, b),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=rounds,
        rng=np.random.default_rng(0),
    )
    return float(result.pvalue)


levels = st.lists(st.tuples(*[st.sampled_from(LIKE_NDCG)] * 2), min_size=2, max_size=9)


@settings(max_examples=40, deadline=None)
@example([(0.0, 1.0), (0.3869, 0.0), (0.3869, 0.4307), (0.6309, 0.4307), (1.0, 0.5), (0.3869, 0.4307)])
@given(levels)
def test_few_queries_are_tested_by_every_arrangement_as_scipy_does(pairs: list[tuple[float, float]]) -> None:
    a, b = np.array(pairs).T
    # Whole numbers for scipy, which else takes what is rounded for a difference where two sums are the same.
    whole_a, whole_b = np.rint(10_000 * a), np.rint(10_000 * b)
    assert paired_test(a, b) == pytest.approx(by_scipy(whole_a, whole_b, 1_000), abs=1e-12)


def test_many_queries_are_tested_by_chance_as_scipy_does() -> None:
    draw = np.random.default_rng(1)
    a, b = draw.choice(LIKE_NDCG, size=(2, 200))
    b = np.clip(b + 0.04, 0, 1)
    assert paired_test(a, b) == pytest.approx(by_scipy(a, b, 50_000), abs=0.01)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(*[st.floats(0, 1)] * 2), min_size=3, max_size=40))
def test_the_t_test_is_scipys(pairs: list[tuple[float, float]]) -> None:
    a, b = np.array(pairs).T
    if np.ptp(a - b) < 1e-6:
        return
    assert paired_test(a, b, method="t") == pytest.approx(scipy.stats.ttest_rel(a, b).pvalue, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("freedom", [1, 2, 3, 10, 49, 299, 6_979])
@pytest.mark.parametrize("t", [0.0, 1e-6, 0.1, 1.0, 1.96, 5.0, 30.0])
def test_the_t_distribution_is_scipys_to_its_tails(t: float, freedom: int) -> None:
    p = student_p(t, freedom)
    assert p == pytest.approx(2 * scipy.stats.t.sf(t, freedom), rel=1e-8, abs=1e-300)
    if 0.1 <= t <= 5:
        assert student_quantile(1 - p / 2, freedom) == pytest.approx(t, rel=1e-6)
        assert student_quantile(p / 2, freedom) == pytest.approx(-t, rel=1e-6)


def test_intervals_are_scipys() -> None:
    draw = np.random.default_rng(2)
    values = draw.choice(LIKE_NDCG, size=150)
    theirs = scipy.stats.bootstrap((values,), np.mean, method="percentile", rng=draw).confidence_interval
    low, high = bootstrap_interval(values)
    assert low == pytest.approx(theirs.low, abs=0.003)
    assert high == pytest.approx(theirs.high, abs=0.003)
    narrow = bootstrap_interval(values, level=0.5)
    assert low < narrow[0] < values.mean() < narrow[1] < high


def test_the_detectable_difference_solves_the_noncentral_t() -> None:
    for n in (10, 50, 300):
        differences = np.random.default_rng(n).normal(0, 0.25, n)
        least = detectable_difference(differences)
        assert least is not None
        shift = least / differences.std(ddof=1) * math.sqrt(n)
        power = scipy.stats.nct.sf(scipy.stats.t.ppf(0.975, n - 1), n - 1, shift)
        assert power == pytest.approx(0.8, abs=0.02)
        assert (detectable_difference(differences, alpha=0.005) or 0) > least


def test_holm_corrects_a_family_in_the_order_given() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([0.03]) == [0.03]
    assert holm([]) == []


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
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


def test_the_same_number_starts_the_same_chance() -> None:
    draw = np.random.default_rng(3)
    a, b = draw.random((2, 60))
    assert paired_test(a, b, seed=5) == paired_test(a, b, seed=5) == paired_test(b, a, seed=5)
    assert paired_test(a, b, seed=5) == pytest.approx(paired_test(a, b, seed=6), abs=0.02)
    assert bootstrap_interval(a, seed=5) == bootstrap_interval(a, seed=5)


def test_no_difference_is_never_significant() -> None:
    for method in ("randomisation", "t"):
        assert paired_test(A, A, method=method) == 1.0
    shifted = [0.1 + 0.2, 0.3], [0.3, 0.1 + 0.2]
    assert paired_test(*shifted, method="t") == 1.0, "rounding is no difference"
    assert effect_size(A, A) is None
    assert wins_ties_losses(A, A) == (0, 12, 0)


def test_one_query_proves_nothing() -> None:
    assert paired_test([1.0], [0.0]) == 1.0
    assert paired_test([1.0], [0.0], method="t") == 1.0
    assert effect_size([1.0], [0.0]) is None
    assert detectable_difference([1.0]) is None
    assert detectable_difference([0.0] * 50) is None, "no variance was seen, which is not to say that there is none"
    assert bootstrap_interval([0.7]) == pytest.approx((0.7, 0.7))


@pytest.mark.parametrize("n", [2, 5, 6, 12])
def test_the_same_difference_everywhere_is_judged_by_how_often_it_was_seen(n: int) -> None:
    by_t = paired_test([0.5] * n, [0.25] * n, method="t")
    assert by_t == paired_test([0.5] * n, [0.25] * n) == 2 / 2**n
    assert (by_t < 0.05) == (n >= 6)


def test_effect_size_and_counts() -> None:
    differences = np.array(A) - np.array(B)
    assert effect_size(A, B) == pytest.approx(differences.mean() / differences.std(ddof=1))
    assert effect_size(B, A) == pytest.approx(-differences.mean() / differences.std(ddof=1))
    assert wins_ties_losses(A, B) == (6, 5, 1)
    assert wins_ties_losses(B, A) == (1, 5, 6)


@pytest.mark.parametrize(("a", "b"), [([1.0], [1.0, 2.0]), ([], []), ([math.nan], [1.0]), ([1.0], [math.inf])])
def test_what_is_not_paired_or_not_finite_is_refused(a: list[float], b: list[float]) -> None:
    with pytest.raises(EvaluationError):
        paired_test(a, b)


def test_an_unknown_test_is_refused() -> None:
    with pytest.raises(EvaluationError, match="'wilcoxon'"):
        paired_test(A, B, method="wilcoxon")  # type: ignore[arg-type]
