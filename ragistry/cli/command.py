"""Commands that run on an open workspace and print values: as text for people, as JSON with ``--json``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Any

import typer

from ragistry.cli.options import DebugOption, JsonOption, WorkspaceOption, declare, parameters_of
from ragistry.cli.output import console, print_json

COMMON = {"workspace": (WorkspaceOption, Path()), "as_json": (JsonOption, False), "debug": (DebugOption, False)}
"""Options of every command on a workspace, with their defaults; `run` reads ``--debug`` from the command line."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a command prints: ``values`` as JSON, or ``text``, which may be a function that prints."""

    values: Any
    text: str | Callable[[], None]
    code: int = 0
    """The exit code of the command."""


def show(output: Output, as_json: bool) -> None:
    """Print as JSON or as text, and exit if the code is not 0."""
    if as_json:
        print_json(output.values)
    elif isinstance(output.text, str):
        console().print(output.text)
    else:
        output.text()
    if output.code:
        raise typer.Exit(output.code)


def on_workspace(function: Callable[..., Output], *, existing: bool = True) -> Callable[..., None]:
    """Make a command of a function that takes the open workspace, named ``opened``, and returns the output.

    The command has the options of `COMMON` too. The function gets those that it names as parameters.
    """
    own = parameters_of(function)

    @wraps(function)
    def run(**values: Any) -> None:
        from ragistry.workspace import open_workspace

        with open_workspace(values["workspace"], existing=existing) as opened:
            values["opened"] = opened
            show(function(**{name: values[name] for name in own}), values["as_json"])

    options = {name: option for name, option in own.items() if name not in {"opened", *COMMON}}
    return declare(run, options | COMMON)


on_any_folder = partial(on_workspace, existing=False)
"""`on_workspace` for commands that also run in a folder without a configuration."""
