"""A comparison as Markdown."""

from __future__ import annotations

from collections.abc import Iterable

from ragistry.evaluation.report.content import report
from ragistry.evaluation.report.tables import Table
from ragistry.evaluation.result import Comparison

_MARKS = str.maketrans({mark: f"\\{mark}" for mark in "\\|`*_[]<>#"} | {"\n": " ", "\r": " "})


def markdown(comparison: Comparison) -> str:
    """The report as Markdown, with the queries that differ most but without their rankings."""
    said = report(comparison)
    lines = [f"# {_plain(said.title)}", "", f"**{_plain(said.conclusion)}**"]
    for title, items in (("", said.verdicts), ("Before you rely on it", said.warnings)):
        lines += _listed(title, items)
    lines += _listed("Could not be compared", said.failures)
    lines += ["", f"{_plain(said.about)}."]
    for table in said.tables.values():
        lines += ["", f"## {_plain(table.title)}", "", *_table(table)]
        if table.note:
            lines += ["", _plain(table.note)]
    lines += _listed("How the synthetic queries were made", said.synthetic)
    lines += _listed("Notes on the test set", said.problems)
    lines += ["", "## Where these figures come from", ""]
    lines += [f"- {name}: {_plain(text)}" for name, text in said.origin.items()]
    return "\n".join(lines) + "\n"


def _listed(title: str, items: Iterable[str]) -> list[str]:
    points = [f"- {_plain(item)}" for item in items]
    return ["", *([f"## {title}", ""] if title else []), *points] if points else []


def _table(table: Table) -> list[str]:
    rule = ["--:" if kind == "number" else ":--" for _, kind in table.columns]
    heads = [_plain(heading) for heading, _ in table.columns]
    rows = [
        [
            f"**{cell.strip()}**" if number in table.strong and cell.strip() else cell.strip()
            for cell in map(_plain, row)
        ]
        for number, row in enumerate(table.rows)
    ]
    return [f"| {' | '.join(cells)} |" for cells in (heads, rule, *rows)]


def _plain(text: str) -> str:
    """Text without meaning to Markdown."""
    return text.translate(_MARKS)
