"""Compare two comparisons: the same techniques before and after a change, and a gate for automatic checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ragistry.errors import EvaluationError
from ragistry.evaluation.figures import ALPHA, Pair, names_text, p_text
from ragistry.evaluation.report.content import ReportTable, Row, difference, p_value
from ragistry.evaluation.report.text import markdown_table, plain_markdown
from ragistry.evaluation.result import Comparison
from ragistry.evaluation.statistics import holm
from ragistry.evaluation.summary import pairs_of
from ragistry.utils.wording import listed, numbered


@dataclass(frozen=True, slots=True)
class Change:
    """Two comparisons side by side.

    Attributes:
        measure: The main measure of the first one.
        differences: What differs between their test sets, settings and techniques; one line each.
        pairs: Each technique of the second one against itself in the first one, over the queries of both.
        queries: Number of queries of both.
        only_first: Techniques of the first one only.
        only_second: Techniques of the second one only.
    """

    measure: str
    differences: list[str]
    pairs: list[Pair]
    queries: int
    only_first: list[str]
    only_second: list[str]

    @property
    def others(self) -> list[str]:
        """What differs besides the figures, one line each."""
        sides = (("first", self.only_first), ("second", self.only_second))
        return [*(f"only in the {place}: {', '.join(names)}" for place, names in sides if names), *self.differences]

    def lines(self) -> list[str]:
        """State the result: a sentence for each technique, then what differs."""
        return [*(pair.verdict() for pair in self.pairs), *self.others]


LEAST_EFFECT = 0.01
"""Default of the smallest loss at which a gate closes."""
SHOWN = 3
"""Number of queries that a message names."""
PASSED, LOST, NOT_DECIDED = 0, 1, 2
"""Exit codes of a gate."""
ROUNDING = 1e-12
PARTS = (
    ("corpus", "documents", "the corpora"),
    ("queries", "queries", "the queries"),
    ("judgements", "judgements", "the judgements"),
    ("spans", "spans", "the spans"),
)
"""Hashed part of a test set, the key of its size, and its name in a message."""
SIDES = (" (second)", " (first)")
"""Added to the name of a technique in a pair."""


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether a change may pass.

    Attributes:
        code: 0: no loss is shown; 1: one is; 2: nothing can be decided.
        sentence: The result in one sentence.
        change: The two comparisons side by side; None if they share nothing.
        p: One-sided corrected p-value of a loss, for each pair of ``change``.
    """

    code: int
    sentence: str
    change: Change | None = None
    p: tuple[float, ...] = ()

    @property
    def table(self) -> ReportTable | None:
        """Each technique: how its second report differs from the first one over the queries of both."""
        if self.change is None:
            return None
        rows: list[Row] = [
            [pair.a.removesuffix(SIDES[0]), difference(pair), p_value(p)]
            for pair, p in zip(self.change.pairs, self.p, strict=True)
        ]
        note = f"Second minus first, over {numbered(self.change.queries, '[query|queries]')}. p is that of a loss."
        columns = ["technique", f"{self.change.measure} difference [95 %, two-sided]", "p (loss)"]
        return ReportTable("Changes", columns, rows, note)

    @property
    def others(self) -> list[str]:
        """What else differs, one line each."""
        return [] if self.change is None else [line for line in self.change.others if line not in self.sentence]

    def markdown(self) -> str:
        """Return a summary for a pull request."""
        lines = [f"**{plain_markdown(self.sentence)}**"]
        if (table := self.table) is not None:
            lines += ["", *markdown_table(table), "", plain_markdown(table.note)]
        if self.others:
            lines += ["", *(f"- {plain_markdown(line)}" for line in self.others)]
        return "\n".join(lines) + "\n"


def gate(first: Comparison, second: Comparison, least: float = LEAST_EFFECT) -> Gate:
    """Decide whether the second comparison shows a loss against the first one.

    A loss is shown if its one-sided p-value, after Holm's correction over the techniques, is below 0.05, and its
    estimate is ``least`` or more.

    Raises:
        EvaluationError: They share no measure, no technique, or no query; or ``least`` is not valid.
    """
    if isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1:
        raise EvaluationError(f"the least effect is {least!r:.80}; it must be from 0 to 1, such as 0.01")
    reasons = [*_changed_sets(first, second), *_failed(first, second)]
    try:
        change = changed(first, second)
    except EvaluationError:
        if reasons:
            return Gate(NOT_DECIDED, f"Not decided: {'; '.join(reasons)}.")
        raise
    # The distribution of the flips is symmetric, so half of the two-sided p-value is one-sided.
    one_sided = [pair.p / 2 if pair.difference < 0 else 1 - pair.p / 2 for pair in change.pairs]
    ps = tuple(holm(one_sided))
    if reasons:
        return Gate(NOT_DECIDED, f"Not decided: {'; '.join(reasons)}.", change, ps)
    lost = [
        f"{pair.a.removesuffix(SIDES[0])} lost {-pair.difference:.3f} ({p_text(p)})"
        for pair, p in zip(change.pairs, ps, strict=True)
        if p < ALPHA and -pair.difference >= least - ROUNDING
    ]
    on = f"in {change.measure} on {numbered(change.queries, '[query|queries]')}"
    if lost:
        return Gate(LOST, f"Failed: {', '.join(lost)} {on}.", change, ps)
    return Gate(PASSED, f"Passed: no loss of {least:g} or more is shown {on}.", change, ps)


