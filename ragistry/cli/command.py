"""Commands that open a workspace and print values, as text or with ``--json`` as JSON, and groups of commands."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import MISSING, dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Any

import typer

from ragistry.cli.options import SEARCH_OPTIONS, JsonOption, WorkspaceOption, declare, parameters_of
from ragistry.cli.output import console, print_json
from ragistry.types import SearchRequest

COMMON = {"workspace": (WorkspaceOption, Path()), "as_json": (JsonOption, False)}
"""Options of every command on a workspace, with their defaults."""


Rule = tuple[Any, ...]
"""A function of `cli.flags` and its arguments after the context: ``(refuse_without, "overwrite", "yes")``."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a command prints: ``values`` as JSON, or ``text``. Each may be a function that makes or prints it."""

    values: Any
    text: str | Callable[[], None]
    code: int = 0
    """The exit code of the command."""


def show(output: Output, as_json: bool) -> None:
    """Print as JSON or as text, and exit if the code is not 0."""
    if as_json:
        print_json(output.values() if callable(output.values) else output.values)
    elif isinstance(output.text, str):
        console().print(output.text)
    else:
        output.text()
    if output.code:
        raise typer.Exit(output.code)


def on_workspace(*rules: Rule, existing: bool = True) -> Callable[[Callable[..., Output]], Callable[..., None]]:
    """Make a command of a function that takes the open workspace, named ``opened``, and returns the output.

    The command has the options of `COMMON` too. The function gets those that it names as parameters. The parameter
    ``request`` is an option for each field of `SearchRequest`. Wrong usage is refused before the workspace is opened:
    by the parsers and callbacks of the options, then by the ``rules``.
    """

    def decorate(function: Callable[..., Output]) -> Callable[..., None]:
        own = parameters_of(function)
        asked = SEARCH_OPTIONS if "request" in own else {}

        @wraps(function)
        def run(invocation: typer.Context, **values: Any) -> None:
            for refuse, *arguments in rules:
                refuse(invocation, *arguments)
            from ragistry.workspace import open_workspace

            needed = existing and not values.get("chunks")  # a file can be split before there is a library
            with open_workspace(values["workspace"], existing=needed) as opened:
                values["opened"] = opened
                if asked:
                    values["request"] = SearchRequest(**{name: values[name] for name in asked})
                show(function(**{name: values[name] for name in own}), values["as_json"])

        options = {name: option for name, option in own.items() if name not in {"opened", "request", *COMMON}}
        common = COMMON | {name: own[name] for name in own if name == "workspace"}  # with flags of its own
        return declare(run, {"invocation": (typer.Context, MISSING)} | asked | options | common)

    return decorate


on_any_folder = partial(on_workspace, existing=False)
"""`on_workspace` for commands that also run in a folder without a configuration."""


def command_group(help: str) -> typer.Typer:
    """Make a group of commands, which alone prints its help, with exit code 2."""
    group = typer.Typer(help=help, invoke_without_command=True)

    @group.callback()
    def print_help(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())
            raise typer.Exit(2)

    return group


def run_line(context: typer.Context, line: str, workspace: Path) -> int:
    """Run ``ragistry COMMAND …`` on the workspace and return its exit code. Errors are raised as by the command."""
    words = ["--workspace", str(workspace), *shlex.split(line)[1:]]
    return context.find_root().command.main(words, prog_name="ragistry", standalone_mode=False) or 0
