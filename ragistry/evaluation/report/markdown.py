"""A comparison as Markdown."""

from __future__ import annotations

from collections.abc import Iterable

from ragistry.evaluation.report.content import about, failures, origin, verdicts
from ragistry.evaluation.report.tables import Table, tables
from ragistry.evaluation.result import Comparison

_MARKS = str.maketrans({mark: f"\\{mark}" for mark in "\\|`*_[]<>#"} | {"\n": " ", "\r": " "})


def markdown(comparison: Comparison) -> str:
    """The report as Markdown, with the most different queries but without their rankings."""
    lines = [f"# Retrieval on {_plain(comparison.name)}", "", f"**{_plain(comparison.conclusion())}**"]
    lines += _listed("", verdicts(comparison))
    lines += _listed("Before you rely on it", comparison.warnings)
    lines += _listed("Could not be compared", failures(comparison))
    lines += ["", f"{_plain(about(comparison))}."]
    for table in tables(comparison).values():
        lines += ["", f"## {_plain(table.title)}", "", *_table(table), "", _plain(table.note)]
    lines += _listed("Notes", [*comparison.notes, *(f"Test set: {problem}" for problem in comparison.problems)])
    lines += _listed("Where these figures come from", [f"{name}: {text}" for name, text in origin(comparison).items()])
    return "\n".join(lines) + "\n"


def _listed(title: str, items: Iterable[str]) -> list[str]:
    points = [f"- {_plain(item)}" for item in items]
    return ["", *([f"## {title}", ""] if title else []), *points] if points else []


def _table(table: Table) -> list[str]:
    rows = [[_plain(str(cell)).strip() for cell in row] for row in table.rows]
    for place in table.strong:
        rows[place] = [f"**{cell}**" if cell else "" for cell in rows[place]]
    rule = ["--:" if kind == "number" else ":--" for kind in table.kinds]
    return [f"| {' | '.join(cells)} |" for cells in (map(_plain, table.columns), rule, *rows)]


def _plain(text: str) -> str:
    """Text with Markdown's special characters escaped."""
    return text.translate(_MARKS)
