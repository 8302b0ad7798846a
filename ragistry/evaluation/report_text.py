"""A comparison for a terminal and as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragistry.evaluation.notes import notes
from ragistry.evaluation.result import Comparison
from ragistry.evaluation.sheets import Sheet, conclusion, is_number, sheets, verdicts
from ragistry.evaluation.synthetic import cautions, heading
from ragistry.utils.wording import numbered

if TYPE_CHECKING:
    from rich.table import Table

ROOMY = 120
"""Columns of a terminal from which on every column of every table is shown."""
_MARKS = str.maketrans({mark: f"\\{mark}" for mark in "\\|`*_[]<>"} | {"\n": " "})


def markdown(comparison: Comparison) -> str:
    """The whole comparison as Markdown, without the queries that explain it."""
    dataset = comparison.provenance["dataset"]
    lines = [
        f"# {_plain(comparison.name)}",
        "",
        *_synthetic(comparison),
        f"{size(comparison)}. **{_plain(conclusion(comparison))}**",
        "",
        *(f"- {_plain(verdict)}" for verdict in verdicts(comparison)),
    ]
    if said := notes(comparison):
        lines += ["", *(f"- {_plain(note)}" for note in said)]
    for sheet in sheets(comparison):
        lines += ["", f"## {sheet.title}", "", *_table(sheet)]
        if sheet.note:
            lines += ["", _plain(sheet.note)]
    if comparison.failures:
        lines += ["", "## Failures", ""]
        lines += [f"- {_plain(line)}" for line in failures(comparison)]
    if comparison.problems:
        lines += ["", "## Notes on the test set", "", *(f"- {_plain(problem)}" for problem in comparison.problems)]
    lines += ["", f"Test set `{dataset['content_hash'][:16]}`, seed {comparison.provenance['seed']}, "]
    lines[-1] += ", ".join(f"{name} {version}" for name, version in comparison.provenance["versions"].items()) + "."
    return "\n".join(lines) + "\n"


def size(comparison: Comparison) -> str:
    """``5,183 documents, 300 judged queries``."""
    documents = numbered(comparison.provenance["dataset"]["documents"], "[document|documents]")
    return f"{documents}, {numbered(comparison.queries, 'judged [query|queries]')}"


def failures(comparison: Comparison) -> list[str]:
    """A line for each technique that could not be compared."""
    return [
        f"{name} failed" + (f" on query {failure.query!r}" if failure.query else "") + f": {failure.error}"
        for name, failure in comparison.failures.items()
    ]


def terminal_tables(comparison: Comparison, width: int) -> list[Table]:
    """The tables as rich draws them, for a terminal of so many columns."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    drawn = []
    for sheet in sheets(comparison):
        table = Table(title=Text(sheet.title, style="bold"), title_justify="left", box=box.SIMPLE_HEAD)
        columns = sheet.narrow if sheet.narrow and width < ROOMY else range(len(sheet.headers))
        for column in columns:
            table.add_column(Text(sheet.headers[column]), justify="right" if is_number(sheet, column) else "left")
        for number, row in enumerate(sheet.rows):
            table.add_row(*(Text(row[column]) for column in columns), style="bold" if number in sheet.strong else "")
        drawn.append(table)
    return drawn


def _synthetic(comparison: Comparison) -> list[str]:
    """A quotation that says what no person asked."""
    if not (said := heading(comparison.provenance)):
        return []
    points = [f"> - {_plain(caution)}" for caution in cautions(comparison.provenance)]
    return [f"> **{_plain(said)}**", ">", *points, ""]


def _table(sheet: Sheet) -> list[str]:
    rule = ["--:" if is_number(sheet, column) else ":--" for column in range(len(sheet.headers))]
    rows = [[f"**{cell}**" if at in sheet.strong and cell else cell for cell in map(_plain, row)]
            for at, row in enumerate(sheet.rows)]  # fmt: skip
    return [f"| {' | '.join(cells)} |" for cells in (map(_plain, sheet.headers), rule, *rows)]


def _plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    return text.translate(_MARKS)
