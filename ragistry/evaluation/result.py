"""The result of a comparison: figures with intervals, pairs with verdicts, and their provenance.

The terminal, Markdown, JSON and HTML reports show this one structure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ragistry.types import html_table
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

    Attributes:
        cutoff: Number of results that count as shown.
        depth: Number of documents that were asked for.
        shown: Documents in the first ``cutoff``.
        low: Documents that were retrieved, but ranked below.
        never: Documents that were not retrieved.
        routed_away: Documents in a collection that the route left out.
        examples: Some of the last three, each with ``query``, ``document`` and ``rank`` (None: not retrieved).
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

    Attributes:
        measures: Measure → mean over the queries.
        latency_ms: Wall time.
        cpu_ms: CPU time of the process.
        calls: Calls of models, over all queries.
        tokens: Tokens that models read, over all queries.
        returned_tokens: Mean tokens of the returned texts per query.
        stages: Mean milliseconds of each stage without the stages inside it.
        per_query: Measure → query → value.
        by_kind: Kind of query → measure → mean, with the number of queries under ``"queries"``.
        found: Where the relevant documents ended up.
        judged: Share of the first ``found.cutoff`` results that have a judgement; None if the test set has positive
            judgements only.
        degraded: Message → number of queries.
        timed: Whether its costs were measured; those of a run are unknown, and 0 here.
        same_as: An earlier technique with the same rankings on every query. This one then is in no pair.
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
    timed: bool = True


@dataclass(frozen=True, slots=True)
class Pair:
    """Two techniques on one measure.

    Attributes:
        a: The first technique.
        b: The second technique.
        measure: The measure.
        difference: Mean of a minus mean of b.
        low, high: 95 % interval; it excludes 0 exactly when ``p`` < 0.05.
        family_low, family_high: 95 % interval for all pairs of the measure together; it excludes 0 exactly when
            ``significant``.
        p: p-value of this pair alone.
        p_holm: p-value corrected over the pairs of the measure.
        wins, ties, losses: Number of queries on which a is better, equal, worse.
        significant: Whether ``p_holm`` is below 0.05.
        effect_size: Cohen's d_z; None if the differences do not vary.
        detectable: The smallest true difference that a test set like this one shows in four of five cases, after the
            correction; None if it cannot show any.
        smallest_p: The smallest corrected p-value that so many clusters can give.
        clusters: Number of independent groups of queries.
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
        """The number of queries."""
        return self.wins + self.ties + self.losses

    @property
    def size(self) -> str:
        """The number of queries as text: ``40 queries`` or ``40 queries in 4 groups``."""
        groups = "" if self.clusters == self.queries else f" in {numbered(self.clusters, '[group|groups]')}"
        return numbered(self.queries, "[query|queries]") + groups

    @property
    def better(self) -> str | None:
        """The technique that is significantly better; None without one."""
        if not self.significant:
            return None
        return self.a if self.difference > 0 else self.b

    @property
    def testable(self) -> bool:
        """Whether this many queries can show any difference at all."""
        return self.smallest_p < ALPHA

    def queries_needed(self) -> int | None:
        """Estimate how many such queries would show a difference of this size; None if that is impossible."""
        if self.significant or self.detectable is None or abs(self.difference) < 0.001:
            return None
        return max(self.queries + 1, round(self.queries * (self.detectable / self.difference) ** 2))

    def verdict(self) -> str:
        """State the conclusion about the pair in one sentence."""
        p = p_text(self.p_holm)
        if self.better is not None:
            worse, sign = (self.b, 1) if self.better == self.a else (self.a, -1)
            low, high = sorted((sign * self.low, sign * self.high))
            lead = f"{abs(self.difference):.3f} ({low:.3f} to {high:.3f})"
            return f"{self.better} is better than {worse} in {self.measure} by {lead}, {p}, {self.size}"
        text = f"no difference shown between {self.a} and {self.b} in {self.measure} ({self.difference:+.3f}, {p})"
        if not self.testable:
            return f"{text}; it cannot be significant with {self.size}"
        text += f", {self.size}"
        if self.detectable is not None:
            text += (
                "; so few queries cannot reliably show any difference"
                if self.detectable > 1  # Larger than any possible difference.
                else f"; so many queries reliably show differences from {self.detectable:.3f}"
            )
        needed = self.queries_needed()
        return text if needed is None or needed >= 100_000 else f"{text}; about {needed:,} queries would show this one"


