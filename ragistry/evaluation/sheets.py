"""The tables of a report, as rows of text: what a terminal, Markdown and a page show alike."""

from __future__ import annotations

from dataclasses import dataclass, field

from ragistry.evaluation.axes import MINUS
from ragistry.evaluation.result import Comparison, Estimate, Pair, TechniqueResult
from ragistry.utils.wording import agreeing, numbered

STAGES_SHOWN = 3
MANY = 10
"""Pairs that each get a sentence; of more, only those with a difference do."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table: ``rows`` of as many cells as there are ``headers``; the first ``labels`` columns are text.

    ``strong``: rows to stand out. ``note``: what a reader must know of it. ``narrow``: the columns to show where there
    is little room; none: all.
    """

    title: str
    headers: list[str]
    rows: list[list[str]]
    note: str = ""
    labels: int = 1
    strong: frozenset[int] = field(default_factory=frozenset)
    narrow: tuple[int, ...] = ()


def sheets(comparison: Comparison) -> list[Sheet]:
    """Every table that has rows."""
    made = (quality(comparison), differences(comparison), cost(comparison), fates(comparison), indexes(comparison))
    return [sheet for sheet in made if sheet.rows]


def quality(comparison: Comparison) -> Sheet:
    """Each technique's measures with their intervals, the best on the main measure first."""
    names = by_quality(comparison)
    rows = [
        [_named(comparison, name), *(interval(comparison.techniques[name].measures[m]) for m in comparison.measures)]
        for name in names
    ]
    strong = frozenset(row for row, name in enumerate(names) if name == comparison.winner)
    note = f"Mean over {numbered(comparison.queries, '[query|queries]')} [95 % bootstrap interval]."
    return Sheet("Quality", ["technique", *comparison.measures], rows, note, strong=strong)


def differences(comparison: Comparison) -> Sheet:
    """Each pair on each measure."""
    rows = [[pair_name(comparison, pair), *_difference(pair, comparison.baseline)] for pair in comparison.pairs]
    strong = frozenset(row for row, pair in enumerate(comparison.pairs) if pair.significant)
    first = f"against {comparison.baseline}" if comparison.baseline else "pair"
    headers = [first, "measure", "difference", "p", "p (Holm)", "w / t / l", "d", "detectable", "verdict"]
    statistics = comparison.provenance["statistics"]
    note = (
        f"{statistics['test'].capitalize()}; Holm's correction over {statistics['family']}. w / t / l: queries won, "
        "tied, lost by the first. d: Cohen's d_z. Detectable: the smallest true difference that this many queries "
        "show in four of five cases, after Holm's correction; > 1: none."
    )
    return Sheet("Differences", headers, rows, note, labels=2, strong=strong, narrow=(0, 1, 2, 4, 8))


def cost(comparison: Comparison) -> Sheet:
    """Latency, model calls and tokens a query, and where the time goes."""
    rows = []
    for name in by_quality(comparison):
        result = comparison.techniques[name]
        latency = result.latency_ms
        rows.append(
            [name, f"{latency.p50:.1f}", f"{latency.p95:.1f}", f"{result.calls / comparison.queries:.1f}",
             f"{result.tokens / comparison.queries:,.0f}", slowest(result)]
        )  # fmt: skip
    asking = comparison.provenance["asking"]
    note = (
        f"Milliseconds a query for {asking['depth']} documents, techniques in turn after {asking['warm_up_queries']} "
        "queries of warm-up. The vector of a query is computed once, and its time charged to each technique that asks "
        "for it. Stages: means, without the stages inside them."
    )
    if asking["replayed"]:
        note += (
            f" Replayed from {asking['replayed']}: each call of a model is charged the milliseconds that it took when "
            "it was recorded."
        )
    headers = ["technique", "p50 ms", "p95 ms", "model calls", "tokens", "slowest stages (mean ms)"]
    return Sheet("Cost of a query", headers, rows, note)


def slowest(result: TechniqueResult) -> str:
    """The stages that take the most time."""
    stages = sorted(result.stages.items(), key=lambda stage: -stage[1])[:STAGES_SHOWN]
    return ", ".join(f"{name} {ms:.1f}" for name, ms in stages)


def fates(comparison: Comparison) -> Sheet:
    """What became of the relevant documents."""
    rows = []
    cutoff = depth = 0
    for name in by_quality(comparison):
        found = comparison.techniques[name].found
        cutoff, depth = found.cutoff, found.depth
        counts = (found.shown, found.low, found.never, found.routed_away)
        shares = [f"{count:,} ({count / max(1, sum(counts)):.0%})" for count in counts]
        rows.append([name, *shares, f"{comparison.techniques[name].judged:.0%}"])
    headers = ["technique", f"in the first {cutoff}", f"ranked {cutoff + 1} to {depth}", "not retrieved", "routed away",
               f"judged of the first {cutoff}"]  # fmt: skip
    note = "Judged: how much of what is shown has a judgement; a technique may find what nobody judged."
    return Sheet("What became of the relevant documents", headers, rows, note)


