"""Run commands from another command."""

from __future__ import annotations

import shlex
from pathlib import Path

import typer


def run_line(context: typer.Context, line: str, workspace: Path) -> int:
    """Run ``ragistry COMMAND …`` on the workspace and return its exit code. Errors are raised as by the command."""
    words = ["--workspace", str(workspace), *shlex.split(line)[1:]]
    return context.find_root().command.main(words, prog_name="ragistry", standalone_mode=False) or 0
