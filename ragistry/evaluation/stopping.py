"""Decide between two techniques while a person grades, with one error rate over all looks.

The test of a look flips the signs of the differences, as `statistics` does, but counts all flips: values of RR@3 are
multiples of 1/6, so the sum has few values, and its distribution is a product of cosines (Pagano and Tritchler, On
obtaining permutation distributions in polynomial time, 1983). The bounds are those of O'Brien and Fleming (A multiple
testing procedure for clinical trials, 1979): early looks need much smaller p-values.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, erfc, sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ragistry.evaluation.statistics import Values, flip_tests, questions_needed

DEPTH = 3
"""Number of first results of each technique that are graded."""
QUESTIONS = 80
"""Default number of questions."""
FIRST = 20
"""Number of questions before the first look."""
LOOKS = 4
Z = 2.024
"""Bound of the last of four equally spaced looks at a two-sided level of 5 %; other spacings make it lower."""
_STEP = 6  # 1, 1/2 and 1/3 are multiples of 1/6

Outcome = Literal["challenger", "default", "not decided", "open"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What the grades decide.

    Attributes:
        outcome: The technique to use; ``not decided`` at the end, ``open`` before it.
        questions: Number of questions at the look that decided, else of all.
        total: Number of questions of the plan.
        next_look: Number of questions at the next look; None after the last.
        difference: Mean of challenger minus default; 0 while it is open.
        low: Lower end of the interval, at the level of the look.
        high: Upper end.
    """

    outcome: Outcome
    questions: int
    total: int
    next_look: int | None = None
    difference: float = 0.0
    low: float = -1.0
    high: float = 1.0


def decide(differences: list[float], total: int = QUESTIONS, margin: float | None = None) -> Decision:
    """Decide from the differences of RR@3, challenger minus default, in the order in which questions were completed.

    Args:
        differences: One for each question.
        total: Planned number of questions.
        margin: Difference for which the first look may raise ``total``; None to leave it.
    """
    row, number = np.array([differences]), 0
    while number < len(plan := looks(total)):
        look, alpha = plan[number], level(plan[number], total)
        if look > len(differences):
            return Decision("open", len(differences), total, look)
        if flip_ps(row[:, :look])[0] <= alpha:
            return _decided(row[0, :look], total, alpha)
        if look == FIRST and number == 0 and margin is not None:
            total = int(raised(row[:, :look], total, margin)[0])
        number += 1
    return _decided(row[0, :total], total, level(total, total), end=True)


def looks(total: int) -> list[int]:
    """Return the numbers of questions at which the test is done."""
    if total <= FIRST:
        return [total]
    return [FIRST + round((total - FIRST) * part / (LOOKS - 1)) for part in range(LOOKS)]


def level(questions: int, total: int) -> float:
    """Return the p-value at or below which a look stops."""
    return erfc(Z * sqrt(total / questions) / sqrt(2))


def raised(first: Values, total: int, margin: float) -> NDArray[np.int64]:
    """Return the number of questions of each row that shows ``margin``, and at least ``total``.

    It depends on the squares of the differences alone, which a flip of signs leaves as they are: so the test stays
    exact.
    """
    deviations = np.sqrt((first**2).mean(axis=1))
    needed = [questions_needed(margin, float(one)) if one else 0 for one in deviations]
    return np.array([max(total, FIRST * ceil(one / FIRST)) for one in needed])


def shown(questions: int, deviation: float) -> float:
    """Return the difference that so many questions show in four of five cases."""
    return deviation * sqrt(questions_needed(1.0, 100.0)) / 100 / sqrt(questions)


def flip_ps(rows: Values) -> Values:
    """Return the exact two-sided p-value of each row of differences under all flips of signs."""
    steps = np.rint(rows * _STEP).astype(int)
    observed, sizes = np.abs(steps.sum(axis=1)), np.abs(steps)
    length = 1 << (2 * int(sizes.sum(axis=1).max(initial=0))).bit_length()  # a sum s and -s have places of their own
    angles = 2 * np.pi * np.arange(length // 2 + 1) / length
    transform = np.ones((len(rows), len(angles)))
    for size in range(1, _STEP + 1):
        powers = np.cos(size * angles) ** np.arange(rows.shape[1] + 1)[:, None]
        transform *= powers[(sizes == size).sum(axis=1)]
    chances = np.fft.irfft(transform, length, axis=1)  # of the sums 0, 1, …, then of the negative ones
    sums = np.minimum(np.arange(length), length - np.arange(length))
    found: Values = np.where(sums >= observed[:, None], chances, 0.0).sum(axis=1)
    return found


def _decided(row: Values, total: int, alpha: float, *, end: bool = False) -> Decision:
    [test] = flip_tests([row.tolist()])
    mean, (low, high) = float(row.mean()), test.interval(alpha, (-1.0, 1.0))
    outcome: Outcome = "not decided" if end else "challenger" if mean > 0 else "default"
    return Decision(outcome, len(row), total, None, mean, low, high)
