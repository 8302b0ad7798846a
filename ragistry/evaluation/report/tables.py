"""The tables of a report as rows of text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from ragistry.evaluation.report.scales import MINUS
from ragistry.evaluation.result import ALPHA, Comparison, Estimate, Pair
from ragistry.utils.wording import numbered

Kind = Literal["name", "number", "text"]
Column = tuple[str, Kind]
"""Heading, and what the cells hold."""
STAGES_SHOWN = 3
SHORT = 16
PAIRS_EXPLAINED = 6
"""Pairs whose queries are explained; JSON has all."""
CONTROLS = {
    "filename": "control: filename",
    "title_only": "control: title",
    "random": "control: random",
}
"""Rankings that do not read the text; a technique must beat them."""


@dataclass(frozen=True, slots=True)
class Table:
    """``rows`` with a cell for each of ``columns``.

    ``strong``: rows to emphasise. ``faint``: rows of less weight. ``note``: how to read it. ``key``: its name for
    programs.
    """

    key: str
    title: str
    columns: list[Column]
    rows: list[list[str]]
    note: str = ""
    strong: frozenset[int] = field(default_factory=frozenset)
    faint: frozenset[int] = field(default_factory=frozenset)


def overview(comparison: Comparison) -> Table:
    """Each technique, best first, against the baseline or the best one; then the controls."""
    names = comparison.by_quality
    reference = comparison.baseline if comparison.baseline in names else next(iter(names), None)
    others = [measure for measure in comparison.measures if measure != comparison.measure]
    lead = f"vs {'baseline' if comparison.baseline else 'best'} [95 %]"
    headings = (comparison.measure, lead, "p (Holm)", "CPU ms", *others, "p50 ms", "tokens out")
    rows = []
    for name in names:
        result = comparison.techniques[name]
        means = [_mean(result.measures[measure].mean) for measure in others]
        quality = [_mean(result.measures[comparison.measure].mean), *_against(comparison, name, str(reference))]
        used = [f"{result.latency_ms.p50:.1f}", f"{result.returned_tokens:,.0f}"]
        rows.append([name, *quality, f"{result.cpu_ms.p50:.1f}", *means, *used])
    for control, means_of in comparison.controls.items() if names else ():
        quality = [_mean(means_of.get(comparison.measure)), *_control_against(comparison, control, str(reference))]
        means = [_mean(means_of.get(measure)) for measure in others]
        rows.append([CONTROLS.get(control, f"control: {control}"), *quality, "", *means, "", ""])
    strong = frozenset(row for row, name in enumerate(names) if name == comparison.winner)
    note = (
        f"Means over {numbered(comparison.queries, '[query|queries]')}; * significant after Holm's correction. CPU: "
        "median per query; p50: the same by the clock. Tokens out: mean tokens of the texts returned."
    )
    if comparison.controls:
        note += " Controls rank without reading the text; their p is not corrected."
    faint = frozenset(range(len(names), len(rows)))
    return Table("overview", "Techniques", _columns("technique", headings), rows, note, strong, faint)


def _against(comparison: Comparison, name: str, reference: str) -> tuple[str, str]:
    """The difference to the reference and its p-value."""
    if name == reference:
        return ("baseline" if comparison.baseline else "best", "")
    if (twin := comparison.techniques[name].same_as) is not None:  # a warning has the long names
        return (f"same as {'best' if twin == reference else twin if len(twin) <= SHORT else 'another'}", "")
    for pair in comparison.main_pairs:
        if {pair.a, pair.b} == {name, reference}:
            return difference(pair, -1 if pair.a == reference else 1), p_value(pair.p_holm, pair.significant)
    return ("", "")


def _control_against(comparison: Comparison, control: str, reference: str) -> tuple[str, str]:
    pair = _control_pairs(comparison).get(control)
    if pair is None or pair.a != reference:
        return ("", "")
    return difference(pair, -1), p_value(pair.p, pair.p < ALPHA)


def _control_pairs(comparison: Comparison) -> dict[str, Pair]:
    """Control → the best technique against it, whose name is there as ``random (control)``."""
    pairs = [pair for pair in comparison.control_pairs if pair.measure == comparison.measure]
    return {pair.b.removesuffix(" (control)"): pair for pair in pairs}


def quality(comparison: Comparison) -> Table:
    """Every measure with its interval."""
    names = comparison.by_quality
    rows = [[name, *(interval(comparison.techniques[name].measures[m]) for m in comparison.measures)] for name in names]
    strong = frozenset(row for row, name in enumerate(names) if name == comparison.winner)
    note = f"Mean over {numbered(comparison.queries, '[query|queries]')} [95 % interval]."
    return Table("quality", "Quality", _columns("technique", comparison.measures), rows, note, strong)


def differences(comparison: Comparison) -> Table:
    """Each pair on each measure."""
    rows = [[pair_name(comparison, pair), *_difference(pair)] for pair in comparison.pairs]
    strong = frozenset(row for row, pair in enumerate(comparison.pairs) if pair.significant)
    headings = ("difference", "all pairs", "p", "p (Holm)", "w / t / l", "d", "detectable")
    pair, *figures = _columns(f"against {comparison.baseline}" if comparison.baseline else "pair", headings)
    statistics = comparison.provenance["statistics"]
    clusters = {pair.clusters for pair in comparison.pairs if pair.clusters != pair.queries}
    note = (
        f"{statistics['test'].capitalize()}; Holm's correction over {statistics['family']}. Difference: mean "
        "[95 % interval]; all pairs: 95 % for all pairs of the measure together; * significant. w / t / l: queries "
        "won, tied, lost. d: Cohen's d_z. Detectable: the smallest true difference that a test set like this shows in "
        "four of five cases."
    )
    if clusters:
        note += f" Queries of one group are not independent: they count as {max(clusters):,} groups."
    return Table("differences", "Differences", [pair, ("measure", "text"), *figures], rows, note, strong)


def _difference(pair: Pair) -> list[str]:
    detectable = "" if pair.detectable is None else f"{pair.detectable:.3f}" if pair.detectable <= 1 else "> 1"
    return [
        pair.measure,
        difference(pair),
        f"[{signed(pair.family_low)}, {signed(pair.family_high)}]",
        p_value(pair.p),
        p_value(pair.p_holm, pair.significant),
        f"{pair.wins} / {pair.ties} / {pair.losses}",
        "" if pair.effect_size is None else signed(pair.effect_size, 2),
        detectable,
    ]


def kinds(comparison: Comparison) -> Table:
    """The main measure for each kind of query, if there are several."""
    sizes: dict[str, int] = {}
    for result in comparison.techniques.values():
        sizes.update({kind: int(means["queries"]) for kind, means in result.by_kind.items()})
    rows = [
        [name, *(_mean(comparison.techniques[name].by_kind.get(kind, {}).get(comparison.measure)) for kind in sizes)]
        for name in comparison.by_quality
        if len(sizes) > 1
    ]
    columns = _columns("technique", (f"{kind} (n = {count:,})" for kind, count in sizes.items()))
    note = f"Mean {comparison.measure} over the queries of each kind; not tested."
    return Table("kinds", "By kind of query", columns, rows, note)


def controls(comparison: Comparison) -> Table:
    """The controls on every measure, and how far the best technique is above them."""
    pairs = _control_pairs(comparison)
    rows = []
    for name, means in comparison.controls.items() if comparison.techniques else ():
        pair = pairs.get(name)
        tested = ["", "", ""]
        if pair is not None:
            verdict = "beaten" if pair.p < ALPHA and pair.difference > 0 else "not beaten"
            tested = [difference(pair), p_value(pair.p), verdict]
        rows.append(
            [CONTROLS.get(name, name), *(_mean(means.get(measure)) for measure in comparison.measures), *tested]
        )
    best = next((pair.a for pair in comparison.control_pairs), "best technique")
    columns = _columns("control", (*comparison.measures, f"lead of {best}", "p"), "verdict")
    note = (
        "Rankings by words of the file name, by words of the title, and in random order. Lead: in "
        f"{comparison.measure}. A technique that does not beat a control has shown nothing. A good control means that "
        "the test set can be answered without reading the text."
    )
    return Table("controls", "Controls", columns, rows, note)


def selection(comparison: Comparison) -> Table:
    """The chosen variant: its gain where it was chosen beside its gain on the other queries."""
    chosen = comparison.selection
    columns = [*_columns("chosen", ("gain where chosen", "gain on the others", "p")), *_columns("over")]
    if chosen is None:
        return Table("selection", "Selection", columns, [])
    held_out = f"{signed(chosen.gain_held_out)} [{signed(chosen.low)}, {signed(chosen.high)}]"
    row = [chosen.chosen, signed(chosen.gain_selected), held_out, p_value(chosen.p), chosen.baseline]
    note = (
        f"Best of {numbered(len(chosen.variants), '[variant|variants]')} in {chosen.measure} on "
        f"{numbered(chosen.queries_selected, '[query|queries]')}, measured on the other {chosen.queries_held_out:,}. "
        "Only the gain on the others is free of the choice."
    )
    return Table("selection", "Selection", columns, [row], note)


def cost(comparison: Comparison) -> Table:
    """CPU and wall time, model calls and tokens per query."""
    slower = {pair.a: pair for pair in comparison.cpu_pairs}
    rows = []
    for name in comparison.by_quality:
        result, pair = comparison.techniques[name], slower.get(name)
        more = "fastest" if comparison.cpu_pairs and pair is None else ""
        if pair is not None:
            spread = (
                "" if pair.low is None or pair.high is None else f" [{signed(pair.low, 1)}, {signed(pair.high, 1)}]"
            )
            more = signed(pair.difference, 1) + spread
        cpu, clock = (f"{time.p50:.1f} / {time.p95:.1f}" for time in (result.cpu_ms, result.latency_ms))
        used = [f"{result.calls / comparison.queries:.1f}", f"{result.tokens / comparison.queries:,.0f}"]
        stages = sorted(result.stages.items(), key=lambda stage: -stage[1])[:STAGES_SHOWN]
        slowest = ", ".join(f"{stage} {ms:.1f}" for stage, ms in stages)
        rows.append([name, cpu, more, clock, *used, f"{result.returned_tokens:,.0f}", slowest])
    headings = ("CPU p50 / p95", "CPU vs fastest", "clock p50 / p95", "model calls", "tokens in", "tokens out")
    columns = _columns("technique", headings, "slowest stages")
    asking = comparison.provenance["asking"]
    note = (
        f"Milliseconds per query for {asking['depth']} documents, after {asking['warm_up_queries']} warm-up queries. "
        "CPU: processor time of all threads; mean difference to the fastest [95 % interval]. The vector of a "
        "query is computed once; its time is charged to each technique that asks for it. Tokens in: read by models; "
        "tokens out: of the texts returned. Stages: mean milliseconds without the stages inside."
    )
    return Table("cost", "Cost of a query", columns, rows, note)


def relevant(comparison: Comparison) -> Table:
    """What became of the relevant documents."""
    rows = []
    cutoff = depth = 0
    judged = any(result.judged is not None for result in comparison.techniques.values())
    for name in comparison.by_quality:
        result = comparison.techniques[name]
        found = result.found
        cutoff, depth = found.cutoff, found.depth
        counts = (found.shown, found.low, found.never, found.routed_away)
        shares = [f"{count:,} ({count / max(1, sum(counts)):.0%})" for count in counts]
        rows.append([name, *shares, *([f"{result.judged:.0%}" if result.judged is not None else ""] if judged else [])])
    headings = [f"in the first {cutoff}", f"ranked {cutoff + 1} to {depth}", "not retrieved", "routed away"]
    headings += [f"judged of the first {cutoff}"] if judged else []
    note = (
        "Judged: the share of these results that has a judgement; relevant documents may be among the others."
        if judged
        else "The test set has positive judgements only, so how many results are judged cannot be told."
    )
    return Table("relevant", "What became of the relevant documents", _columns("technique", headings), rows, note)


def indexes(comparison: Comparison) -> Table:
    """What each index took."""
    rows = [
        [
            cost.chunking, f"{cost.documents:,}", f"{cost.chunks:,}", f"{cost.cut:,}", f"{cost.embed_seconds:,.0f}",
            f"{cost.write_seconds:,.1f}", f"{cost.disk_bytes / 1e6:,.1f}",
        ]
        for cost in comparison.indexes.values()
    ]  # fmt: skip
    memory = comparison.provenance["machine"]["peak_memory_bytes"]
    limit = (comparison.provenance["embedder"] or {}).get("max_tokens")
    note = f"Peak memory of this process: {memory / 1e6:,.0f} MB. " if memory else ""
    if limit:
        note += f"Truncated: chunks longer than {limit} tokens; the embedder sees only their beginning."
    headings = ("documents", "chunks", "truncated", "embedding s", "writing s", "MB on disk")
    return Table("indexes", "Index", _columns("chunking", headings), rows, note)


def explained(comparison: Comparison) -> Table:
    """The queries on which pairs differ most, and why."""
    rows = [
        [f"{pair.a} {MINUS} {pair.b}", query.text, signed(query.difference), query.why]
        for pair in comparison.diagnosis[:PAIRS_EXPLAINED]
        for query in pair.queries
    ]
    columns: list[Column] = [("pair", "name"), ("query", "text"), ("difference", "number"), ("why", "text")]
    return Table("explained", "Where techniques differ, and why", columns, rows)


def pair_name(comparison: Comparison, pair: Pair) -> str:
    """Both names with a minus between, or a alone if every pair is one against the baseline."""
    return pair.a if comparison.baseline else f"{pair.a} {MINUS} {pair.b}"


def interval(estimate: Estimate) -> str:
    """``0.717 [0.671, 0.761]``."""
    return f"{estimate.mean:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def difference(pair: Pair, sign: int = 1) -> str:
    """``+0.030 [+0.010, +0.050]``; ``sign`` -1: of b minus a."""
    low, high = sorted((sign * pair.low, sign * pair.high))
    return f"{signed(sign * pair.difference)} [{signed(low)}, {signed(high)}]"


def signed(value: float, digits: int = 3) -> str:
    """``+0.030``, with a minus as wide as the plus."""
    return f"{round(value, digits) + 0.0:+.{digits}f}".replace("-", MINUS)


def p_value(value: float, significant: bool | None = None) -> str:
    """Three digits, or ``< 0.001``; with a star if significant, and room for one if not."""
    star = "" if significant is None else " *" if significant else "  "
    return ("< 0.001" if value < 0.001 else f"{value:.3f}") + star


def _columns(name: str, numbers: Iterable[str] = (), *texts: str) -> list[Column]:
    return [(name, "name"), *((heading, "number") for heading in numbers), *((heading, "text") for heading in texts)]


def _mean(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
