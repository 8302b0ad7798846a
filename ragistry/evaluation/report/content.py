"""The content of every report: sentences and tables. Terminal, Markdown and HTML only lay them out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ragistry.evaluation.figures import Pair, p_text
from ragistry.evaluation.verdict import PLAN_DIFFERENCES, USUAL_DEVIATION, plan, smallest_margin
from ragistry.utils.wording import local_time, numbered

if TYPE_CHECKING:
    from ragistry.evaluation.result import Comparison

MINUS = "\N{MINUS SIGN}"
"""A minus sign as wide as a plus sign; a hyphen is narrower."""
PAIRS_EXPLAINED = 6
"""Number of pairs whose queries are explained; JSON has all."""
SHORT = 12
"""Maximum length of a baseline's name in a heading."""
STAGES_SHOWN = 3
TEXTS = {"measure", "over", "slowest stages", "query", "reason"}
"""Headings of columns with text; all others but the first have figures."""


ORIGINS = {"asking": "searches", "rankings": "checksums of rankings"}
"""Names of parts of the provenance that say more than their keys."""


class Interval(NamedTuple):
    """A cell with a value and its interval, which HTML also draws. ``form`` is the format of all three numbers."""

    value: float
    low: float
    high: float
    form: str = "+z.3f"

    def __str__(self) -> str:
        value, low, high = (format(one, self.form).replace("-", MINUS) for one in self[:3])
        return f"{value} [{low}, {high}]"


Row = list[str | Interval]


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table.

    Attributes:
        title: Title of the table.
        columns: The headings; the first column has names.
        rows: The cells.
        note: How to read the table.
        strong: Rows to emphasise.
        faint: Less important rows.
    """

    title: str
    columns: Sequence[str]
    rows: list[Row]
    note: str = ""
    strong: frozenset[int] = frozenset()
    faint: frozenset[int] = frozenset()

    @property
    def kinds(self) -> list[str]:
        """The kind of each column: ``name``, ``number`` or ``text``."""
        return ["name", *("text" if heading in TEXTS else "number" for heading in self.columns[1:])]


def failures(comparison: Comparison) -> list[str]:
    """Return a line for each technique that could not be compared."""
    return [
        f"{name} failed" + (f" on query {failure.query!r}" if failure.query else "") + f": {failure.error}"
        for name, failure in comparison.failures.items()
    ]


def about(comparison: Comparison) -> str:
    """Describe what was compared, when, and by which version."""
    dataset, version = comparison.provenance["dataset"], comparison.provenance["versions"]["ragistry"]
    return (
        f"{numbered(dataset['documents'], '[document|documents]')}, "
        f"{numbered(comparison.queries, 'judged [query|queries]')}, "
        f"{numbered(dataset['relevant'], 'relevant [pair|pairs]')} · made "
        f"{local_time(comparison.provenance['made'])} by Ragistry {version}"
    )


def origin(comparison: Comparison) -> dict[str, str]:
    """Return the provenance as text: everything needed to reproduce the figures."""
    shown = {}
    for name, value in comparison.provenance.items():
        if isinstance(value, dict) and name not in ("techniques", "evidence", "groups"):
            shown[ORIGINS.get(name, name)] = ", ".join(_parts(value))
    seed = comparison.provenance.get("seed")
    return shown if seed is None else shown | {"seed": str(seed)}


def _parts(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield each value with its name; those of a mapping inside with both names."""
    for key, value in values.items():
        name = key.replace("_", " ")
        if isinstance(value, dict):
            yield from (f"{name} {part}" for part in _parts(value))
        elif isinstance(value, bool):
            yield f"{name}: {'yes' if value else 'no'}"
        elif isinstance(value, list):
            yield from ([f"{name} {' '.join(map(str, value))}"] if value else [])
        elif value not in (None, ""):
            yield f"{name} {value}"


