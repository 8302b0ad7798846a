"""Asking before something is deleted."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ragistry.cli.output import error_line
from ragistry.errors import ConfigError

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking.")]


def confirm(what: str, yes: bool) -> None:
    """Go on only where the caller said ``--yes``, or says so now; ``what`` follows "delete".

    Raises `ConfigError` where there is nobody to ask.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError(f"nothing was deleted: to delete {what} without being asked, add --yes")
    typer.echo(f"Delete {what}? [y/N] ", err=True, nl=False)  # the answer of a program stays by itself
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        error_line("nothing was deleted", label="note")
        raise typer.Exit(1)
