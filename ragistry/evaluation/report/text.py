"""A comparison as text: for a terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ragistry.evaluation.report.content import ReportTable, about, failures, origin, tables, verdicts
from ragistry.utils.wording import numbered

if TYPE_CHECKING:
    from rich.console import Console

    from ragistry.evaluation.result import Comparison

ROWS = 12
"""Number of pairs shown besides those of the overview; the other reports show all."""
NAME = 24
"""Width above which a name is wrapped, so that fewer columns are left out."""
PAIR_COLUMNS = 5
"""Number of columns of the table of differences that a terminal shows."""
GAP = 2
"""Spaces between two columns."""
ELSEWHERE = "see --html, --markdown or --json"
_MARKS = str.maketrans({mark: f"\\{mark}" for mark in "\\|`*_[]<>#"} | {"\n": " ", "\r": " "})


def print_report(comparison: Comparison, out: Console, *, wrap: bool = True) -> None:
    """Print the verdict, the warnings and the most important tables.

    Args:
        comparison: The comparison.
        out: A console that does not interpret markup.
        wrap: Wrap sentences at the width of the console; otherwise each is one line, for programs.
    """

    def say(line: str, style: str, mark: str = "") -> None:
        from rich.table import Table as Grid

        if not wrap or not mark:
            out.print(f"{mark} {line}".strip(), style=style, soft_wrap=not wrap)
            return
        hanging = Grid.grid(padding=(0, 1, 0, 0))
        hanging.add_row(mark, line, style=style)
        out.print(hanging)

    say(comparison.conclusion(), "bold")
    for warning in comparison.warnings:
        say(warning, "yellow", "!")
    for failure in failures(comparison):
        say(failure, "bold red", "x")
    for table in _shown(comparison):
        out.print()
        hidden = _print_table(table, out)
        for note in filter(None, (table.note, hidden)):
            say(note, "dim")
    if comparison.notes or comparison.problems:
        out.print()
    for note in (*comparison.notes, *(f"Test set: {problem}" for problem in comparison.problems)):
        say(note, "dim", "-")


def _shown(comparison: Comparison) -> Iterator[ReportTable]:
    made = tables(comparison)
    if not made:
        return
    yield made["overview"]
    best = comparison.by_quality[0]
    others = [pair for pair in comparison.main_pairs if best not in (pair.a, pair.b)]
    if comparison.baseline is None and others:
        whole = made["differences"]
        cells = zip(whole.rows, comparison.pairs, strict=True)
        rows = [row[:PAIR_COLUMNS] for row, pair in cells if pair in others]
        note = f"{numbered(len(rows) - ROWS, 'more [pair|pairs]')}: {ELSEWHERE}." if len(rows) > ROWS else ""
        yield ReportTable("Other pairs", whole.columns[:PAIR_COLUMNS], rows[:ROWS], note)
    for name in ("kinds", "selection"):
        if name in made:
            yield made[name]


def _print_table(table: ReportTable, out: Console) -> str:
    """Print as many columns as fit, and return a sentence that names the others."""
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table as Drawn

    cells = [list(map(str, row)) for row in table.rows]
    widths = [max(map(cell_len, column)) for column in zip(table.columns, *cells, strict=True)]
    widths = [w if kind == "number" else min(w, NAME) for w, kind in zip(widths, table.kinds, strict=True)]
    kept = len(widths)
    while kept > 2 and sum(widths[:kept]) + GAP * (kept - 1) > out.width:
        kept -= 1
    drawn = Drawn(
        title=table.title, title_style="bold", title_justify="left", box=box.SIMPLE_HEAD, show_edge=False,
        pad_edge=False, padding=(0, 1, 0, 0),
    )  # fmt: skip
    for heading, kind in list(zip(table.columns, table.kinds, strict=True))[:kept]:
        number = kind == "number"
        drawn.add_column(heading, justify="right" if number else "left", no_wrap=number, overflow="fold")
    for place, row in enumerate(cells):
        style = "bold" if place in table.strong else "dim" if place in table.faint else ""
        drawn.add_row(*row[:kept], style=style)
    out.print(drawn)
    return f"Not shown: {', '.join(table.columns[kept:])}; {ELSEWHERE}." if kept < len(widths) else ""


def markdown(comparison: Comparison) -> str:
    """Return the report as Markdown, with the most different queries but without their rankings."""
    lines = [f"# Retrieval techniques on {_plain(comparison.name)}", "", f"**{_plain(comparison.conclusion())}**"]
    lines += _listed("", verdicts(comparison))
    lines += _listed("Warnings", comparison.warnings)
    lines += _listed("Failed techniques", failures(comparison))
    lines += ["", f"{_plain(about(comparison))}."]
    for table in tables(comparison).values():
        lines += ["", f"## {_plain(table.title)}", "", *_table(table), "", _plain(table.note)]
    lines += _listed("Notes", [*comparison.notes, *(f"Test set: {problem}" for problem in comparison.problems)])
    lines += _listed("Provenance", [f"{name}: {text}" for name, text in origin(comparison).items()])
    return "\n".join(lines) + "\n"


def _listed(title: str, items: Iterable[str]) -> list[str]:
    points = [f"- {_plain(item)}" for item in items]
    return ["", *([f"## {title}", ""] if title else []), *points] if points else []


def _table(table: ReportTable) -> list[str]:
    rows = [[_plain(str(cell)).strip() for cell in row] for row in table.rows]
    for place in table.strong:
        rows[place] = [f"**{cell}**" if cell else "" for cell in rows[place]]
    rule = ["--:" if kind == "number" else ":--" for kind in table.kinds]
    return [f"| {' | '.join(cells)} |" for cells in (map(_plain, table.columns), rule, *rows)]


def _plain(text: str) -> str:
    """Escape Markdown's special characters."""
    return text.translate(_MARKS)