def tables(comparison: Comparison) -> dict[str, ReportTable]:
    """Return the tables that have rows, by name, in the order of the report."""
    if not comparison.techniques:
        return {}
    found = {
        "overview": overview(comparison),
        "models": embed_models(comparison),
        "quality": quality(comparison),
        "differences": differences(comparison),
        "cost": cost(comparison),
        "relevant": relevant(comparison),
        "indexes": indexes(comparison),
        "explained": explained(comparison),
    }
    return {name: table for name, table in found.items() if table.rows}


def overview(comparison: Comparison) -> ReportTable:
    """List the techniques, best first, against the baseline."""
    baseline, main = str(comparison.baseline), comparison.measure
    against: dict[str, Row] = {baseline: ["baseline", ""]}
    against |= {pair.a: [difference(pair), p_value(pair.p_holm, pair.significant)] for pair in comparison.main_pairs}
    rows: list[Row] = []
    for name in comparison.by_quality:
        result = comparison.techniques[name]
        lead = against.get(name, [f"as {result.same_as}", ""])
        rows.append(
            [name, f"{result.measures[main].mean:.3f}", *lead, f"{result.latency_ms.p50:.1f}" if result.timed else ""]
        )
    note = (
        f"Means over {numbered(comparison.queries, '[query|queries]')}, with 95 % intervals of the differences for "
        "all pairs together. * marks significance after Holm's correction; ms: median time of a search."
    )
    columns = ["technique", main, f"vs {baseline if len(baseline) <= SHORT else 'baseline'} [95 %]", "p (Holm)", "ms"]
    return ReportTable("Techniques", columns, rows, note, _chosen(comparison))


def embed_models(comparison: Comparison) -> ReportTable:
    """List the compared embedders: the best technique with each, and the cost of its index and of a search."""
    used = {name: of["embed_model"] for name, of in comparison.provenance["techniques"].items() if "embed_model" in of}
    compared = {name for pair in comparison.embedder_pairs for name in (pair.a, pair.b)} or used
    rows: list[Row] = []
    for model, identity in comparison.provenance.get("embedders", {}).items():
        best = next((name for name in comparison.by_quality if name in compared and used.get(name) == identity), None)
        if best is None:
            continue
        result = comparison.techniques[best]
        costs = [one for one in comparison.indexes.values() if one.embed_model == model]
        row: Row = [model, f"{result.measures[comparison.measure].mean:.3f}"]
        row += [f"{sum(getattr(one, key) for one in costs):,.1f}" for key in ("seconds", "cpu_seconds")]
        row += [f"{sum(one.disk_bytes for one in costs) / 1e6:,.1f}"]
        rows.append([*row, f"{result.latency_ms.p50:.1f}", f"{result.cpu_ms.p50:.1f}"])
    note = (
        f"{comparison.measure} and the search are those of one technique with each model. Index: time and "
        "CPU to embed and write it, also for vectors of earlier comparisons, but not for those of the library."
    )
    columns = ["embedding model", comparison.measure, "index s", "CPU s", "MB", "search ms", "CPU ms"]
    return ReportTable("Embedding models", columns, rows, note)


def plan_table(comparison: Comparison | None) -> ReportTable:
    """List how many questions show a difference, for usual deviations or for the pairs of a comparison."""
    rows: list[Row] = [[label, *(f"{count:,}" for count in counts)] for label, counts in plan(comparison)]
    note = (
        "Each number is enough in four of five cases, if there is such a difference. As many keep the baseline with a "
        "margin of that size, if there is no difference. The deviation is that of the differences between two "
        f"techniques on single questions; {USUAL_DEVIATION} is usual. Questions about one document count less."
    )
    columns = ["", *(f"{difference:.2f}" for difference in PLAN_DIFFERENCES)]
    return ReportTable("Questions that show a difference of", columns, rows, note)


