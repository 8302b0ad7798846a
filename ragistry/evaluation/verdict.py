"""Say in one sentence what a comparison means for the choice of a technique.

A technique is to be used if it is better than the baseline after Holm's correction. The baseline is kept if the upper
end of the corrected interval of every other technique is below a margin that was fixed before. Otherwise nothing is
decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Literal

from ragistry.errors import EvaluationError
from ragistry.evaluation.figures import Pair, TechniqueResult
from ragistry.evaluation.statistics import questions_needed
from ragistry.utils.wording import numbered

if TYPE_CHECKING:
    from ragistry.evaluation.result import Comparison

Decision = Literal["use", "keep", "undecided", "impossible"]
USUAL_DEVIATION = 0.2
"""Standard deviation of the differences between two techniques where none can be estimated."""
TIMES = 1.5
"""Ratio of two median times from which a verdict names a difference of a millisecond or more."""
FOR, COSTS = " for ", " and costs "


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do.

    Attributes:
        decision: ``use`` another technique, ``keep`` the baseline, ``undecided`` (more questions can decide it), or
            ``impossible`` (this comparison cannot decide it).
        technique: The technique to use or keep; None without a decision.
        candidate: All questions are made by a program, so that people's questions have to confirm the decision.
        sentence: The verdict in one sentence.
    """

    decision: Decision
    technique: str | None
    candidate: bool
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def verdict(comparison: Comparison) -> Verdict:
    """Decide between the baseline and the other techniques of a comparison."""
    baseline, pairs = comparison.baseline, comparison.main_pairs
    others = [name for name in comparison.techniques if name != baseline]
    made = comparison.provenance["dataset"]["synthetic"]
    candidate = made is not None and made["queries"] >= comparison.queries
    if not comparison.techniques:
        return _nothing("Every technique failed: nothing could be compared.")
    if baseline is None:
        return _nothing("This report of an earlier version has no baseline; run the comparison again for a verdict.")
    if baseline in comparison.failures:
        return _nothing(f"The baseline {baseline} failed, so nothing can be compared with it.")
    if not others:
        return _nothing("Only one technique was compared; add another one.")
    if not pairs:
        every = "the other technique returns" if len(others) == 1 else "all techniques return"
        return _decided("keep", baseline, candidate, f"{every} the same results for every question")
    if comparison.no_retrieval:
        return _nothing("These documents cannot decide it: no technique finds more than chance.")
    best = best_of(pairs, comparison.techniques)
    if best is not None:
        pair = next(pair for pair in pairs if pair.a == (comparison.techniques[best].same_as or best))
        low, high = _shown(pair.family_low), _shown(pair.family_high)
        better = f"better than {baseline} by {low} to {high}{_cost(comparison, best, FOR)}"
        return _decided("use", best, candidate, better)
    if keeps(pairs, comparison.margin):
        nearest = max(pairs, key=lambda pair: pair.family_high)
        name = nearest.a if len(pairs) == 1 else f"the best of {len(pairs)} others, {nearest.a},"
        reason = f"{name} is at most {_shown(nearest.family_high)} better{_cost(comparison, nearest.a, COSTS)}"
        if nearest.family_high <= 0:
            reason = f"{name} is worse by {_shown(-nearest.family_high)} to {_shown(-nearest.family_low)}"
        return _decided("keep", baseline, candidate, reason)
    return _undecided(comparison, pairs, candidate)


def best_of(pairs: Sequence[Pair], techniques: Mapping[str, TechniqueResult] | None = None) -> str | None:
    """Return the technique with the highest mean of those that are better than the baseline; None without one.

    Of equally good ones it is the one with the lowest median time.
    """
    better = {pair.a: pair.difference for pair in pairs if pair.better == pair.a}
    known = techniques or {}
    twins = {name: better[str(one.same_as)] for name, one in known.items() if one.same_as in better}

    def rank(name: str) -> tuple[float, float]:
        return -round((better | twins)[name], 9), known[name].latency_ms.p50 if name in known else 0.0

    return min(better | twins, key=rank, default=None)


def keeps(pairs: Sequence[Pair], margin: float) -> bool:
    """Return whether no technique can be better than the baseline by the margin."""
    return smallest_margin(pairs) < margin


def smallest_margin(pairs: Sequence[Pair]) -> float:
    """Return the margin that the corrected intervals reach."""
    return max(pair.family_high for pair in pairs)