def indexes(comparison: Comparison) -> Sheet:
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
    note = f"Peak memory of the process that compared: {memory / 1e6:,.0f} MB. " if memory else ""
    if limit:
        note += f"Cut: chunks of more than {limit} tokens, which the embedder sees only the beginning of."
    headers = ["chunks", "documents", "number", "cut", "embedding s", "writing s", "MB on disk"]
    return Sheet("Index", headers, rows, note)


def by_quality(comparison: Comparison) -> list[str]:
    """The techniques, best mean of the main measure first."""
    return sorted(
        comparison.techniques, key=lambda name: -comparison.techniques[name].measures[comparison.measure].mean
    )


def interval(estimate: Estimate) -> str:
    """``0.717 [0.671, 0.761]``."""
    return f"{estimate.mean:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def signed(value: float, digits: int = 3) -> str:
    """``+0.030``, with a minus that is as wide as the plus."""
    return f"{value:+.{digits}f}".replace("-", MINUS)


def p_value(value: float) -> str:
    """Three digits; what is smaller is said to be."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def verdicts(comparison: Comparison) -> list[str]:
    """A sentence for each pair on the main measure; of many pairs only for those that differ significantly."""
    pairs = comparison.main_pairs
    return [pair.verdict() for pair in pairs if pair.significant or len(pairs) <= MANY]


def conclusion(comparison: Comparison) -> str:
    """One sentence: the winner, or that there is none; with a baseline, what is better and worse than it."""
    if not comparison.techniques:
        return "Every technique failed: nothing could be compared."
    if comparison.baseline in comparison.failures:
        return f"The baseline {comparison.baseline} failed, so that nothing can be tested against it."
    if not comparison.main_pairs:
        return "There is no second technique to compare with."
    if comparison.winner is not None:
        others = "the other technique" if len(comparison.techniques) == 2 else "every other technique"
        return f"{comparison.winner} is significantly better than {others} in {comparison.measure}."
    if comparison.baseline is None:
        shown, total = sum(pair.significant for pair in comparison.main_pairs), len(comparison.main_pairs)
        if total == 1:
            [pair] = comparison.main_pairs
            return f"No difference is shown between {pair.a} and {pair.b} in {pair.measure}, n = {comparison.queries}."
        return (
            f"No technique is shown to be better than all others in {comparison.measure}: {shown} of {total} "
            f"differences {agreeing(shown, '[is|are]')} significant."
        )
    groups = {
        "significantly better": [pair.a for pair in comparison.main_pairs if pair.better == pair.a],
        "significantly worse": [pair.a for pair in comparison.main_pairs if pair.better == pair.b],
        "no difference shown": [pair.a for pair in comparison.main_pairs if pair.better is None],
    }
    said = "; ".join(f"{what}: {', '.join(names)}" for what, names in groups.items() if names)
    return f"Against {comparison.baseline} in {comparison.measure}, {said}."


def pair_name(comparison: Comparison, pair: Pair) -> str:
    """Both names with a minus between; the first alone where every pair is one against the baseline."""
    return pair.a if comparison.baseline else f"{pair.a} {MINUS} {pair.b}"


def is_number(sheet: Sheet, column: int) -> bool:
    """Whether a column holds figures, which stand at the right."""
    return column >= sheet.labels and all(row[column][:1] in f"+-{MINUS}<>0123456789" for row in sheet.rows)


def _named(comparison: Comparison, name: str) -> str:
    return f"{name} (baseline)" if name == comparison.baseline else name


def _difference(pair: Pair, baseline: str | None) -> list[str]:
    effect = "" if pair.effect_size is None else signed(pair.effect_size, 2)
    detectable = "" if pair.detectable is None else f"{pair.detectable:.3f}" if pair.detectable <= 1 else "> 1"
    verdict = f"{pair.better} better" if pair.better else "not shown"
    if pair.better and baseline:
        verdict = "worse" if pair.better == baseline else "better"
    return [
        pair.measure,
        f"{signed(pair.difference)} [{signed(pair.low)}, {signed(pair.high)}]",
        p_value(pair.p),
        p_value(pair.p_holm),
        f"{pair.wins} / {pair.ties} / {pair.losses}",
        effect,
        detectable,
        verdict,
    ]
