"""The figures of a comparison: means, costs, pairs of techniques with verdicts, and what failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragistry.utils.wording import numbered

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
class TechniqueFailure:
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

    def verdict(self) -> str:
        """State the conclusion about the pair in one sentence."""
        p = p_text(self.p_holm)
        if self.better is not None:
            worse, sign = (self.b, 1) if self.better == self.a else (self.a, -1)
            low, high = sorted((sign * self.family_low, sign * self.family_high))
            lead = f"{abs(self.difference):.3f} ({low:.3f} to {high:.3f})"
            return f"{self.better} is better than {worse} in {self.measure} by {lead}, {p}, {self.size}"
        text = f"no difference shown between {self.a} and {self.b} in {self.measure} ({self.difference:+.3f}, {p})"
        return f"{text}, {self.size}" if self.testable else f"{text}; it cannot be significant with {self.size}"


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
        gain = f"{self.gain_held_out:+z.3f} ({self.low:+z.3f} to {self.high:+z.3f})"
        others = f"the other {self.queries_held_out:,}: {gain}"
        chosen = f"{self.chosen}, chosen among {chosen_on} ({self.gain_selected:+z.3f} there),"
        return f"{chosen} {result} {self.baseline} in {self.measure} on {others}"


@dataclass(frozen=True, slots=True)
class IndexCost:
    """The cost of building an index, and its size.

    Attributes:
        chunking: How documents were cut.
        documents: Number of documents.
        chunks: Number of chunks.
        cut: Number of chunks longer than the model's limit, of which only the beginning is embedded.
        from_library: Number of chunks whose vectors were taken from the library.
        as_in_library: Number of documents that are cut as in the library, with its headings.
        embed_seconds: Time in the model, also of vectors of earlier comparisons, but not of those from the library.
        embed_tokens: Tokens that the model read.
        write_seconds: Time to cut, write and index words.
        cpu_seconds: CPU time of this process for all of it.
        disk_bytes: Size of its files.
        embed_model: The embedder by its name in the comparison; empty for that of the workspace.
    """

    chunking: str
    documents: int
    chunks: int
    cut: int = 0
    from_library: int = 0
    as_in_library: int = 0
    embed_seconds: float = 0.0
    embed_tokens: int = 0
    write_seconds: float = 0.0
    cpu_seconds: float = 0.0
    disk_bytes: int = 0
    embed_model: str = ""

    @property
    def name(self) -> str:
        """Its name in tables: the chunking, and the embedder if several are compared."""
        return f"{self.chunking}, {self.embed_model}" if self.embed_model else self.chunking

    @property
    def seconds(self) -> float:
        """Time of all of it."""
        return self.embed_seconds + self.write_seconds


def names_text(names: Sequence[str], most: int = NAMES_SHOWN) -> str:
    """Join names by commas; of many only the first and the number of the others."""
    if len(names) <= most + 1:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def p_text(p: float) -> str:
    """Format a p-value: ``p = 0.034``, or ``p < 0.001``."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
