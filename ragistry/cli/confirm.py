"""Ask questions on a terminal."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ragistry.cli.output import error_line
from ragistry.errors import ConfigError

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking.")]


def confirm(what: str, yes: bool) -> None:
    """Continue only with ``--yes`` or after confirmation; ``what`` follows "delete".

    Raises `ConfigError` without a terminal to ask on.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError(f"nothing was deleted; to delete {what} without being asked, add --yes")
    if not ask_yes_no(f"Delete {what}?", default=False):
        error_line("nothing was deleted", label="note")
        raise typer.Exit(1)


def ask_yes_no(question: str, *, default: bool) -> bool:
    """Ask a question. Enter alone answers ``default``; the end of the input means no."""
    choice = "[Y/n]" if default else "[y/N]"
    typer.echo(f"{question} {choice} ", err=True, nl=False)  # standard output has only the result
    typed = sys.stdin.readline()
    word = typed.strip().lower()
    return default if typed and not word else word in ("y", "yes")
