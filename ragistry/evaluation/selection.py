"""Choose the best of several variants on some of the queries, and measure it on the others.

The best of twenty equally good variants looks better than it is on the queries that chose it (Cawley and Talbot, On
over-fitting in model selection and subsequent selection bias in performance evaluation, 2010).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from ragistry.errors import EvaluationError
from ragistry.evaluation.result import Tuning
from ragistry.evaluation.statistics import flip_tests, paired
from ragistry.utils.wording import numbered


def check_fraction(fraction: float) -> None:
    """Raises `EvaluationError` unless it is above 0 and below 1."""
    if isinstance(fraction, bool) or not isinstance(fraction, int | float) or not 0 < fraction < 1:
        raise EvaluationError(f"tune_on is {fraction!r:.80}; give the share of queries to choose on, such as 0.5")


def tune_on(
    fraction: float,
    values: Mapping[str, Mapping[str, float]],
    baseline: str,
    measure: str,
    groups: Mapping[str, str],
    *,
    seed: int = 0,
) -> Tuning:
    """Choose the variant with the best mean on a random ``fraction`` of the groups, and its gain on the others.

    ``values``: variant → query → value, the ``baseline`` among them, all with the same queries. ``groups``: query →
    group; a group is never divided. Of equally good variants the first is chosen, the baseline before all. Raises
    `EvaluationError` for a bad fraction, and for too few groups to have some on either side.
    """
    check_fraction(fraction)
    queries = sorted(values[baseline])
    names = sorted({groups.get(query, query) for query in queries})
    count = round(fraction * len(names))
    if not 0 < count < len(names):
        said = numbered(len(names), "[group|groups] of queries")
        raise EvaluationError(f"tune_on {fraction:g} of {said} leaves one side empty; add queries or drop tune_on")
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
