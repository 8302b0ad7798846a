"""Ask for confirmation before deleting."""

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
    typer.echo(f"Delete {what}? [y/N] ", err=True, nl=False)  # the output of a program stays separate
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        error_line("nothing was deleted", label="note")
        raise typer.Exit(1)
