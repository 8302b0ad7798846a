"""Decide whether a second comparison shows a loss against a first one, for automatic checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether a change may pass.

    Attributes:
        code: 0: no loss is shown; 1: one is; 2: nothing can be decided.
        sentence: The result in one sentence.
        table: Each technique: how its second report differs from the first one over the queries of both; None if they
            share nothing.
        others: What else differs, one line each.
    """

    code: int
    sentence: str
    table: ReportTable | None = None
    others: Sequence[str] = ()

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
    reasons = _changed_sets(first, second)
    if failed := [name for name in second.failures if name in first.techniques]:
        reasons.append(f"{names_text(failed)} failed in the second report")
    try:
        pairs = _pairs(first, second)
    except EvaluationError:
        if reasons:
            return Gate(NOT_DECIDED, f"Not decided: {'; '.join(reasons)}.")
        raise
    # The distribution of the flips is symmetric, so half of the two-sided p-value is one-sided.
    ps = holm([pair.p / 2 if pair.difference < 0 else 1 - pair.p / 2 for pair in pairs.values()])
    queries = numbered(next(iter(pairs.values())).queries, "[query|queries]")
    rows: list[Row] = [[name, difference(pair), p_value(p)] for (name, pair), p in zip(pairs.items(), ps, strict=True)]
    columns = ["technique", f"{first.measure} difference [95 %, two-sided]", "p (loss)"]
    note = f"Second minus first, over {queries}. p is that of a loss."
    table, others = ReportTable("Changes", columns, rows, note), _differences(first, second, pairs)
    if reasons:
        return Gate(NOT_DECIDED, f"Not decided: {'; '.join(reasons)}.", table, others)
    lost = [
        f"{name} lost {-pair.difference:.3f} ({p_text(p)})"
        for (name, pair), p in zip(pairs.items(), ps, strict=True)
        if p < ALPHA and -pair.difference >= least - ROUNDING
    ]
    on = f"in {first.measure} on {queries}"
    if lost:
        return Gate(LOST, f"Failed: {', '.join(lost)} {on}.", table, others)
    return Gate(PASSED, f"Passed: no loss of {least:g} or more is shown {on}.", table, others)


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


def _pairs(first: Comparison, second: Comparison) -> dict[str, Pair]:
    """Test each technique of the second comparison against itself in the first one, over the queries of both."""
    measure = first.measure
    if measure not in second.measures:
        raise EvaluationError(
            f"the comparisons share no main measure: {measure} is not one of {', '.join(second.measures)}; "
            "run one again with --measure"
        )
    names = [name for name in second.techniques if name in first.techniques]
    if not names:
        theirs = " and ".join(", ".join(one.techniques) or "none" for one in (first, second))
        raise EvaluationError(f"the comparisons share no technique: {theirs}")
    sides = {"second": second, "first": first}
    per_query = {
        f"{name} ({side})": one.techniques[name].per_query[measure] for name in names for side, one in sides.items()
    }
    queries = sorted(set[str].intersection(*map(set, per_query.values())))
    if not queries:
        raise EvaluationError("the comparisons share no query; compare them on the same test set")
    groups = {**first.provenance.get("groups", {}), **second.provenance.get("groups", {})}
    values = {name: {query: of[query] for query in queries} for name, of in per_query.items()}
    columns = [(f"{name} (second)", f"{name} (first)") for name in names]
    found = pairs_of(columns, measure, values, [groups.get(query, query) for query in queries])
    return dict(zip(names, found, strict=True))


def _differences(first: Comparison, second: Comparison, pairs: Mapping[str, Pair]) -> list[str]:
    """Name what else differs between two comparisons, from their techniques to the versions."""
    one, other = first.provenance, second.provenance
    shared, found = next(iter(pairs.values())).queries, []
    for side, comparison in (("first", first), ("second", second)):
        if names := [name for name in comparison.techniques if name not in pairs]:
            found.append(f"only in the {side}: {', '.join(names)}")
    if first.name != second.name:
        found.append(f"the test sets have different names: {first.name!r} and {second.name!r}")
    for side, comparison in (("first", first), ("second", second)):
        if only := comparison.queries - shared:
            found.append(f"{numbered(only, '[query|queries]')} only in the {side}, left out")
    for key, text in (("embedder", "the embedders"), ("versions", "the versions")):
        is_known = one.get(key) is not None and other.get(key) is not None  # a comparison of words has no embedder
        if is_known and (paths := _paths(one[key], other[key], key)):
            found.append(f"{text} differ: {listed(paths)}")
    if one["asking"]["depth"] != other["asking"]["depth"]:
        found.append(f"depth differs: {one['asking']['depth']} and {other['asking']['depth']}")
    paths_of = {name: _paths(one["techniques"].get(name), other["techniques"].get(name), name) for name in pairs}
    return [*found, *(f"{name} changed: {listed(paths)}" for name, paths in paths_of.items() if paths)]


def _paths(one: Any, other: Any, path: str) -> list[str]:
    """Return the paths at which two values differ, down to single settings: ``technique.config.k``."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = sorted(one.keys() | other)
        return [found for name in names for found in _paths(one.get(name), other.get(name), f"{path}.{name}")]
    return [] if one == other else [path]