def quality(comparison: Comparison) -> ReportTable:
    """List every measure with its interval, the main one for each kind of query, and what controls reach."""
    by_kind = {name: comparison.techniques[name].by_kind for name in comparison.by_quality}
    sizes = {kind: means["queries"] for of in by_kind.values() for kind, means in of.items()}
    if len(sizes) < 2:
        sizes = {}
    rows: list[Row] = []
    for name, of in by_kind.items():
        means = [comparison.techniques[name].measures[measure] for measure in comparison.measures]
        intervals = [Interval(one.mean, one.low, one.high, ".3f") for one in means]
        rows.append([name, *intervals, *(f"{of[kind][comparison.measure]:.3f}" for kind in sizes)])
    for name, values in comparison.controls.items():
        rows.append([name.removesuffix("_only"), *(f"{values[measure]:.3f}" for measure in comparison.measures)])
        rows[-1] += [""] * len(sizes)
    note = f"Mean over {numbered(comparison.queries, '[query|queries]')} [95 % interval]."
    if sizes:
        note += f" By kind of query: {comparison.measure}, whose differences are not tested."
    if comparison.controls:
        note += " Controls, the last rows, rank by file names, by titles and by chance, without reading the texts."
    faint = frozenset(range(len(by_kind), len(rows)))
    columns = ["technique", *comparison.measures, *(f"{kind} (n = {count:,.0f})" for kind, count in sizes.items())]
    return ReportTable("Quality", columns, rows, note, _chosen(comparison), faint)


def differences(comparison: Comparison) -> ReportTable:
    """List each pair on each measure, in the order of ``comparison.pairs``."""
    rows: list[Row] = []
    for pair in comparison.pairs:
        alone = f"[{signed(pair.low)}, {signed(pair.high)}]"
        counts = f"{pair.wins} / {pair.ties} / {pair.losses}"
        detectable = "" if pair.detectable is None else f"{pair.detectable:.3f}" if pair.detectable <= 1 else "> 1"
        tested = [p_value(pair.p_holm, pair.significant), counts, alone, p_value(pair.p), detectable]
        rows.append([pair.a, pair.measure, difference(pair), *tested])
    statistics = comparison.provenance["statistics"]
    note = (
        f"{statistics['test'].capitalize()}, with Holm's correction over {statistics['family']}; * marks significant "
        "differences. Difference: mean with the 95 % interval for all pairs of the measure together. Alone: the 95 % "
        "interval and p-value of the pair without a correction. Won / tied / lost: number of queries. Detectable: the "
        "smallest true difference that a test set like this one shows in four of five cases."
    )
    if statistics["groups"] < comparison.queries:
        note += f" Queries of one group are not independent: they count as {statistics['groups']:,} groups."
    if main := comparison.main_pairs:
        note += (
            f" The smallest margin that would have kept {comparison.baseline} is {smallest_margin(main):.3f} in "
            f"{comparison.measure}; it was {comparison.margin:g}."
        )
    tests = ["p (Holm)", "won / tied / lost", "alone", "p", "detectable"]
    columns = [f"against {comparison.baseline}", "measure", "difference", *tests]
    strong = frozenset(row for row, pair in enumerate(comparison.pairs) if pair.significant)
    return ReportTable("Differences", columns, rows, note, strong)


def cost(comparison: Comparison) -> ReportTable:
    """List CPU and wall time, model calls and tokens per query."""
    rows: list[Row] = []
    for name in comparison.by_quality:
        result = comparison.techniques[name]
        if not result.timed:
            continue
        cpu, clock = (f"{time.p50:.1f} / {time.p95:.1f}" for time in (result.cpu_ms, result.latency_ms))
        used = [f"{result.calls / comparison.queries:.1f}", f"{result.tokens / comparison.queries:,.0f}"]
        stages = sorted(result.stages.items(), key=lambda stage: -stage[1])[:STAGES_SHOWN]
        slowest = ", ".join(f"{stage} {ms:.1f}" for stage, ms in stages)
        rows.append([name, clock, cpu, *used, f"{result.returned_tokens:,.0f}", slowest])
    asking = comparison.provenance["asking"]
    note = (
        "Milliseconds of a search for the technique's own number of results, after "
        f"{asking['warm_up_queries']} warm-up queries; the ranking of {asking['depth']} documents is not timed. "
        "CPU: processor time of all threads. The vector of a query is computed once; its time is charged to each "
        "technique that asks for it. Tokens in: read by models. Tokens out: in the results. Slowest stages: mean "
        "milliseconds of each stage without the stages inside it."
    )
    columns = ["technique", "ms p50 / p95", "CPU ms p50 / p95", "model calls", "tokens in", "tokens out"]
    columns.append("slowest stages")
    return ReportTable("Cost of a query", columns, rows, note)


