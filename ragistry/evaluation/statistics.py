"""Test whether a difference between two techniques is significant, and estimate how large it is.

All figures use one test: the paired randomisation test by sign flips (Fisher 1935; Smucker, Allan and
Carterette, A comparison of statistical significance tests for information retrieval evaluation, 2007). If two
techniques are equally good, the sign of each difference is a coin toss. Queries of one group (made from one document,
say) are not independent tosses, so a group flips as a whole. The confidence interval is the set of true differences
that this test does not reject, so the interval excludes 0 exactly when the test is significant.

`tune_on` chooses the best of several variants on some of the queries, and measures it on the others: the best of twenty
equally good variants looks better than it is on the queries that chose it (Cawley and Talbot, On over-fitting in model
selection and subsequent selection bias in performance evaluation, 2010).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf, sqrt
from random import Random
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ragistry.errors import EvaluationError
from ragistry.evaluation.figures import Tuning
from ragistry.utils.wording import numbered

Values = NDArray[np.float64]

ROUNDS = 29_999
"""Number of random sign flips if there are too many to try all; the smallest p-value is then 1 / (ROUNDS + 1)."""
EXACT_GROUPS = 16
"""Largest number of groups for which all sign flips are tried."""
UNSEEN = 0.4
"""Number of pseudo-queries with value 0, and with value 1, that are added for the interval of a mean."""
POWER = 0.8
"""Share of cases in which a detectable difference is found."""

_TIE = 1e-9  # rounding differences of sums in another order are smaller
_BLOCK = 4_000_000  # numbers held at once
_SIMULATED_GROUPS = 12  # so few groups have few attainable p-values: the detectable difference is simulated
_SIMULATIONS = 1_000


@dataclass(frozen=True)
class FlipTest:
    """The randomisation test of one row of differences, and its intervals.

    Let F be the flipped groups. A true difference x gives a result at least as extreme as the observed one exactly if x
    lies between the mean of F and the mean of the other groups (Hartigan, Using subsample values as typical values,
    1969). ``lows`` and ``highs`` are these two means for each flip, so the p-value of any x is a count.
    """

    lows: Values
    highs: Values
    groups: int

    def p(self, true: float = 0.0) -> float:
        """Return the two-sided p-value of a true mean difference."""
        return float(np.mean((self.lows <= true) & (true <= self.highs)))

    def interval(self, alpha: float = 0.05, bounds: tuple[float, float] = (-inf, inf)) -> tuple[float, float]:
        """Return the true means whose p-value is ``alpha`` or more; the bounds if too few groups can reject any.

        If all groups are equal, flips show no spread. Other values may still occur in a share of ``1 - alpha ** (1 /
        groups)`` of all queries, so the interval extends that far towards the bounds, but not past 0.
        """
        flips = len(self.lows)
        rank = min(flips, max(1, ceil(alpha * flips - 1e-9)))
        low = float(np.partition(self.lows, rank - 1)[rank - 1])
        high = float(np.partition(self.highs, flips - rank)[flips - rank])
        least, most = max(low, bounds[0]), min(high, bounds[1])
        if high - low <= 4 * _TIE and bounds != (-inf, inf):
            unseen = 1 - alpha ** (1 / self.groups)
            least, most = low - unseen * (low - bounds[0]), high + unseen * (bounds[1] - high)
        if low > 0:
            return max(least, _TIE), most
        return (least, min(most, -_TIE)) if high < 0 else (least, most)


def flip_tests(
    rows: Sequence[Sequence[float]], groups: Sequence[object] | None = None, *, seed: int = 0, rounds: int = ROUNDS
) -> Iterator[FlipTest]:
    """Test rows of differences.

    All flips are tried for up to `EXACT_GROUPS` groups. Above, ``rounds`` are drawn, the same for every row, and the
    observed arrangement is one of them (Phipson and Smyth, Permutation p-values should never be zero, 2010).

    Args:
        rows: Rows with one value per query.
        groups: Group of each query; the queries of a group are flipped together.
        seed: Seed of the flips.
        rounds: Number of random flips.

    Returns:
        A test for each row.
    """
    values = np.array([finite(row) for row in rows])
    if values.size == 0:
        return
    yield from _flip_tests(*grouped(values, groups), seed, rounds)


def _flip_tests(sums: Values, sizes: Values, seed: int, rounds: int) -> Iterator[FlipTest]:
    """``sums``: ``(rows, groups)``."""
    octets = _flips(len(sizes), seed, rounds)
    step, at_once = max(1, _BLOCK // len(sizes)), max(1, _BLOCK // len(octets))
    for first in range(0, len(sums), at_once):
        columns = np.vstack([sums[first : first + at_once], sizes]).T
        blocks = (octets[start : start + step] for start in range(0, len(octets), step))
        bits = (np.unpackbits(block, axis=1, count=len(sizes), bitorder="little") for block in blocks)
        # Sums over the flipped groups, one column per row of differences, sizes last.
        flipped, total = np.vstack([chosen @ columns for chosen in bits]), columns.sum(axis=0)
        inner, size = flipped[:, -1], total[-1]
        nothing = (inner == 0) | (inner == size)
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = flipped[:, :-1] / inner[:, None]
            outside = (total[:-1] - flipped[:, :-1]) / (size - inner)[:, None]
        for one, other in zip(inside.T, outside.T, strict=True):
            lows, highs = np.minimum(one, other) - _TIE, np.maximum(one, other) + _TIE
            lows[nothing], highs[nothing] = -inf, inf
            yield FlipTest(lows, highs, len(sizes))


def mean_intervals(
    rows: Sequence[Sequence[float]],
    groups: Sequence[object] | None = None,
    *,
    alpha: float = 0.05,
    seed: int = 0,
    rounds: int = ROUNDS,
) -> Iterator[tuple[float, float]]:
    """Yield the confidence interval of the mean of each row of values from 0 to 1, by inversion of the same test.

    Values of a measure crowd at 0 or 1, and a small sample may show nothing else. So `UNSEEN` queries with 0
    and as many with 1 are added, as Agresti and Coull (1998) do for proportions; simulation gave their number.
    """
    values = np.array([finite(row) for row in rows])
    if values.size == 0:
        return
    sums, sizes = grouped(values, groups)
    ends = np.tile([0.0, UNSEEN], (len(sums), 1))
    tests = _flip_tests(np.hstack([sums, ends]), np.append(sizes, [UNSEEN, UNSEEN]), seed, rounds)
    for test, mean in zip(tests, values.mean(axis=1), strict=True):
        low, high = test.interval(alpha)
        yield max(0.0, min(low, float(mean))), min(1.0, max(high, float(mean)))


def holm(ps: Sequence[float]) -> list[float]:
    """Correct the p-values of a family for their number, and return them in the same order.

    (Holm, A simple sequentially rejective multiple test procedure, 1979.)
    """
    corrected = [0.0] * len(ps)
    highest = 0.0
    for place, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        highest = max(highest, min(1.0, ps[index] * (len(ps) - place)))
        corrected[index] = highest
    return corrected


def smallest_p(groups: int, family: int = 1, *, rounds: int = ROUNDS) -> float:
    """Return the smallest p-value that so many groups can give, after Holm's correction over ``family`` pairs."""
    flips = 2.0 ** (groups - 1) if groups <= EXACT_GROUPS else rounds + 1
    return min(1.0, family / flips)


