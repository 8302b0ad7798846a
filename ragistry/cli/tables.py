"""Print tables without cutting cells: users copy names, and programs read pipes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from ragistry.cli.output import console
from ragistry.utils.quoting import visible

Kind = Literal["name", "number", "text"]
TEXT = 40
"""Minimum width of a column of texts if the width of the output is unknown."""


def print_table(columns: Mapping[str, Kind], rows: Iterable[Sequence[str]]) -> None:
    """Print rows below the headings ``columns``.

    On a narrow terminal, names are folded, texts are wrapped, and numbers stay whole. In a pipe or file, names stay
    whole too, and texts are wrapped to 80 columns or the number in ``COLUMNS``.
    """
    from rich import box
    from rich.table import Table

    out, cells = console(), list(rows)
    on_terminal = out.file.isatty()
    table = Table(box=box.SIMPLE_HEAD)
    for index, (heading, kind) in enumerate(columns.items()):
        inside = max((_width(row[index]) for row in cells), default=0)
        least = _least(kind, _width(heading), inside, on_terminal=on_terminal)
        table.add_column(heading, justify="right" if kind == "number" else "left", overflow="fold", min_width=least)
    for row in cells:
        table.add_row(*row)
    out.print(table)


def _least(kind: Kind, heading: int, inside: int, *, on_terminal: bool) -> int | None:
    """Return the minimum width of a column; None for no minimum."""
    if on_terminal:
        return inside if kind == "number" else None
    whole = max(heading, inside)
    return min(whole, TEXT) if kind == "text" else whole


def _width(cell: str) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, visible(cell).split("\n")))