def relevant(comparison: Comparison) -> ReportTable:
    """Count where the relevant documents ended up."""
    rows: list[Row] = []
    columns, note = [""], ""
    for name in comparison.by_quality:
        result = comparison.techniques[name]
        found = result.found
        counts = (found.shown, found.low, found.never, found.routed_away)
        row: Row = [name, *(f"{count:,} ({count / max(1, sum(counts)):.0%})" for count in counts)]
        columns = ["technique", f"rank 1 to {found.cutoff}", f"rank {found.cutoff + 1} to {found.depth}"]
        columns += ["not retrieved", "collection not searched"]
        if result.judged is not None:
            row.append(f"{result.judged:.0%}")
            columns.append(f"judged in the first {found.cutoff}")
            note = "Judged: the share of these results with a judgement; relevant documents may be among the others."
        rows.append(row)
    return ReportTable("Ranks of the relevant documents", columns, rows, note)


def indexes(comparison: Comparison) -> ReportTable:
    """List the cost of each index."""
    rows: list[Row] = []
    for one in comparison.indexes.values():
        counts = [f"{number:,}" for number in (one.documents, one.chunks, one.cut)]
        took = [f"{one.embed_seconds:,.0f}", f"{one.write_seconds:,.1f}", f"{one.cpu_seconds:,.1f}"]
        took.append(f"{one.disk_bytes / 1e6:,.1f}")
        rows.append([one.name, *counts, *took])
    memory, embedder = comparison.provenance["machine"]["peak_memory_bytes"], comparison.provenance["embedder"]
    note = f"Peak memory of this process: {memory / 1e6:,.0f} MB. " if memory else ""
    if embedder:
        named = comparison.provenance.get("embedders") or {"": embedder}
        limits = " or ".join(dict.fromkeys(str(one["max_tokens"]) for one in named.values()))
        note += f"Truncated: chunks longer than {limits} tokens, of which only the beginning is embedded."
    if own := sum(one.as_in_library for one in comparison.indexes.values()):
        note += f" {numbered(own, 'document[|s] [is|are] cut as in the library, with [its|their] headings')}."
    if taken := sum(one.from_library for one in comparison.indexes.values()):
        note += f" {numbered(taken, '[vector was|vectors were]')} taken from the library, at no cost."
    columns = ["chunking", "documents", "chunks", "truncated", "embedding s", "writing s", "CPU s", "MB on disk"]
    return ReportTable("Index", columns, rows, note)


def explained(comparison: Comparison) -> ReportTable:
    """List the queries with the largest differences between pairs, and the reasons."""
    rows: list[Row] = [
        [f"{pair['a']} {MINUS} {pair['b']}", query["text"], signed(query["difference"]), query["why"]]
        for pair in comparison.diagnosis[:PAIRS_EXPLAINED]
        for query in pair["queries"]
    ]
    return ReportTable("Queries with the largest differences", ["pair", "query", "difference", "reason"], rows)


def difference(pair: Pair) -> Interval:
    """Return the difference and its interval for all pairs."""
    return Interval(pair.difference, pair.family_low, pair.family_high)


def signed(value: float) -> str:
    """Format a number: ``+0.030``, with a minus as wide as the plus."""
    return f"{value:+z.3f}".replace("-", MINUS)


def p_value(value: float, significant: bool | None = None) -> str:
    """Format a p-value: three digits, or ``< 0.001``; followed by a star if significant, else by spaces."""
    star = "" if significant is None else " *" if significant else "  "
    return p_text(value).removeprefix("p ").removeprefix("= ") + star


def _chosen(comparison: Comparison) -> frozenset[int]:
    """Return the row of the technique to use or to keep."""
    technique = comparison.verdict.technique
    return frozenset(row for row, name in enumerate(comparison.by_quality) if name == technique)
