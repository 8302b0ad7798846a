"""The result of a comparison: figures with intervals, pairs, a verdict, and their provenance.

The terminal, Markdown, JSON and HTML reports show this one structure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar

from ragistry.errors import EvaluationError
from ragistry.evaluation.figures import IndexCost, Pair, TechniqueFailure, TechniqueResult, Tuning, names_text
from ragistry.evaluation.verdict import Verdict, verdict
from ragistry.types import html_table
from ragistry.utils.wording import listed, problem_of

DERIVED = ("verdict", "decision")
"""Keys of the JSON that follow from the others."""
FORMER = ("winner", "conclusion", "verdicts", "cpu_pairs", "cost_pairs")
"""Keys of reports of earlier versions, which are not read."""
LATER = ("margin", "runs", "embedder_pairs")
"""Attributes that a report may lack."""
MARGIN = 0.05
"""Default margin: a smaller gain does not justify a change."""
PROBLEMS = 3
"""Number of problems that an error names."""


@dataclass(frozen=True)
class Comparison:
    """Techniques over one frozen test set.

    Attributes:
        name: Name of the test set.
        measure: The main measure, the first one requested. It decides the verdict.
        techniques: The techniques by name.
        pairs: Each other technique against the baseline, on every measure.
        provenance: Everything needed to reproduce the figures.
        baseline: The technique that the others are tested against.
        margin: The baseline is kept if no other technique can be better by as much.
        failures: Techniques that could not be compared.
        controls: ``filename``, ``title_only``, ``random`` → measure → mean, of rankings that do not read the texts.
        control_pairs: Each technique against each control on the main measure, without a correction.
        embedder_pairs: A technique that uses vectors with each other embedder against itself with the first one, or
            with that of the baseline, on the main measure.
        diagnosis: The queries with the largest differences, as `diagnosis.diagnose` returns them.
        indexes: Chunking → cost of its index.
        problems: Remarks about the test set.
        warnings: Reasons why the verdict may be wrong. Every report shows them after the verdict.
        notes: Help to read the figures. Reports show them below the tables.
        selection: The chosen variant, with ``tune_on``.
        runs: Technique → query → ranking.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}  # for `from_json`

    name: str
    measure: str
    techniques: dict[str, TechniqueResult]
    pairs: list[Pair]
    provenance: dict[str, Any]
    baseline: str | None = None
    margin: float = MARGIN
    failures: dict[str, TechniqueFailure] = field(default_factory=dict)
    controls: dict[str, dict[str, float]] = field(default_factory=dict)
    control_pairs: list[Pair] = field(default_factory=list)
    embedder_pairs: list[Pair] = field(default_factory=list)
    diagnosis: list[dict[str, Any]] = field(default_factory=list)
    indexes: dict[str, IndexCost] = field(default_factory=dict)
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
    def no_retrieval(self) -> bool:
        """Whether the best technique is not significantly better than chance, with enough queries to show it."""
        chance = (pair for pair in self.control_pairs if pair.b == "random (control)" and pair.a == self.by_quality[0])
        return any(pair.testable and pair.better != pair.a for pair in chance)

    @property
    def verdict(self) -> Verdict:
        """What to do, in one sentence."""
        return verdict(self)

    @property
    def first_lines(self) -> list[str]:
        """The verdict, the variant that ``tune_on`` chose with its gain, and the verdicts between embedders."""
        more = [one.verdict() for one in (self.selection, *self.embedder_pairs) if one is not None]
        return [str(self.verdict), *(f"{line}." for line in more)]

    @staticmethod
    def from_json(source: str | Path | Mapping[str, Any]) -> Comparison:
        """Read a comparison from a file of ``--json``, or from the result of `to_json`; it has no rankings.

        Raises:
            EvaluationError: It is missing, cut, no comparison, or one of another version.
        """
        from pydantic import ValidationError

        data, place = _read_json(source)
        try:
            return _comparison(data)
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            reason = f"{type(error).__name__}: {error}"
            if isinstance(error, ValidationError):
                reason = "; ".join(
                    f"{'.'.join(map(str, one['loc']))}: {problem_of(one)}" for one in error.errors()[:PROBLEMS]
                )
            made = (data["provenance"].get("versions") or {}) if isinstance(data["provenance"], Mapping) else {}
            version = made.get("ragistry", "unknown")
            raise EvaluationError(
                f"{place!r} is a comparison of another version ({version}): {reason}; run it again"
            ) from error

    def __repr__(self) -> str:
        means = ", ".join(f"{name} {self.techniques[name].measures[self.measure].mean:.3f}" for name in self.by_quality)
        failed = f"; failed: {names_text(list(self.failures))}" if self.failures else ""
        return f"Comparison({self.name!r}, {self.measure}: {means or 'none'}{failed})"

    def _repr_html_(self) -> str:
        from ragistry.evaluation.report.content import overview

        lines = [*self.first_lines, *self.warnings]
        if not self.techniques:
            return html_table(lines, [], [])
        table = overview(self)
        return html_table([*lines, table.note], table.columns, [list(map(str, row)) for row in table.rows])

    def to_json(self) -> dict[str, Any]:
        """Return everything except the rankings as plain values."""
        found = self.verdict
        decision = {"kind": found.decision, "technique": found.technique, "candidate": found.candidate}
        fields = asdict(replace(self, runs={}))
        del fields["runs"]
        return {"dataset": fields.pop("name"), "verdict": found.sentence, "decision": decision, **fields}


def _read_json(source: str | Path | Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """Return the JSON of a comparison, and what an error calls it."""
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
    is_known = isinstance(data, Mapping) and {"dataset", "provenance"} <= data.keys()
    if not is_known or not isinstance(data.get("techniques"), Mapping):
        raise EvaluationError(f"{place!r} is not a comparison; name a file of `ragistry compare --json`")
    for path, value in _not_finite(data):
        raise EvaluationError(f"{place!r}: {path} is {value!r}, not a finite number; run the comparison again")
    return data, place


def _not_finite(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Yield the path and value of each number of a report that is NaN or infinite."""
    if isinstance(value, float) and not isfinite(value):
        yield path, value
    elif isinstance(value, Mapping | list):
        for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _not_finite(inner, f"{path}.{key}" if path else str(key))


def _comparison(data: Mapping[str, Any]) -> Comparison:
    from pydantic import TypeAdapter

    values = {key: value for key, value in data.items() if key not in (*DERIVED, *FORMER)}
    values["name"] = values.pop("dataset")
    for name in {"pairs", "control_pairs", "embedder_pairs"} & values.keys():
        values[name] = [{key: one[key] for key in one if key != "effect_size"} for one in values[name]]
    if missing := {one.name for one in fields(Comparison)} - {*values, *LATER}:
        raise ValueError(f"it has no {listed(missing)}")
    found = TypeAdapter(Comparison).validate_python(values)
    if missing := {"dataset", "asking", "techniques", "machine"} - found.provenance.keys():
        raise ValueError(f"its provenance has no {listed(sorted(missing))}")
    if found.baseline is not None and found.baseline not in {*found.techniques, *found.failures}:
        raise ValueError(f"its baseline {found.baseline!r} is not one of its techniques")
    for result in found.techniques.values():
        result.per_query[found.measure]
    return found