def wins_ties_losses(a: Sequence[float], b: Sequence[float]) -> tuple[int, int, int]:
    """Count the queries on which ``a`` is above, equal to and below ``b``."""
    differences = paired(a, b)
    wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
    return wins, len(differences) - wins - losses, losses


def detectable_difference(
    differences: Sequence[float], groups: Sequence[object] | None = None, *, alpha: float = 0.05
) -> float | None:
    """Estimate the true mean difference that the test finds in four of five new test sets like this one.

    The spread of the group means, times a factor, because the spread is an estimate too. None if nothing can be
    significant or the differences do not vary.
    """
    sums, sizes = grouped(finite(differences)[None, :], groups)
    n = len(sizes)
    if n < 2 or 2.0 ** (1 - n) >= alpha:
        return None
    error = float(_standard_errors(sums, sizes)[0])
    return None if error * sqrt(n) <= _TIE else error * _factor(tuple(sizes), alpha)


def questions_needed(difference: float, deviation: float, family: int = 1, *, alpha: float = 0.05) -> int:
    """Return how many independent questions show a difference in four of five cases (Cohen 1988, normal approximation).

    Args:
        difference: The true mean difference.
        deviation: Standard deviation of the differences of single questions.
        family: Number of pairs that are tested together.
        alpha: Level of the two-sided test.
    """
    ends = NormalDist().inv_cdf(1 - alpha / family / 2) + NormalDist().inv_cdf(POWER)
    testable = next(size for size in range(2, 64) if smallest_p(size, family) < alpha)
    return max(testable, ceil((ends * deviation / difference) ** 2))


