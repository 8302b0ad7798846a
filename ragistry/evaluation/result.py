"""The result of a comparison: figures with intervals, pairs with verdicts, and their provenance.

The terminal, Markdown, JSON and HTML reports show this one structure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ragistry.utils.wording import agreeing, numbered

ALPHA = 0.05
"""A difference is significant if its corrected p-value is below this."""
NAMES_SHOWN = 5
"""Number of names listed in one sentence; the rest is counted."""


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
class Failure:
    """A technique that raised: the query it was asked (empty if it could not be made) and the error on one line."""

    query: str
    error: str


@dataclass(frozen=True, slots=True)
class RelevantFound:
    """Where the relevant documents of all queries ended up.

    ``shown``: in the first ``cutoff``. ``low``: retrieved, but ranked below. ``never``: not among the ``depth``
    that were asked for. ``routed_away``: in a collection that the route left out. ``examples``: of the last three, some
    with ``query``, ``document`` and ``rank`` (None: not retrieved).
    """

    cutoff: int
    depth: int
    shown: int
    low: int
    never: int
    routed_away: int
    examples: dict[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class TechniqueResult:
    """One technique.

    ``measures``: measure → mean over the queries. ``latency_ms``: wall time. ``cpu_ms``: CPU time of the process.
    ``calls``, ``tokens``: of models, over all queries. ``returned_tokens``: mean tokens of the returned texts per
    query. ``stages``: mean milliseconds of each stage without the stages inside it. ``per_query``: measure → query →
    value. ``by_kind``: kind of query → measure → mean, with the number of queries under ``"queries"``. ``found``: what
    became of the relevant documents. ``judged``: share of the first ``found.cutoff`` results that have a judgement;
    None when the test set has positive judgements only. ``degraded``: message → number of queries. ``same_as``: an
    earlier technique whose rankings are the same on every query; this one then takes part in no pair.
    """

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
    degraded: dict[str, int]
    same_as: str | None


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
    def size(self) -> str:
        """``40 queries`` or ``40 queries in 4 groups``."""
        groups = "" if self.clusters == self.queries else f" in {numbered(self.clusters, '[group|groups]')}"
        return numbered(self.queries, "[query|queries]") + groups

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
        """About how many such queries would show a difference of this size; None if it cannot be estimated."""
        if self.significant or self.detectable is None or abs(self.difference) < 0.001:
            return None
        return max(self.queries + 1, round(self.queries * (self.detectable / self.difference) ** 2))

    def verdict(self) -> str:
        """The conclusion about the two, in one sentence."""
        p = p_text(self.p_holm)
        if self.better is not None:
            worse, sign = (self.b, 1) if self.better == self.a else (self.a, -1)
            low, high = sorted((sign * self.low, sign * self.high))
            lead = f"{abs(self.difference):.3f} ({low:.3f} to {high:.3f})"
            return f"{self.better} is better than {worse} in {self.measure} by {lead}, {p}, {self.size}"
        said = f"no difference shown between {self.a} and {self.b} in {self.measure} ({self.difference:+.3f}, {p})"
        if not self.testable:
            return f"{said}; it cannot be significant with {self.size}"
        said += f", {self.size}"
        if self.detectable is not None:
            said += (
                "; so few queries show no difference reliably"
                if self.detectable > 1  # larger than any possible difference
                else f"; smallest difference that they show reliably: {self.detectable:.3f}"
            )
        needed = self.queries_needed()
        return said if needed is None or needed >= 100_000 else f"{said}; about {needed:,} queries would show this one"


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
class Tuning:
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
        """The conclusion about the choice, in one sentence."""
        chosen_on = f"{len(self.variants)} on {numbered(self.queries_selected, '[query|queries]')}"
        if self.chosen == self.baseline:
            return f"{self.chosen} was the best of {chosen_on} in {self.measure}: no variant was chosen over it"
        said = "is better than" if self.p < ALPHA and self.gain_held_out > 0 else "is not shown to be better than"
        others = f"the other {self.queries_held_out:,}"
        return f"{self.chosen}, chosen among {chosen_on}, {said} {self.baseline} in {self.measure} on {others}"


@dataclass(frozen=True)
class Comparison:
    """Techniques over one frozen test set.

    ``measure``: the first one requested; it decides the verdicts. ``pairs``: of every measure; with a
    ``baseline`` each technique against it, else each against each. ``controls``: ``filename``, ``title_only``,
    ``random`` → measure → mean, of rankings that do not read the texts. ``control_pairs``: each technique against
    each control on the main measure, without a correction. ``cpu_pairs``: each technique against the fastest.
    ``diagnosis``: see `diagnosis.diagnose`. ``indexes``: chunking → cost of its index. ``problems``: of the test set.
    ``warnings``: reasons why the verdict may be wrong; every report shows them after the verdict. ``notes``: help to
    read the figures; shown below the tables. ``runs``: the rankings.
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
    diagnosis: list[dict[str, Any]] = field(default_factory=list)
    indexes: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    selection: Tuning | None = None
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
        others = len(distinct) + len(self.failures) - 1
        beaten = [pair.better for pair in self.main_pairs]
        return next((name for name in distinct if others and beaten.count(name) == others), None)

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
            return "Only one technique was given, so there is nothing to compare it with."
        if self.winner is not None:
            twins = [name for name, result in self.techniques.items() if result.same_as == self.winner]
            others = "the other technique" if len(self.techniques) - len(twins) == 2 else "every other technique"
            same = f"; {listed(twins)} {agreeing(len(twins), '[returns|return]')} the same rankings" if twins else ""
            return f"{self.winner} is significantly better than {others} in {self.measure}{same}."
        if not pairs[0].testable:
            least = f"{pairs[0].smallest_p:.3f} after Holm's correction over {numbered(len(pairs), '[pair|pairs]')}"
            return f"No difference can be significant with {pairs[0].size}. The smallest possible p-value is {least}."
        if self.baseline is not None:
            groups = {
                "significantly better": [pair.a for pair in pairs if pair.better == pair.a],
                "significantly worse": [pair.a for pair in pairs if pair.better == pair.b],
                "no difference shown": [pair.a for pair in pairs if pair.better is None],
            }
            said = "; ".join(f"{what}: {listed(names)}" for what, names in groups.items() if names)
            return f"Against {self.baseline} in {self.measure}, {said}."
        if len(pairs) == 1:
            return f"No difference is shown between {pairs[0].a} and {pairs[0].b} in {self.measure}, {pairs[0].size}."
        shown = sum(pair.significant for pair in pairs)
        significant = f"{shown} of {len(pairs)} differences {agreeing(shown, '[is|are]')} significant"
        return f"No technique is shown to be better than all others in {self.measure}: {significant}."

    def to_json(self) -> dict[str, Any]:
        """Everything except the rankings, as plain values."""
        said = {"winner": self.winner, "conclusion": self.conclusion(), "verdicts": self.verdicts}
        fields = asdict(replace(self, runs={}))
        del fields["runs"]
        return {"dataset": fields.pop("name"), **said, **fields}


def listed(names: Sequence[str], most: int = NAMES_SHOWN) -> str:
    """The names, or the first of them and how many more there are."""
    if len(names) <= most + 1:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def p_text(p: float) -> str:
    """``p = 0.034``, or ``p < 0.001``."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
