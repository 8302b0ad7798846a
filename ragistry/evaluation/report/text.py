"""A comparison as text: for a terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ragistry.evaluation.report.content import ReportTable, about, failures, origin, tables
from ragistry.utils.wording import numbered

if TYPE_CHECKING:
    from rich.console import Console

    from ragistry.evaluation.result import Comparison

NAME = 24
"""Width above which a name is wrapped, so that fewer columns are left out."""
IN_DETAIL = ("quality", "differences", "cost", "relevant")
"""Tables that a terminal shows only on demand."""
GAP = 2
"""Spaces between two columns."""
ELSEWHERE = "see --html, --markdown or --json"
_MARKS = str.maketrans({mark: f"\\{mark}" for mark in "\\|`*_[]<>#"} | {"\n": " ", "\r": " "})


def print_report(comparison: Comparison, out: Console, *, wrap: bool = True, details: bool = False) -> None:
    """Print the verdict, the table of techniques and the most serious warning.

    Args:
        comparison: The comparison.
        out: A console that does not interpret markup.
        wrap: Wrap sentences at the width of the console; otherwise each is one line, for programs.
        details: Print the other tables, warnings and notes too.
    """

    def say(line: str, style: str, mark: str = "") -> None:
        from rich.table import Table as Grid

        if not wrap or not mark:
            out.print(f"{mark} {line}".strip(), style=style, soft_wrap=not wrap)
            return
        hanging = Grid.grid(padding=(0, 1, 0, 0))
        hanging.add_row(mark, line, style=style)
        out.print(hanging)

    made = tables(comparison)
    for line in comparison.first_lines:
        say(line, "bold")
    for failure in failures(comparison):
        say(failure, "bold red", "x")
    for name in ("overview", "models", *(IN_DETAIL if details else ())):
        if name not in made:
            continue
        out.print()
        print_table(made[name], out, wrap=wrap)
        if name == "overview":
            out.print()
            for warning in comparison.warnings if details else comparison.warnings[:1]:
                say(warning, "yellow", "!")
    notes = [*comparison.notes, *(f"Test set: {problem}" for problem in comparison.problems)]
    if details:
        out.print()
        for note in notes:
            say(note, "dim", "-")
    elif made:
        more = len(comparison.warnings[1:]) + len(notes)
        also = f"{numbered(more, '[remark|remarks]')} and the other tables" if more else "The other tables"
        say(f"{also}: --details, --html FILE.", "dim")


def print_table(table: ReportTable, out: Console, *, wrap: bool = True) -> None:
    """Print as many columns as fit, then the note and the names of the other columns; see `print_report` for wrap."""
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
    hidden = f"Not shown: {', '.join(table.columns[kept:])}; {ELSEWHERE}." if kept < len(widths) else ""
    for note in filter(None, (table.note, hidden)):
        out.print(note, style="dim", soft_wrap=not wrap)


def markdown(comparison: Comparison) -> str:
    """Return the report as Markdown, with the most different queries but without their rankings."""
    made = tables(comparison)
    lines = [f"# Retrieval techniques on {plain_markdown(comparison.name)}"]
    for line in comparison.first_lines:
        lines += ["", f"**{plain_markdown(line)}**"]
    lines += _listed("Failed techniques", failures(comparison))
    if first := made.pop("overview", None):
        lines += ["", *markdown_table(first), "", plain_markdown(first.note)]
    lines += _listed("", comparison.warnings[:1])
    lines += ["", f"{plain_markdown(about(comparison))}."]
    lines += _listed("More warnings", comparison.warnings[1:])
    for table in made.values():
        lines += ["", f"## {plain_markdown(table.title)}", "", *markdown_table(table), "", plain_markdown(table.note)]
    lines += _listed("Notes", [*comparison.notes, *(f"Test set: {problem}" for problem in comparison.problems)])
    lines += _listed("Provenance", [f"{name}: {text}" for name, text in origin(comparison).items()])
    return "\n".join(lines) + "\n"


def _listed(title: str, items: Iterable[str]) -> list[str]:
    points = [f"- {plain_markdown(item)}" for item in items]
    return ["", *([f"## {title}", ""] if title else []), *points] if points else []


def markdown_table(table: ReportTable) -> list[str]:
    """Return the lines of a table in Markdown."""
    rows = [[plain_markdown(str(cell)).strip() for cell in row] for row in table.rows]
    for place in table.strong:
        rows[place] = [f"**{cell}**" if cell else "" for cell in rows[place]]
    rule = ["--:" if kind == "number" else ":--" for kind in table.kinds]
    return [f"| {' | '.join(cells)} |" for cells in (map(plain_markdown, table.columns), rule, *rows)]


def plain_markdown(text: str) -> str:
    """Escape Markdown's special characters."""
    return text.translate(_MARKS)
