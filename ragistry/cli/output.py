"""Print for people, JSON for programs, and errors on standard error.

Colours and progress bars appear only on terminals, and no colours with ``NO_COLOR``. Control characters in documents
and file names are removed, because a terminal would execute them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from ragistry.utils.quoting import HALF, escaped, one_line, visible

STYLES = {
    "error": "bold red",
    "critical": "bold red",
    "failed": "bold red",
    "broken": "bold red",
    "warning": "yellow",
    "degraded": "yellow",
}
"""Colours of the labels of `error_line`; any other is dim."""


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


def error_line(message: str, label: str = "error") -> None:
    """Print a line on standard error."""
    stderr = Console(stderr=True, highlight=False, emoji=False, soft_wrap=True)
    stderr.print(Text.assemble((f"{label}: ", STYLES.get(label, "dim")), visible(message)))


@contextmanager
def progress_bar(wanted: bool = True) -> Iterator[Any]:
    """Yield a callback ``(name, done, of)`` that draws a bar on standard error; None if that is not a terminal."""
    stderr = Console(stderr=True)
    if not wanted or not stderr.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=stderr, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda name, done, of: bar.update(task, description=one_line(name), completed=done, total=of)