@dataclass(frozen=True, slots=True)
class CpuPair:
    """CPU milliseconds per query: the mean of a minus that of b, the fastest.

    ``low`` and ``high`` are the 95 % interval over the same queries; None if there are too few queries.
    """

    a: str
    b: str
    difference: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Tuning:
    """The best of several variants, chosen on some queries and measured on the others.

    Attributes:
        fraction: Share of the queries on which it was chosen.
        chosen: The variant.
        baseline: The technique that it is compared with.
        measure: The measure.
        gain_selected: Gain over the baseline on the queries on which it was chosen.
        gain_held_out: Gain on the other queries.
        low, high: 95 % interval of ``gain_held_out``.
        p: p-value of ``gain_held_out``.
        queries_selected: Number of queries on which it was chosen.
        queries_held_out: Number of the other queries.
        variants: All variants.
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
        """State the conclusion about the choice in one sentence."""
        chosen_on = f"{len(self.variants)} on {numbered(self.queries_selected, '[query|queries]')}"
        if self.chosen == self.baseline:
            return f"{self.chosen}, the baseline, was the best of {chosen_on} in {self.measure}"
        result = "is better than" if self.p < ALPHA and self.gain_held_out > 0 else "is not shown to be better than"
        others = f"the other {self.queries_held_out:,}"
        return f"{self.chosen}, chosen among {chosen_on}, {result} {self.baseline} in {self.measure} on {others}"


@dataclass(frozen=True)
class Comparison:
    """Techniques over one frozen test set.

    Attributes:
        name: Name of the test set.
        measure: The main measure, the first one requested. It decides the verdicts.
        techniques: The techniques by name.
        pairs: Pairs on every measure; with a baseline each technique against it, else each against each.
        provenance: Everything needed to reproduce the figures.
        baseline: The technique that the others are tested against, if there is one.
        failures: Techniques that could not be compared.
        controls: ``filename``, ``title_only``, ``random`` → measure → mean, of rankings that do not read the texts.
        control_pairs: Each technique against each control on the main measure, without a correction.
        cpu_pairs: Each technique against the fastest.
        diagnosis: The queries with the largest differences, as `diagnosis.diagnose` returns them.
        indexes: Chunking → cost of its index.
        problems: Remarks about the test set.
        warnings: Reasons why the verdict may be wrong. Every report shows them after the verdict.
        notes: Help to read the figures. Reports show them below the tables.
        selection: The chosen variant, with ``tune_on``.
        runs: Technique → query → ranking.
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
        """The number of measured queries."""
        for result in self.techniques.values():
            return len(result.per_query[self.measure])
        return int(self.provenance["dataset"]["judged_queries"])

    @property
    def measures(self) -> list[str]:
        """The measures, in the requested order."""
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
        """The technique that is significantly better than every other on the main measure; None without one."""
        distinct = [name for name, result in self.techniques.items() if result.same_as is None]
        others = len(distinct) + len(self.failures) - 1
        beaten = [pair.better for pair in self.main_pairs]
        return next((name for name in distinct if others and beaten.count(name) == others), None)

    def conclusion(self) -> str:
        """State the result in one sentence: the winner, or what is better and worse than the baseline."""
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
            same = (
                f"; {names_text(twins)} {agreeing(len(twins), '[returns|return]')} the same rankings" if twins else ""
            )
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
            parts = "; ".join(f"{what}: {names_text(names)}" for what, names in groups.items() if names)
            return f"Against {self.baseline} in {self.measure}, {parts}."
        if len(pairs) == 1:
            return f"No difference is shown between {pairs[0].a} and {pairs[0].b} in {self.measure}, {pairs[0].size}."
        shown = sum(pair.significant for pair in pairs)
        significant = f"{shown} of {len(pairs)} differences {agreeing(shown, '[is|are]')} significant"
        return f"No technique is shown to be better than all others in {self.measure}: {significant}."

    @staticmethod
    def from_json(source: str | Path | Mapping[str, Any]) -> Comparison:
        """Read a comparison from a file of ``--json``, or from the result of `to_json`; it has no rankings.

        Raises:
            EvaluationError: It is missing, cut, no comparison, or one of another version.
        """
        from ragistry.evaluation.reading import read_comparison

        return read_comparison(source)

    def plot(self, measure: str | None = None, ax: Any = None) -> Any:
        """Plot the means with their intervals, or a sweep of one parameter as a curve; needs the extra ``plot``.

        Args:
            measure: The measure; None for the main one.
            ax: Axes of matplotlib to draw on; None for new ones.

        Returns:
            The axes.

        Raises:
            ConfigError: matplotlib is not installed.
            EvaluationError: The comparison has no such measure, or no technique.
        """
        from ragistry.evaluation.report.plot import plot

        return plot(self, measure, ax)

    def to_ranx(self, technique: str) -> dict[str, dict[str, float]]:
        """Return the rankings of a technique as ``ranx.Run`` takes them: query → document → score."""
        return {query: dict(ranking) for query, ranking in self.runs[technique].items()}

    def to_pyterrier(self, technique: str) -> dict[str, list[Any]]:
        """Return the rankings of a technique as columns for ``pandas.DataFrame``, with the names of PyTerrier.

        They are ``qid``, ``docno``, ``rank`` (from 0) and ``score``.
        """
        rows = [
            (query, document, rank, score)
            for query, ranking in self.runs[technique].items()
            for rank, (document, score) in enumerate(ranking)
        ]
        columns = ("qid", "docno", "rank", "score")
        return {name: [row[place] for row in rows] for place, name in enumerate(columns)}

    def __repr__(self) -> str:
        means = ", ".join(f"{name} {self.techniques[name].measures[self.measure].mean:.3f}" for name in self.by_quality)
        failed = f"; failed: {names_text(list(self.failures))}" if self.failures else ""
        return f"Comparison({self.name!r}, {self.measure}: {means or 'none'}{failed})"

    def _repr_html_(self) -> str:
        from ragistry.evaluation.report.content import overview

        lines = [self.conclusion(), *self.warnings]
        if not self.techniques:
            return html_table(lines, [], [])
        table = overview(self)
        return html_table([*lines, table.note], table.columns, [list(map(str, row)) for row in table.rows])

    def to_json(self) -> dict[str, Any]:
        """Return everything except the rankings as plain values."""
        summary = {"winner": self.winner, "conclusion": self.conclusion(), "verdicts": self.verdicts}
        fields = asdict(replace(self, runs={}))
        del fields["runs"]
        return {"dataset": fields.pop("name"), **summary, **fields}


def names_text(names: Sequence[str], most: int = NAMES_SHOWN) -> str:
    """Join names by commas; of many only the first and the number of the others."""
    if len(names) <= most + 1:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def p_text(p: float) -> str:
    """Format a p-value: ``p = 0.034``, or ``p < 0.001``."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
