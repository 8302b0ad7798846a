"""Compare two comparisons: the same techniques before and after a change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragistry.errors import EvaluationError
from ragistry.evaluation.asking import differing
from ragistry.evaluation.figures import Pair
from ragistry.evaluation.result import Comparison
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

    def lines(self) -> list[str]:
        """State the result: a sentence for each technique, then what differs."""
        sides = [
            f"only in the {place}: {', '.join(names)}"
            for place, names in (("first", self.only_first), ("second", self.only_second))
            if names
        ]
        return [*(pair.verdict() for pair in self.pairs), *sides, *self.differences]


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
        raise EvaluationError(
            f"the comparisons share no technique: {', '.join(first.techniques)} and {', '.join(second.techniques)}"
        )
    measure = first.measure
    values: dict[str, dict[str, float]] = {}
    columns = []
    shared: set[str] | None = None
    for name in names:
        before, now = (one.techniques[name].per_query[measure] for one in (first, second))
        both = before.keys() & now.keys()
        shared = both if shared is None else shared & both
        values |= {f"{name} (first)": before, f"{name} (second)": now}
        columns.append((f"{name} (second)", f"{name} (first)"))
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
    for part, text in (("corpus", "the corpora"), ("queries", "the queries"), ("judgements", "the judgements")):
        if hashes.get(part) != others.get(part):
            key = {"corpus": "documents", "queries": "queries", "judgements": "judgements"}[part]
            counts = " and ".join(f"{side['dataset'][key]:,}" for side in (one, other))
            found.append(f"{text} differ ({counts})")
    for side, comparison in (("first", first), ("second", second)):
        if only := comparison.queries - shared:
            found.append(f"{numbered(only, '[query|queries]')} only in the {side}, left out")
    for key, text in (("embedder", "the embedders"), ("versions", "the versions")):
        is_known = one.get(key) is not None and other.get(key) is not None  # a comparison of words has no embedder
        if is_known and (paths := list(_paths(one[key], other[key], key))):
            found.append(f"{text} differ: {listed(paths)}")
    settings = [(key, one["asking"].get(key), other["asking"].get(key)) for key in ("depth", "drop_query")]
    found += [f"{key} differs: {this} and {that}" for key, this, that in settings if this != that]
    for name in second.techniques:
        if name in first.techniques:
            paths = list(_paths(one["techniques"].get(name), other["techniques"].get(name), name))
            if paths:
                found.append(f"{name} changed: {listed(paths)}")
    return found


def _paths(one: Any, other: Any, path: str) -> Sequence[str]:
    return sorted(set(differing(one, other, path)))