def _changed_sets(first: Comparison, second: Comparison) -> list[str]:
    """Say why two comparisons are not over the same questions, documents and evidence."""
    one, other = first.provenance["dataset"], second.provenance["dataset"]
    if not one.get("hashes") or not other.get("hashes"):
        return ["a report has no hashes of its test set; make it again"]
    found = [
        f"{text} differ ({one[key]:,} and {other[key]:,})"
        for part, key, text in PARTS
        if one["hashes"].get(part) != other["hashes"].get(part)
    ]
    before, now = (side.provenance.get("evidence") or {} for side in (first, second))
    if not before or not now:
        return [*found, "a report has no hashes of its evidence; make it again"]
    gone, changed_texts = list[str](), list[str]()
    for query in before.keys() & now.keys():
        for document, digest in before[query].items():
            if document not in now[query]:
                gone.append(f"{query} ({document})")
            elif now[query][document] != digest:
                changed_texts.append(f"{query} ({document})")
    for names, what in ((gone, "is gone"), (changed_texts, "changed")):
        if names:
            count = numbered(len(names), "[query|queries]")
            found.append(f"the evidence of {count} {what}: {names_text(sorted(names), SHOWN)}")
    return found


def _failed(first: Comparison, second: Comparison) -> list[str]:
    """Name techniques of the first comparison that the second one could not measure."""
    names = [name for name in second.failures if name in first.techniques]
    return [f"{names_text(names)} failed in the second report"] if names else []


def changed(first: Comparison, second: Comparison) -> Change:
    """Compare two comparisons: the same techniques over the same queries, and their other differences.

    Raises:
        EvaluationError: They share no measure, no technique, or no query.
    """
    if first.measure not in second.measures:
        raise EvaluationError(
            f"the comparisons share no main measure: {first.measure} is not one of {', '.join(second.measures)}; "
            "run one again with --measure"
        )
    names = [name for name in second.techniques if name in first.techniques]
    if not names:
        theirs = " and ".join(", ".join(one.techniques) or "none" for one in (first, second))
        raise EvaluationError(f"the comparisons share no technique: {theirs}")
    measure = first.measure
    values: dict[str, dict[str, float]] = {}
    columns = []
    shared: set[str] | None = None
    for name in names:
        before, now = (one.techniques[name].per_query[measure] for one in (first, second))
        both = before.keys() & now.keys()
        shared = both if shared is None else shared & both
        pair = (f"{name}{SIDES[0]}", f"{name}{SIDES[1]}")
        values |= dict(zip(pair, (now, before), strict=True))
        columns.append(pair)
    queries = sorted(shared or ())
    if not queries:
        raise EvaluationError("the comparisons share no query; compare them on the same test set")
    values = {name: {query: of[query] for query in queries} for name, of in values.items()}
    groups = {**first.provenance.get("groups", {}), **second.provenance.get("groups", {})}
    pairs = pairs_of(columns, measure, values, [groups.get(query, query) for query in queries])
    return Change(
        measure,
        _differences(first, second, len(queries)),
        pairs,
        len(queries),
        [name for name in first.techniques if name not in second.techniques],
        [name for name in second.techniques if name not in first.techniques],
    )


def _differences(first: Comparison, second: Comparison, shared: int) -> list[str]:
    """Name what differs between two comparisons, from the test set to the machine."""
    one, other = first.provenance, second.provenance
    found = []
    if first.name != second.name:
        found.append(f"the test sets have different names: {first.name!r} and {second.name!r}")
    hashes, others = (found_in["dataset"].get("hashes", {}) for found_in in (one, other))
    for part, key, text in PARTS:
        if hashes.get(part) != others.get(part):
            counts = " and ".join(f"{side['dataset'][key]:,}" for side in (one, other))
            found.append(f"{text} differ ({counts})")
    for side, comparison in (("first", first), ("second", second)):
        if only := comparison.queries - shared:
            found.append(f"{numbered(only, '[query|queries]')} only in the {side}, left out")
    for key, text in (("embedder", "the embedders"), ("versions", "the versions")):
        is_known = one.get(key) is not None and other.get(key) is not None  # a comparison of words has no embedder
        if is_known and (paths := list(_paths(one[key], other[key], key))):
            found.append(f"{text} differ: {listed(paths)}")
    if one["asking"]["depth"] != other["asking"]["depth"]:
        found.append(f"depth differs: {one['asking']['depth']} and {other['asking']['depth']}")
    for name in second.techniques:
        if name in first.techniques:
            paths = list(_paths(one["techniques"].get(name), other["techniques"].get(name), name))
            if paths:
                found.append(f"{name} changed: {listed(paths)}")
    return found


def _paths(one: Any, other: Any, path: str) -> Sequence[str]:
    return sorted(set(differing(one, other, path)))


def differing(theirs: Any, ours: Any, path: str = "") -> Iterator[str]:
    """Return the paths at which two keys differ, down to single settings: ``technique.config.k``."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for name in theirs.keys() | ours:
            yield from differing(theirs.get(name), ours.get(name), f"{path}.{name}" if path else name)
    elif theirs != ours:
        yield path
