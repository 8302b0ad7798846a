"""Read the JSON of a comparison back, and compare two comparisons."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ragistry.errors import EvaluationError
from ragistry.evaluation.asking import differing
from ragistry.evaluation.result import (
    Comparison,
    CpuPair,
    Estimate,
    Failure,
    Latency,
    Pair,
    RelevantFound,
    TechniqueResult,
    Tuning,
)
from ragistry.evaluation.summary import pairs_of
from ragistry.evaluation.systems.index import IndexCost
from ragistry.utils.wording import listed, numbered

DERIVED = ("winner", "conclusion", "verdicts")
"""Keys of the JSON that follow from the others."""
PROBLEMS = 3
"""Number of problems that an error names."""


def read_comparison(source: str | Path | Mapping[str, Any]) -> Comparison:
    """Read a comparison from the file that ``--json`` wrote, or from the result of `Comparison.to_json`.

    It has no rankings; these are in the runs.

    Raises:
        EvaluationError: The file is missing, cut, no comparison, or one of another version.
    """
    if not isinstance(source, str | Path | Mapping):
        raise EvaluationError(f"{source!r:.80} is not a comparison; name a file of `ragistry compare --json`")
    place = "the report" if isinstance(source, Mapping) else f"{source!s:.200}"
    try:
        data = source if isinstance(source, Mapping) else json.loads(Path(source).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise EvaluationError(
            f"cannot read {place!r}: {error.strerror}; name a file of `ragistry compare --json`"
        ) from error
    except (ValueError, RecursionError) as error:
        raise EvaluationError(f"{place!r} is not complete JSON ({error}); write it again") from error
    known = isinstance(data, Mapping) and {"dataset", "provenance"} <= data.keys()
    if not known or not isinstance(data.get("techniques"), Mapping):
        raise EvaluationError(f"{place!r} is not a comparison; name a file of `ragistry compare --json`")
    try:
        found = _comparison({key: value for key, value in data.items() if key not in DERIVED})
        TypeAdapter(Comparison).validate_python(asdict(found))
        if missing := {"dataset", "asking", "techniques", "machine"} - found.provenance.keys():
            raise ValueError(f"its provenance has no {listed(sorted(missing))}")
        return found
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        made = (data["provenance"].get("versions") or {}) if isinstance(data["provenance"], Mapping) else {}
        version = made.get("ragistry", "unknown")
        said = f"{type(error).__name__}: {error}"
        if isinstance(error, ValidationError):
            said = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:PROBLEMS])
        raise EvaluationError(
            f"{place!r} is a comparison of another version ({version}): {said}; run it again"
        ) from error


def _comparison(data: dict[str, Any]) -> Comparison:
    made: dict[str, Any] = {
        "name": data.pop("dataset"),
        "techniques": {name: _technique(one) for name, one in data.pop("techniques").items()},
        "pairs": [Pair(**one) for one in data.pop("pairs")],
        "control_pairs": [Pair(**one) for one in data.pop("control_pairs")],
        "cpu_pairs": [CpuPair(**one) for one in data.pop("cpu_pairs")],
        "failures": {name: Failure(**one) for name, one in data.pop("failures").items()},
        "indexes": {name: IndexCost(**one) for name, one in data.pop("indexes").items()},
    }
    selection = data.pop("selection")
    made["selection"] = None if selection is None else Tuning(**selection)
    missing = {one.name for one in fields(Comparison)} - {*made, *data, "runs"}
    if missing:
        raise ValueError(f"it has no {listed(missing)}")
    found = Comparison(**made, **data)
    for name in found.techniques:
        found.techniques[name].per_query[found.measure]
    return found


def _technique(data: Mapping[str, Any]) -> TechniqueResult:
    own = {
        "measures": {name: Estimate(**one) for name, one in data["measures"].items()},
        "latency_ms": Latency(**data["latency_ms"]),
        "cpu_ms": Latency(**data["cpu_ms"]),
        "found": RelevantFound(**data["found"]),
    }
    return TechniqueResult(**{**data, **own})


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
