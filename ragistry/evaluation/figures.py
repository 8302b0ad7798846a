"""The figures of a comparison, from what was answered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np

from ragistry.evaluation.answers import Answer
from ragistry.evaluation.result import Latency, Pair
from ragistry.evaluation.statistics import (
    bootstrap_interval,
    detectable_difference,
    effect_size,
    holm,
    paired_test,
    wins_ties_losses,
)

Test = Literal["randomisation", "t"]
TESTS: tuple[Test, ...] = ("randomisation", "t")
ALPHA = 0.05
"""A difference is significant where its corrected p-value is below."""


def latency(answers: Iterable[Answer]) -> Latency:
    """Percentiles (linear between two queries) and mean of the time of a query."""
    ms = np.array([answer.ms for answer in answers])
    p50, p95 = np.percentile(ms, [50, 95])
    return Latency(float(p50), float(p95), float(ms.mean()))


def mean_stages(answers: Sequence[Answer]) -> dict[str, float]:
    """Mean milliseconds of each stage over all queries, in the order in which stages began."""
    names = dict.fromkeys(name for answer in answers for name in answer.stages)
    return {name: sum(answer.stages.get(name, 0.0) for answer in answers) / len(answers) for name in names}


def pairs_of(
    names: Sequence[tuple[str, str]],
    measure: str,
    values: Mapping[str, Mapping[str, float]],
    *,
    test: Test = "randomisation",
    seed: int = 0,
) -> list[Pair]:
    """Test each pair on one measure, the p-values corrected over these pairs. ``values``: technique → query → value."""
    columns = {name: [values[name][query] for query in sorted(values[name])] for pair in names for name in pair}
    ps = [paired_test(columns[a], columns[b], method=test, seed=seed) for a, b in names]
    return [
        _pair(a, b, measure, columns[a], columns[b], p, corrected, seed, ALPHA / len(names))
        for (a, b), p, corrected in zip(names, ps, holm(ps), strict=True)
    ]


def _pair(
    a: str,
    b: str,
    measure: str,
    left: list[float],
    right: list[float],
    p: float,
    p_holm: float,
    seed: int,
    alpha: float,
) -> Pair:
    """``alpha``: what the smallest p of the family must be below, so that a pair is found whatever the others are."""
    differences = [x - y for x, y in zip(left, right, strict=True)]
    low, high = bootstrap_interval(differences, seed=seed)
    wins, ties, losses = wins_ties_losses(left, right)
    return Pair(
        a=a,
        b=b,
        measure=measure,
        difference=sum(differences) / len(differences),
        low=low,
        high=high,
        p=p,
        p_holm=p_holm,
        wins=wins,
        ties=ties,
        losses=losses,
        significant=p_holm < ALPHA,
        effect_size=effect_size(left, right),
        detectable=detectable_difference(differences, alpha=alpha),
    )
