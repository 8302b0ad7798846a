"""The result of a comparison: figures with intervals, pairs with verdicts, and where all of it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ragistry.evaluation.dataset import Run
from ragistry.evaluation.diagnosis import PairDiagnosis, RelevantFound
from ragistry.evaluation.index_building import IndexCost
from ragistry.evaluation.notes import notes
from ragistry.evaluation.running import Failure


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over the queries, and the bootstrap interval that it lies in."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds a query: half of the queries took at most ``p50``, 95 % of them at most ``p95``."""

    p50: float
    p95: float
    mean: float


@dataclass(frozen=True, slots=True)
class Outside:
    """What a technique returned that is not in the corpus: how many documents, in how many ``of`` its results."""

    documents: int
    results: int
    of: int
    example: str


@dataclass(frozen=True, slots=True)
class TechniqueResult:
    """One technique. ``stages``: mean milliseconds of each stage without those inside it.

    ``calls`` and ``tokens``: of models, over all queries. ``per_query``: measure → query → value. ``found``: what
    became of the relevant documents. ``judged``: the share of what is shown, as far as ``found.cutoff``, that has a
    judgement. ``degraded``: what could not be done as asked → on how many queries. ``outside``: results that are not
    in the corpus, None where all are.
    """

    configuration: Mapping[str, Any]
    measures: dict[str, Estimate]
    latency_ms: Latency
    calls: int
    tokens: int
    stages: dict[str, float]
    per_query: dict[str, dict[str, float]]
    found: RelevantFound
    judged: float
    degraded: dict[str, int] = field(default_factory=dict)
    outside: Outside | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two techniques on one measure: ``difference`` is the mean of a minus that of b, in ``low`` to ``high``.

    ``p_holm``: corrected over the pairs of this measure. ``effect_size``: Cohen's d_z. ``detectable``: the smallest
    true difference that this many queries show after that correction in four of five cases. Both are None where the
    differences do not vary.
    """

    a: str
    b: str
    measure: str
    difference: float
    low: float
    high: float
    p: float
    p_holm: float
    wins: int
    ties: int
    losses: int
    significant: bool
    effect_size: float | None
    detectable: float | None

    @property
    def better(self) -> str | None:
        """The one that is significantly better, if either is."""
        if not self.significant:
            return None
        return self.a if self.difference > 0 else self.b

    def verdict(self) -> str:
        """What may be said of the two, in one sentence."""
        n = self.wins + self.ties + self.losses
        if self.better is None:
            return (
                f"no difference shown between {self.a} and {self.b} in {self.measure}, n = {n} "
                f"({self.difference:+.3f}, {_p(self.p_holm)}){_smallest(self.detectable)}"
            )
        worse, sign = (self.b, 1) if self.better == self.a else (self.a, -1)
        low, high = sorted((sign * self.low, sign * self.high))
        return (
            f"{self.better} is better than {worse} in {self.measure} by {abs(self.difference):.3f} "
            f"({low:.3f} to {high:.3f}), {_p(self.p_holm)}, n = {n}"
        )


@dataclass(frozen=True)
class Comparison:
    """Techniques over one frozen test set.

    ``measure``: the one that verdicts are about, the first that was asked for. ``pairs``: of every measure; with a
    ``baseline`` each technique against it, else each against each. ``indexes``: chunking → what its index took.
    ``runs``: the rankings.
    """

    name: str
    measure: str
    techniques: dict[str, TechniqueResult]
    pairs: list[Pair]
    provenance: dict[str, Any]
    baseline: str | None = None
    failures: dict[str, Failure] = field(default_factory=dict)
    diagnosis: list[PairDiagnosis] = field(default_factory=list)
    indexes: dict[str, IndexCost] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    runs: dict[str, Run] = field(default_factory=dict)

    @property
    def queries(self) -> int:
        """How many queries were measured."""
        return int(self.provenance["dataset"]["judged_queries"])

    @property
    def measures(self) -> list[str]:
        """The measures, in the order asked for."""
        return list(self.provenance["measures"])

    @property
    def verdicts(self) -> list[str]:
        """A sentence for each pair on the main measure."""
        return [pair.verdict() for pair in self.main_pairs]

    @property
    def main_pairs(self) -> list[Pair]:
        """The pairs on the main measure."""
        return [pair for pair in self.pairs if pair.measure == self.measure]

    @property
    def winner(self) -> str | None:
        """The technique that is significantly better than each of the others on the main measure, if there is one."""
        beaten: dict[str, int] = dict.fromkeys(self.techniques, 0)
        for pair in self.main_pairs:
            if pair.better is not None:
                beaten[pair.better] += 1
        others = len(self.techniques) + len(self.failures) - 1
        return next((name for name, count in beaten.items() if others and count == others), None)

    def to_json(self) -> dict[str, Any]:
        """Everything but the rankings, as plain values."""
        return {
            "dataset": self.name,
            "measure": self.measure,
            "baseline": self.baseline,
            "winner": self.winner,
            "verdicts": self.verdicts,
            "techniques": {name: asdict(result) for name, result in self.techniques.items()},
            "pairs": [asdict(pair) for pair in self.pairs],
            "failures": {name: asdict(failure) for name, failure in self.failures.items()},
            "indexes": {name: asdict(cost) for name, cost in self.indexes.items()},
            "problems": self.problems,
            "notes": notes(self),
            "diagnosis": [asdict(pair) for pair in self.diagnosis],
            "provenance": self.provenance,
        }


def _smallest(detectable: float | None) -> str:
    if detectable is None:
        return ""
    if detectable > 1:  # more than any measure can differ
        return "; so few queries could show none; ask more"
    return f"; smallest difference that this many queries could show: {detectable:.3f}"


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"