def paired(a: Sequence[float], b: Sequence[float]) -> Values:
    """Return ``(n,)`` differences ``a - b``. Raises `EvaluationError` unless both are finite and of one length."""
    if len(a) != len(b):
        raise EvaluationError(f"{len(a)} values against {len(b)}; give both techniques the same queries")
    differences = finite(a) - finite(b)
    differences[np.abs(differences) <= _TIE] = 0.0
    return differences


def finite(values: Sequence[float]) -> Values:
    """Return ``(n,)`` float64. Raises `EvaluationError` for an empty list, NaN or infinity."""
    given = np.asarray(values, dtype=np.float64)
    if given.ndim != 1 or given.size == 0 or not np.isfinite(given).all():
        raise EvaluationError(f"values must be a list of one or more finite numbers, got {values!r:.80}")
    return given


def grouped(rows: Values, groups: Sequence[object] | None) -> tuple[Values, Values]:
    """Return ``(rows, groups)`` sums and ``(groups,)`` sizes; by default each query is its own group."""
    if groups is None:
        return rows, np.ones(rows.shape[1])
    if len(groups) != rows.shape[1]:
        raise EvaluationError(f"{rows.shape[1]} values and {len(groups)} groups; give a group for each query")
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    member = np.zeros((rows.shape[1], len(numbers)))
    member[np.arange(rows.shape[1]), [numbers[group] for group in groups]] = 1.0
    return rows @ member, member.sum(axis=0)


@lru_cache(maxsize=4)
def _flips(groups: int, seed: int, rounds: int) -> NDArray[np.uint8]:
    """Return ``(flips, groups / 8)`` bits: which groups change sign; none in the first row."""
    if groups <= EXACT_GROUPS:
        return np.arange(2 ** (groups - 1), dtype="<u4").view(np.uint8).reshape(-1, 4)
    octets = np.random.default_rng(seed).integers(256, size=(rounds + 1, ceil(groups / 8)), dtype=np.uint8)
    octets[0] = 0
    return octets


def _standard_errors(sums: Values, sizes: Values) -> Values:
    """Return ``(rows,)`` standard errors of the means, by the spread of the groups around them."""
    n, total = len(sizes), sizes.sum()
    residuals = sums - sums.sum(axis=1, keepdims=True) / total * sizes
    errors: Values = np.sqrt((residuals**2).sum(axis=1) * n / (n - 1)) / total
    return errors


