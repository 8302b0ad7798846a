"""Print for people, JSON for programs, and errors on standard error.

Colours and progress bars appear only on terminals, and no colours with ``NO_COLOR``. Control characters in documents
and file names are removed, because a terminal would execute them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from io import IncrementalNewlineDecoder
from typing import Any, Literal

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from ragistry.utils.quoting import HALF, escaped, visible, visible_line

STYLES = {
    "error": "bold red",
    "critical": "bold red",
    "failed": "bold red",
    "broken": "bold red",
    "warning": "yellow",
    "degraded": "yellow",
}
"""Colours of the labels of `error_line`; any other is dim."""
Kind = Literal["name", "number", "text"]
TEXT = 40
"""Minimum width of a column of texts if the width of the output is unknown."""


class PlainConsole(Console):
    """Prints texts and cells of tables without control characters."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)


def console() -> Console:
    """Return a console on standard output that prints text as it is, without markup."""
    return PlainConsole(highlight=False, markup=False, emoji=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """Print a value as JSON in UTF-8, in any encoding of the terminal."""
    print_text(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def print_text(text: str) -> None:
    """Print a whole file in UTF-8, in any encoding of the terminal."""
    whole = HALF.sub(lambda half: json.dumps(escaped(half[0]))[1:-1], text)
    typer.echo(whole.rstrip("\n").encode())


class TextWriter:
    """Writes a text to standard output as it arrives, with its blanks, tabs and lines.

    Rich would strip the blanks at the end of each piece and expand tabs.
    """

    def __init__(self) -> None:
        self._newlines = IncrementalNewlineDecoder(None, translate=True)
        self._last = "\n"

    def write(self, piece: str) -> None:
        """Write a piece without control characters."""
        whole = self._newlines.decode(piece)
        text = visible(f"{whole}|")[:-1]  # the bar keeps the blanks before it
        if text:
            sys.stdout.write(text)
            sys.stdout.flush()
            self._last = text[-1]

    def end(self) -> None:
        """End the line, if it has not ended."""
        if self._last != "\n":
            self.write("\n")


def error_line(message: str, label: str = "error") -> None:
    """Print a line on standard error; on a terminal, a long one is broken at blanks."""
    stderr = Console(stderr=True, highlight=False, emoji=False, soft_wrap=True)
    text = Text.assemble((f"{label}: ", STYLES.get(label, "dim")), visible(message))
    for line in _wrapped(text, stderr.width) if stderr.is_terminal else [text]:
        stderr.print(line)


def _wrapped(text: Text, width: int) -> Iterator[Text]:
    """Break lines at blanks. A path or address that is longer than a line stays whole, so that it can be copied."""
    for line in text.split(allow_blank=True):
        breaks, taken = [], 0
        for word in re.finditer(r"\S+\s*|\s+", line.plain):
            if taken and taken + cell_len(word[0].rstrip()) > width:
                breaks.append(word.start())
                taken = 0
            taken += cell_len(word[0])
        for part in line.divide(breaks):
            part.rstrip()
            yield part


@contextmanager
def progress_bar(wanted: bool = True) -> Iterator[Any]:
    """Yield a callback ``(name, done, of)`` that draws a bar on standard error, or writes a line every ten seconds.

    Yields None if it is not wanted.
    """
    stderr = Console(stderr=True)
    if not wanted or not stderr.is_terminal:
        from ragistry.evaluation.progress import repeated_lines

        with repeated_lines() if wanted else nullcontext() as lines:
            yield lines
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=stderr, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda name, done, of: bar.update(task, description=visible_line(name), completed=done, total=of)


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
    return max(map(cell_len, visible(cell).split("\n")))
