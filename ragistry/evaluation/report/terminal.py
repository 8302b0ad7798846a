"""A comparison in a terminal: the verdict, what to know before relying on it, and the tables that matter most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ragistry.evaluation.report.content import Report, report
from ragistry.evaluation.report.tables import Column, Table, pair_name
from ragistry.evaluation.result import Comparison
from ragistry.utils.wording import numbered

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

ROWS = 12
"""Pairs shown besides those of the overview; more are left to the other reports."""
NAME = 24
"""A longer name is wrapped before a column of figures is left out."""
GAP = 2
PAIR_COLUMNS = (0, 2, 5, 6)
"""Columns of the table of differences that a terminal shows."""


def print_report(comparison: Comparison, out: Console, *, wrap: bool = True) -> None:
    """Print the report on a console that takes text as it is, not as markup.

    ``wrap``: fold sentences to the width of the console; without, each is one line, as programs read it.
    """
    said = report(comparison)
    out.print(said.conclusion, style="bold", soft_wrap=not wrap)
    for mark, style, lines in (("!", "yellow", said.warnings), ("x", "bold red", said.failures)):
        for line in lines:
            out.print(_marked(mark, line, style) if wrap else f"{mark} {line}", soft_wrap=not wrap)
    hidden: list[str] = []
    for table in _shown(comparison, said, hidden):
        fitting, left_out = fitted(table, out.width)
        out.print()
        out.print(_drawn(fitting, out.width), soft_wrap=False)
        for note in filter(None, (table.note, left_out)):
            out.print(note, style="dim", soft_wrap=not wrap)
    for line in (*hidden, *(f"Test set: {problem}" for problem in said.problems)):
        out.print(line, style="dim", soft_wrap=not wrap)


def _shown(comparison: Comparison, said: Report, hidden: list[str]) -> Iterator[Table]:
    """The tables for a terminal; sentences about what it does not show go to ``hidden``."""
    if "overview" not in said.tables:
        return
    yield said.tables["overview"]
    if comparison.baseline is None and (pairs := _other_pairs(comparison, said.tables["overview"].rows[0][0])):
        rows = [row for row in said.tables["differences"].rows if row[0] in pairs and row[1] == comparison.measure]
        if len(rows) <= ROWS:
            columns = [said.tables["differences"].columns[at] for at in PAIR_COLUMNS]
            cells = [[row[at] for at in PAIR_COLUMNS] for row in rows]
            yield Table("pairs", f"Other pairs, {comparison.measure}", columns, cells)
        else:
            hidden.append(
                f"{numbered(len(rows), 'other [pair|pairs]')} tested as well: see --html, --markdown or --json."
            )
    for key in ("kinds", "selection"):
        if key in said.tables:
            yield said.tables[key]


def _other_pairs(comparison: Comparison, reference: str) -> set[str]:
    return {pair_name(comparison, pair) for pair in comparison.main_pairs if reference not in (pair.a, pair.b)}


def fitted(table: Table, width: int) -> tuple[Table, str]:
    """The table with as many columns as fit, and a sentence that names the others."""
    widths = [_least(table, at) for at in range(len(table.columns))]
    kept = len(widths)
    while kept > 2 and sum(widths[:kept]) + GAP * (kept - 1) > width:
        kept -= 1
    if kept == len(widths):
        return table, ""
    names = ", ".join(heading for heading, _ in table.columns[kept:])
    narrow = replace(table, columns=table.columns[:kept], rows=[row[:kept] for row in table.rows])
    return narrow, f"No room for: {names}. Widen the terminal, or see --html, --markdown or --json."


def _least(table: Table, at: int) -> int:
    """The fewest columns of the terminal in which a column can be shown."""
    from rich.cells import cell_len

    heading, kind = table.columns[at]
    widest = max(map(cell_len, (heading, *(row[at] for row in table.rows))))
    return min(widest, NAME) if kind != "number" else widest


def _drawn(table: Table, width: int) -> RenderableType:
    from rich import box
    from rich.table import Table as Drawn

    drawn = Drawn(
        title=table.title, title_style="bold", title_justify="left", box=box.SIMPLE_HEAD, show_edge=False,
        pad_edge=False, padding=(0, 1, 0, 0),
    )  # fmt: skip
    figures = [_least(table, at) for at, (_, kind) in enumerate(table.columns) if kind == "number"]
    texts = len(table.columns) - len(figures)
    room = max(8, (width - sum(figures) - GAP * (len(table.columns) - 1)) // max(1, texts))
    for heading, kind in table.columns:
        number = kind == "number"
        drawn.add_column(
            heading, justify="right" if number else "left", no_wrap=number, overflow="fold",
            vertical="bottom" if number else "top",
        )  # fmt: skip
    for place, row in enumerate(table.rows):
        style = "bold" if place in table.strong else "dim" if place in table.faint else ""
        drawn.add_row(*_cells(row, table.columns, room), style=style)
    return drawn


def _cells(row: Sequence[str], columns: Sequence[Column], room: int) -> Iterable[str]:
    for cell, (_, kind) in zip(row, columns, strict=True):
        yield folded(cell, room) if kind == "name" else cell


def folded(name: str, width: int) -> str:
    """A name on lines of at most ``width``, broken after blanks and punctuation if possible; nothing is cut."""
    lines = []
    while len(name) > width:
        ends = (max(name.rfind(mark, 0, width) for mark in marks) + 1 for marks in (" ,", "[/_-"))
        at = next((end for end in ends if end > width // 3), width)
        lines.append(name[:at].rstrip())
        name = name[at:].lstrip()
    return "\n".join([*lines, name])


def _marked(mark: str, line: str, style: str) -> RenderableType:
    """A sentence with a hanging indent."""
    from rich.table import Table as Drawn

    grid = Drawn.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True, style=style)
    grid.add_column(overflow="fold")
    grid.add_row(mark, line)
    return grid