@lru_cache(maxsize=64)
def _factor(sizes: tuple[float, ...], alpha: float) -> float:
    """Return a detectable difference in standard errors; queries of one group are assumed to be equal.

    The standard error is an estimate, so the power is `POWER` on average over test sets like this one. For groups of
    one size a third of the allowance for that is left out: then a typical estimate has a power near `POWER`, too.
    """
    n, weights, draw = len(sizes), np.array(sizes), np.random.default_rng(len(sizes))
    if n > _SIMULATED_GROUPS and len(set(sizes)) == 1:
        spreads = np.sqrt(draw.chisquare(n - 1, (2, 20 * _SIMULATIONS)) / (n - 1))
        needed = _t(1 - alpha / 2, n - 1) * spreads[0] - draw.standard_normal(20 * _SIMULATIONS)
        estimated = spreads[1]
    else:
        samples, others = draw.standard_normal((2, _SIMULATIONS, n)) * weights
        rounds = min(ROUNDS, max(2_000, round(10 / alpha)))
        known = sqrt(float(weights @ weights)) / float(weights.sum())
        needed = np.array([-test.interval(alpha)[0] for test in _flip_tests(samples, weights, 0, rounds)]) / known
        estimated = _standard_errors(others, weights) / known
    on_average = float(np.quantile(needed / estimated, POWER))
    return on_average if len(set(sizes)) > 1 else (float(np.quantile(needed, POWER)) + 2 * on_average) / 3


def _t(probability: float, freedom: int) -> float:
    """Return a quantile of Student's t distribution (Abramowitz and Stegun 26.7.5)."""
    z = NormalDist().inv_cdf(probability)
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * freedom**4)
    )


def check_fraction(fraction: float) -> None:
    """Raise `EvaluationError` unless the fraction is above 0 and below 1."""
    if isinstance(fraction, bool) or not isinstance(fraction, int | float) or not 0 < fraction < 1:
        raise EvaluationError(f"tune_on is {fraction!r:.80}; it must be above 0 and below 1, such as 0.5")


def tune_on(
    fraction: float,
    values: Mapping[str, Mapping[str, float]],
    baseline: str,
    measure: str,
    groups: Mapping[str, str],
    *,
    seed: int = 0,
) -> Tuning:
    """Choose the best variant on a random part of the groups, and measure its gain on the others.

    Of equally good variants the first one is chosen, the baseline before all others.

    Args:
        fraction: Share of the groups on which to choose.
        values: Variant → query → value, all with the same queries; includes the baseline.
        baseline: The variant that the chosen one is compared with.
        measure: Name of the measure.
        groups: Query → group; a group is never divided.
        seed: Seed of the choice of groups.

    Raises:
        EvaluationError: The fraction is not valid, or there are too few groups for both parts.
    """
    check_fraction(fraction)
    queries = sorted(values[baseline])
    names = sorted({groups.get(query, query) for query in queries})
    count = round(fraction * len(names))
    if not 0 < count < len(names):
        there = numbered(len(names), "[group|groups] of queries")
        raise EvaluationError(f"tune_on {fraction:g} of {there} leaves one part empty; add queries or drop tune_on")
    chosen_on = set(Random(f"tune/{seed}").sample(names, count))
    selecting = [query for query in queries if groups.get(query, query) in chosen_on]
    held_out = [query for query in queries if groups.get(query, query) not in chosen_on]
    order = [baseline, *(name for name in values if name != baseline)]
    chosen = max(order, key=lambda name: round(_mean(values[name], selecting), 9))  # the first of the best
    differences = paired([values[chosen][q] for q in held_out], [values[baseline][q] for q in held_out])
    [test] = flip_tests([differences.tolist()], [groups.get(query, query) for query in held_out], seed=seed)
    low, high = test.interval(bounds=(-1.0, 1.0))
    return Tuning(
        fraction=fraction,
        chosen=chosen,
        baseline=baseline,
        measure=measure,
        gain_selected=_mean(values[chosen], selecting) - _mean(values[baseline], selecting),
        gain_held_out=float(differences.mean()),
        low=low,
        high=high,
        p=test.p(),
        queries_selected=len(selecting),
        queries_held_out=len(held_out),
        variants=order,
    )


def _mean(values: Mapping[str, float], queries: Sequence[str]) -> float:
    return sum(values[query] for query in queries) / len(queries)
