"""Whether a difference between two techniques is more than chance, and how large it is.

All work on values per query, paired: the first of ``a`` and of ``b`` belong to the same query.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ragistry.errors import EvaluationError
from ragistry.evaluation.student import student_p, student_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

ROUNDS = 100_000
"""Rounds of a randomisation test: the smallest p is 1 / (ROUNDS + 1)."""

RESAMPLES = 10_000
"""Samples of a bootstrap."""

_BLOCK = 4_000_000  # numbers that are held at once
_TIE = 1e-9  # two means of the same values, summed in another order, differ by less


class WinsTiesLosses(NamedTuple):
    """On how many queries the first technique is better, equal, worse."""

    wins: int
    ties: int
    losses: int


def paired_test(
    a: Sequence[float],
    b: Sequence[float],
    *,
    method: Literal["randomisation", "t"] = "randomisation",
    seed: int = 0,
    rounds: int = ROUNDS,
) -> float:
    """The two-sided p-value of the mean difference, 0 to 1.

    ``"randomisation"`` (Fisher 1935; Smucker, Allan and Carterette, A comparison of statistical significance tests for
    information retrieval evaluation, 2007): how often the difference is as large when the two values of each query
    change places at random. All arrangements are tried where there are no more than ``rounds``; else the observed
    one is counted in (Phipson and Smyth, 2010). ``"t"``: Student's paired test; where all differences are the same,
    the randomisation test. Raises `EvaluationError` for values that are not paired or not finite.
    """
    differences = paired(a, b)
    if method == "t":
        return _t_test(differences)
    if method != "randomisation":
        raise EvaluationError(f"unknown test {method!r}; there are 'randomisation' and 't'")
    return _randomisation(differences[differences != 0], rounds, seed)


def holm(ps: Sequence[float]) -> list[float]:
    """The p-values of a family, corrected so that any false one among them is as rare as a p-value says.

    In the order given (Holm, A simple sequentially rejective multiple test procedure, 1979).
    """
    corrected = [0.0] * len(ps)
    highest = 0.0
    for place, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        highest = max(highest, min(1.0, ps[index] * (len(ps) - place)))
        corrected[index] = highest
    return corrected


def bootstrap_interval(
    values: Sequence[float], *, level: float = 0.95, seed: int = 0, rounds: int = RESAMPLES
) -> tuple[float, float]:
    """Where the mean lies with probability ``level``: percentiles of the means of samples drawn with replacement.

    (Efron and Tibshirani, An introduction to the bootstrap, 1993, chapter 13.)
    """
    given = finite(values)
    draw = np.random.default_rng(seed)
    block = max(1, _BLOCK // len(given))
    means = [
        given[draw.integers(len(given), size=(min(block, rounds - start), len(given)))].mean(axis=1)
        for start in range(0, rounds, block)
    ]
    low, high = np.quantile(np.concatenate(means), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def effect_size(a: Sequence[float], b: Sequence[float]) -> float | None:
    """The mean difference in standard deviations of the differences: Cohen's d_z (Lakens 2013, equation 6).

    None where the differences do not vary.
    """
    differences = paired(a, b)
    deviation = _deviation(differences)
    return float(differences.mean()) / deviation if deviation > 0 else None


def wins_ties_losses(a: Sequence[float], b: Sequence[float]) -> WinsTiesLosses:
    """On how many queries ``a`` is above, level with, below ``b``."""
    differences = paired(a, b)
    wins, losses = int((differences > _TIE).sum()), int((differences < -_TIE).sum())
    return WinsTiesLosses(wins, len(differences) - wins - losses, losses)


def detectable_difference(differences: Sequence[float], *, power: float = 0.8, alpha: float = 0.05) -> float | None:
    """The smallest true mean difference that a test of this many queries finds with probability ``power``.

    ``(t(1 - alpha / 2) + t(power)) s / sqrt(n)``, s the standard deviation of the differences (Bloom, Minimum
    detectable effects, 1995). None where the differences do not vary: of fewer than two queries, or all the same.
    """
    given = finite(differences)
    deviation, freedom = _deviation(given), len(given) - 1
    if deviation == 0:
        return None
    quantiles = student_quantile(1 - alpha / 2, freedom) + student_quantile(power, freedom)
    return quantiles * deviation / float(np.sqrt(len(given)))


def paired(a: Sequence[float], b: Sequence[float]) -> Values:
    """``(n,)`` differences ``a - b``; raises `EvaluationError` unless both are finite and of one length."""
    if len(a) != len(b):
        raise EvaluationError(f"{len(a)} values against {len(b)}; give both techniques the same queries")
    differences = finite(a) - finite(b)
    differences[np.abs(differences) <= _TIE] = 0.0
    return differences


def finite(values: Sequence[float]) -> Values:
    """``(n,)`` float64; raises `EvaluationError` for none, and for NaN or infinity."""
    given = np.asarray(values, dtype=np.float64)
    if given.ndim != 1 or given.size == 0 or not np.isfinite(given).all():
        raise EvaluationError(f"values must be a list of one or more finite numbers, got {values!r:.80}")
    return given


def _deviation(values: Values) -> float:
    """The standard deviation of a sample; 0 where it is rounding only."""
    if len(values) < 2 or np.ptp(values) <= _TIE:
        return 0.0
    return float(values.std(ddof=1))


def _t_test(differences: Values) -> float:
    mean, deviation = float(differences.mean()), _deviation(differences)
    if mean == 0 or len(differences) < 2:
        return 1.0
    if deviation == 0:  # t is infinite, of two queries as of a thousand; their number is what tells
        return 2.0 ** (1 - len(differences))
    return student_p(mean / deviation * float(np.sqrt(len(differences))), len(differences) - 1)


def _randomisation(differences: Values, rounds: int, seed: int) -> float:
    """``differences``: without zeros, whose sign does not matter."""
    n = len(differences)
    if n == 0:
        return 1.0
    total = differences.sum()
    # Summed in another order the same values give another last digit; that must not break a tie.
    bar = abs(total) - _TIE * np.abs(differences).sum()
    exact = n < 63 and 2**n <= rounds
    arrangements = 2**n if exact else rounds
    sums = _sums_by_octet(differences)
    block = max(1, _BLOCK // len(sums))
    draw = np.random.default_rng(seed)
    as_large = 0
    for start in range(0, arrangements, block):
        stop = min(start + block, arrangements)
        shape = (stop - start, len(sums))
        octets = _octets(start, stop)[:, : len(sums)] if exact else draw.integers(256, size=shape, dtype=np.uint8)
        swapped = sums[np.arange(len(sums)), octets].sum(axis=1)
        as_large += int((np.abs(total - 2 * swapped) >= bar).sum())
    return as_large / arrangements if exact else (as_large + 1) / (arrangements + 1)


def _sums_by_octet(differences: Values) -> Values:
    """``(ceil(n / 8), 256)``: of each eight queries, the sum of those that an octet's bits choose."""
    eights = np.concatenate([differences, np.zeros(-len(differences) % 8)]).reshape(-1, 8)
    chosen = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    sums: Values = eights @ chosen.T.astype(np.float64)
    return sums


def _octets(start: int, stop: int) -> NDArray[np.uint8]:
    """``(stop - start, 8)``: the octets of the numbers, the lowest first."""
    return np.arange(start, stop, dtype="<u8").view(np.uint8).reshape(-1, 8)
