"""The result of a comparison: figures with intervals, pairs with verdicts, and where all of it comes from.

Every report (terminal, Markdown, JSON, HTML) shows these values and these sentences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ragistry.evaluation.caveats import caveats
from ragistry.utils.wording import agreeing, numbered

if TYPE_CHECKING:
    from ragistry.evaluation.diagnosis import PairDiagnosis, RelevantFound

ALPHA = 0.05
"""A difference is significant when its corrected p-value is below."""
NAMES_SHOWN = 5
"""Names listed in one sentence; of more, the rest is counted."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over the queries and its 95 % confidence interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds per query: median, 95th percentile, mean."""

    p50: float
    p95: float
    mean: float


@dataclass(frozen=True, slots=True)
class Outside:
    """Results that are not in the corpus: distinct documents, and how many ``of`` all results."""

    documents: int
    results: int
    of: int
    example: str


@dataclass(frozen=True, slots=True)
class Failure:
    """A technique that raised: the query it was asked (empty if it could not be made) and the error on one line."""

    query: str
    error: str


@dataclass(frozen=True, slots=True)
class TechniqueResult:
    """One technique.

    ``measures``: measure → mean over the queries. ``latency_ms``: wall time. ``cpu_ms``: CPU time of the process.
    ``calls``, ``tokens``: of models, over all queries. ``returned_tokens``: mean tokens of the returned texts per
    query. ``stages``: mean milliseconds of each stage without the stages inside it. ``per_query``: measure → query →
    value. ``by_kind``: kind of query → measure → mean, with the number of queries under ``"queries"``. ``found``: what
    became of the relevant documents. ``judged``: share of the first ``found.cutoff`` results that have a judgement;
    None when the test set has positive judgements only. ``degraded``: message → number of queries. ``outside``:
    results that are not in the corpus; None when there are none. ``same_as``: an earlier technique whose rankings are
    the same on every query; this one then takes part in no pair.
    """

    configuration: Mapping[str, Any]
    measures: dict[str, Estimate]
    latency_ms: Latency
    cpu_ms: Latency
    calls: int
    tokens: int
    returned_tokens: float
    stages: dict[str, float]
    per_query: dict[str, dict[str, float]]
    by_kind: dict[str, dict[str, float]]
    found: RelevantFound
    judged: float | None
    degraded: dict[str, int] = field(default_factory=dict)
    outside: Outside | None = None
    same_as: str | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two techniques on one measure; ``difference`` is the mean of a minus the mean of b.

    ``low``, ``high``: 95 % interval; it excludes 0 exactly when ``p`` < 0.05. ``family_low``, ``family_high``: 95 %
    for all pairs of the measure together; it excludes 0 exactly when ``significant``. ``p_holm``: corrected over the
    pairs of the measure. ``effect_size``: Cohen's d_z; None when the differences do not vary. ``detectable``: the
    smallest true difference that a test set like this one shows in four of five cases, after the correction; None
    when it can show none. ``smallest_p``: the smallest corrected p-value that this many clusters can give.
    ``clusters``: independent groups of queries.
    """

    a: str
    b: str
    measure: str
    difference: float
    low: float
    high: float
    family_low: float
    family_high: float
    p: float
    p_holm: float
    wins: int
    ties: int
    losses: int
    significant: bool
    effect_size: float | None
    detectable: float | None
    smallest_p: float
    clusters: int

    @property
    def queries(self) -> int:
        return self.wins + self.ties + self.losses

    @property
    def better(self) -> str | None:
        """The technique that is significantly better, if there is one."""
        if not self.significant:
            return None
        return self.a if self.difference > 0 else self.b

    @property
    def testable(self) -> bool:
        """Whether this many queries can show any difference at all."""
        return self.smallest_p < ALPHA

    def queries_needed(self) -> int | None:
        """About how many queries like these would show a difference of this size; None when it cannot be told."""
        if self.significant or self.detectable is None or abs(self.difference) < 0.001:
            return None
        return max(self.queries + 1, round(self.queries * (self.detectable / self.difference) ** 2))

    def verdict(self) -> str:
        """What may be said of the two, in one sentence."""
        if self.better is None:
            return (
                f"no difference shown between {self.a} and {self.b} in {self.measure}, {self._count()} "
                f"({self.difference:+.3f}, {_p(self.p_holm)}){self._reach()}"
            )
        worse, sign = (self.b, 1) if self.better == self.a else (self.a, -1)
        low, high = sorted((sign * self.low, sign * self.high))
        return (
            f"{self.better} is better than {worse} in {self.measure} by {abs(self.difference):.3f} "
            f"({low:.3f} to {high:.3f}), {_p(self.p_holm)}, {self._count()}"
        )

    def _count(self) -> str:
        groups = "" if self.clusters == self.queries else f" in {numbered(self.clusters, '[group|groups]')}"
        return f"n = {self.queries}{groups}"

    def _reach(self) -> str:
        """What this many queries could have shown."""
        if not self.testable:
            if self.clusters == self.queries:
                return f"; it cannot be significant with {numbered(self.queries, '[query|queries]')}"
            return f"; it cannot be significant with {numbered(self.clusters, '[group|groups]')} of queries"
        if self.detectable is None:
            return ""
        needed = self.queries_needed()
        more = f"; about {needed:,} queries would show this one" if needed is not None and needed < 100_000 else ""
        if self.detectable > 1:  # more than any measure can differ
            return f"; so few queries show no difference reliably{more}"
        return f"; smallest difference that this many queries show reliably: {self.detectable:.3f}{more}"


@dataclass(frozen=True, slots=True)
class CpuPair:
    """CPU milliseconds per query: the mean of a minus that of b, the fastest.

    ``low``, ``high``: 95 % interval over the same queries; None when there are too few queries for one.
    """

    a: str
    b: str
    difference: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Selection:
    """The best of several ``variants``, chosen on a ``fraction`` of the queries and measured on the others.

    ``gain_selected``: over ``baseline`` on the queries it was chosen on; ``gain_held_out``: on the others, with the
    95 % interval ``low`` to ``high`` and the p-value ``p``.
    """

    fraction: float
    chosen: str
    baseline: str
    measure: str
    gain_selected: float
    gain_held_out: float
    low: float
    high: float
    p: float
    queries_selected: int
    queries_held_out: int
    variants: list[str]

    def verdict(self) -> str:
        """One sentence with both gains."""
        chosen_on = f"{len(self.variants)} on {numbered(self.queries_selected, '[query|queries]')}"
        if self.chosen == self.baseline:
            return f"{self.chosen} was the best of {chosen_on} in {self.measure}: no variant was chosen over it"
        said = "is better than" if self.p < ALPHA and self.gain_held_out > 0 else "is not shown to be better than"
        return (
            f"{self.chosen}, chosen among {chosen_on}, {said} {self.baseline} in {self.measure} on the other "
            f"{self.queries_held_out:,}: {self.gain_held_out:+.3f} ({self.low:+.3f} to {self.high:+.3f}), "
            f"{_p(self.p)}; {self.gain_selected:+.3f} where it was chosen"
        )


@dataclass(frozen=True)
class Comparison:
    """Techniques over one frozen test set.

    ``measure``: the one that verdicts are about, the first that was asked for. ``pairs``: of every measure; with a
    ``baseline`` each technique against it, else each against each. ``controls``: ``filename``, ``title_only``,
    ``random`` → measure → mean, of rankings that no honest technique gives. ``control_pairs``: the winner, or the best,
    against each control. ``cpu_pairs``: each technique against the fastest. ``indexes``: chunking → cost of its index.
    ``problems``: of the test set. ``warnings``: sentences that every report shows right after the verdict. ``runs``:
    the rankings.
    """

    name: str
    measure: str
    techniques: dict[str, TechniqueResult]
    pairs: list[Pair]
    provenance: dict[str, Any]
    baseline: str | None = None
    failures: dict[str, Failure] = field(default_factory=dict)
    controls: dict[str, dict[str, float]] = field(default_factory=dict)
    control_pairs: list[Pair] = field(default_factory=list)
    cpu_pairs: list[CpuPair] = field(default_factory=list)
    diagnosis: list[PairDiagnosis] = field(default_factory=list)
    indexes: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    selection: Selection | None = None
    runs: dict[str, dict[str, list[tuple[str, float]]]] = field(default_factory=dict)

    @property
    def queries(self) -> int:
        """How many queries were measured."""
        for result in self.techniques.values():
            return len(result.per_query[self.measure])
        return int(self.provenance["dataset"]["judged_queries"])

    @property
    def measures(self) -> list[str]:
        """The measures, in the order asked for."""
        return list(self.provenance["measures"])

    @property
    def by_quality(self) -> list[str]:
        """The techniques, best mean of the main measure first."""
        return sorted(self.techniques, key=lambda name: -self.techniques[name].measures[self.measure].mean)

    @property
    def main_pairs(self) -> list[Pair]:
        """The pairs on the main measure."""
        return [pair for pair in self.pairs if pair.measure == self.measure]

    @property
    def verdicts(self) -> list[str]:
        """A sentence for each pair on the main measure."""
        return [pair.verdict() for pair in self.main_pairs]

    @property
    def winner(self) -> str | None:
        """The technique that is significantly better than every other on the main measure, if there is one."""
        distinct = [name for name, result in self.techniques.items() if result.same_as is None]
        beaten = dict.fromkeys(distinct, 0)
        for pair in self.main_pairs:
            if pair.better is not None:
                beaten[pair.better] += 1
        others = len(distinct) + len(self.failures) - 1
        return next((name for name, count in beaten.items() if others and count == others), None)

    def conclusion(self) -> str:
        """One sentence: the winner, or that there is none; with a baseline, what is better and worse than it."""
        if not self.techniques:
            return "Every technique failed: nothing could be compared."
        if self.baseline in self.failures:
            return f"The baseline {self.baseline} failed, so nothing can be tested against it."
        pairs = self.main_pairs
        if not pairs:
            if len(self.techniques) > 1:
                return "All techniques return the same rankings on every query."
            return "There is no second technique to compare with."
        if self.winner is not None:
            twins = [name for name, result in self.techniques.items() if result.same_as == self.winner]
            others = "the other technique" if len(self.techniques) - len(twins) == 2 else "every other technique"
            same = f"; {listed(twins)} {agreeing(len(twins), '[returns|return]')} the same rankings" if twins else ""
            return f"{self.winner} is significantly better than {others} in {self.measure}{same}."
        if not any(pair.testable for pair in pairs):
            return f"No difference can be significant with {self._size(pairs[0])}."
        if self.baseline is not None:
            return self._against_baseline()
        if len(pairs) == 1:
            [pair] = pairs
            return f"No difference is shown between {pair.a} and {pair.b} in {pair.measure}, n = {self.queries}."
        shown = sum(pair.significant for pair in pairs)
        return (
            f"No technique is shown to be better than all others in {self.measure}: {shown} of {len(pairs)} "
            f"differences {agreeing(shown, '[is|are]')} significant."
        )

    def _size(self, pair: Pair) -> str:
        if pair.clusters == pair.queries:
            return numbered(pair.queries, "[query|queries]")
        groups = numbered(pair.clusters, "[group|groups]")
        return f"{numbered(pair.queries, '[query|queries]')} in {groups}"

    def _against_baseline(self) -> str:
        groups = {
            "significantly better": [pair.a for pair in self.main_pairs if pair.better == pair.a],
            "significantly worse": [pair.a for pair in self.main_pairs if pair.better == pair.b],
            "no difference shown": [pair.a for pair in self.main_pairs if pair.better is None],
        }
        said = "; ".join(f"{what}: {listed(names)}" for what, names in groups.items() if names)
        return f"Against {self.baseline} in {self.measure}, {said}."

    def to_json(self) -> dict[str, Any]:
        """Everything but the rankings, as plain values."""
        return {
            "dataset": self.name,
            "measure": self.measure,
            "baseline": self.baseline,
            "winner": self.winner,
            "conclusion": self.conclusion(),
            "verdicts": self.verdicts,
            "warnings": [*self.warnings, *caveats(self)],
            "selection": None if self.selection is None else asdict(self.selection),
            "techniques": {name: asdict(result) for name, result in self.techniques.items()},
            "pairs": [asdict(pair) for pair in self.pairs],
            "controls": self.controls,
            "control_pairs": [asdict(pair) for pair in self.control_pairs],
            "cpu_pairs": [asdict(pair) for pair in self.cpu_pairs],
            "failures": {name: asdict(failure) for name, failure in self.failures.items()},
            "indexes": {name: asdict(cost) for name, cost in self.indexes.items()},
            "problems": self.problems,
            "diagnosis": [asdict(pair) for pair in self.diagnosis],
            "provenance": self.provenance,
        }


def listed(names: list[str]) -> str:
    """The names, or the first of them and how many more there are."""
    if len(names) <= NAMES_SHOWN + 1:
        return ", ".join(names)
    return f"{', '.join(names[:NAMES_SHOWN])} and {len(names) - NAMES_SHOWN} more"


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"