def _nothing(sentence: str) -> Verdict:
    return Verdict("impossible", None, False, sentence)


def _decided(decision: Decision, technique: str, candidate: bool, reason: str) -> Verdict:
    said = f"{decision} {technique}"
    if candidate:
        lead = "as " if decision == "keep" else ""
        sentence = f"Candidate: {said}, {lead}{reason}; confirm it with people's questions."
    else:
        sentence = f"{said[0].upper()}{said[1:]}: {reason}."
    return Verdict(decision, technique, candidate, sentence)


def _undecided(comparison: Comparison, pairs: Sequence[Pair], candidate: bool) -> Verdict:
    """Say how many more questions would decide it, or that the documents do not give so many."""
    pair = max(pairs, key=lambda pair: pair.family_high)
    wanted = comparison.margin
    needed = questions_for(pair, wanted, len(pairs))
    if needed <= pair.queries:  # The margin would have been shown; what was measured is smaller.
        wanted = max(round(abs(pair.difference), 3), 0.001)
        needed = max(questions_for(pair, wanted, len(pairs)), pair.queries + 1)
    documents = comparison.provenance["dataset"]["documents"]
    groups = ceil(needed * pair.clusters / pair.queries)
    if candidate and groups > documents:
        return Verdict(
            "impossible", None, False,
            f"These documents cannot decide it: {numbered(documents, '[document gives|documents give]')} "
            f"{pair.clusters:,} independent questions, and about {_rounded(groups):,} would show a difference of "
            f"{wanted:.3g}; use people's questions (--queries FILE).",
        )  # fmt: skip
    more = numbered(_rounded(needed - pair.queries), "more [question|questions]")
    return Verdict("undecided", None, False, f"Not decided: about {more} would show a difference of {wanted:.3g}.")


def questions_for(pair: Pair, difference: float, family: int) -> int:
    """Estimate how many such questions show a difference of this size in four of five cases."""
    if pair.detectable is None or pair.detectable > 1:
        return questions_needed(difference, USUAL_DEVIATION, family)
    return ceil(pair.queries * (pair.detectable / difference) ** 2)


def _cost(comparison: Comparison, name: str, lead: str) -> str:
    """Compare the median time of a search with the baseline's; empty if they are nearly equal."""
    one, other = comparison.techniques[name], comparison.techniques[str(comparison.baseline)]
    ours, theirs = one.latency_ms.p50, other.latency_ms.p50
    if not (one.timed and other.timed) or max(ours, theirs) < max(TIMES * min(ours, theirs), min(ours, theirs) + 1):
        return ""
    if ours > theirs > 0 and lead == COSTS:
        return f"{lead}{ours / theirs:.2g} times as much"
    far = abs(ours - theirs)
    ms = f"{far:,.0f}" if far >= 10 else f"{far:.1f}".removesuffix(".0")
    return f"{lead}{ms} ms {'more' if ours > theirs else 'less'} a search"


def _shown(value: float) -> str:
    """Format a difference as tables do, so that the verdict has the same numbers."""
    return f"{value:z.3f}"


def _rounded(number: int) -> int:
    """Round up to two digits."""
    step = int(10 ** max(0, len(str(number)) - 2))
    return ceil(number / step) * step


PLAN_DIFFERENCES = (0.02, 0.05, 0.10, 0.20)
PLAN_DEVIATIONS = (0.1, 0.2, 0.3)


def plan(comparison: Comparison | None = None) -> list[tuple[str, list[int]]]:
    """Return how many questions show each of `PLAN_DIFFERENCES` in four of five cases.

    Args:
        comparison: A comparison whose differences vary as those of the next one will; None for `PLAN_DEVIATIONS`.

    Returns:
        Label of a row, and its numbers of questions.

    Raises:
        EvaluationError: The comparison has no pair of techniques.
    """
    if comparison is None:
        return [
            (f"deviation {deviation}", [questions_needed(difference, deviation) for difference in PLAN_DIFFERENCES])
            for deviation in PLAN_DEVIATIONS
        ]
    if not comparison.main_pairs:
        raise EvaluationError(
            f"the comparison on {comparison.name!r} has no two different techniques, so their deviation is unknown; "
            "compare another one, or use `ragistry plan` without a report"
        )
    family = len(comparison.main_pairs)
    return [
        (f"{pair.a} against {pair.b}", [questions_for(pair, difference, family) for difference in PLAN_DIFFERENCES])
        for pair in comparison.main_pairs
    ]
