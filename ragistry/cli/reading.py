"""``ragistry grep``, ``read`` and ``outline``: the texts of the library by lines."""

from __future__ import annotations

import json
from dataclasses import MISSING, replace
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from ragistry.cli.command import COMMON
from ragistry.cli.flags import FlagsError
from ragistry.cli.options import NAMES, declare, path
from ragistry.cli.output import console, print_json

_HIDDEN = ("max_tokens", "cursor")
"""Options that the command line does not need: it prints all pages."""


def _command(name: str, description: str) -> Any:
    """Make a command of a tool: an option for each field of its request."""
    from ragistry.tools.toolbox import READING

    tool = READING[name]

    def run(**values: Any) -> None:
        workspace, as_json = values.pop("workspace"), values.pop("as_json")
        values.pop("debug")
        for key in ("where", "place"):
            if values.get(key) is not None:
                values[key] = _object(key, values[key])
        _run(name, tool.request(**values, max_tokens=50_000), workspace, as_json)

    kinds = get_type_hints(tool.request) | {"where": str | None, "place": str | None}
    options = {
        key: (Annotated[kinds[key], _option(key, one.metadata, one.default)], one.default)
        for key, one in tool.options().items()
        if key not in _HIDDEN
    }
    common: dict[str, Any] = dict(COMMON)
    if any("-w" in one.metadata.values() for one in tool.options().values()):  # -w of grep are words, as in every grep
        folder = Annotated[Path, typer.Option("--workspace", help="Folder of the workspace.", parser=path)]
        common["workspace"] = (folder, Path())
    run.__doc__, run.__name__ = description, name
    return declare(run, options | common)


def _option(name: str, about: Any, default: Any) -> Any:
    if default is MISSING:
        return typer.Argument(help=about["description"])
    short = [about["short"]] if "short" in about else []
    help = about["description"].replace(", JSON", "")
    flags = (f"--{name.replace('_', '-')}", *short)
    return typer.Option(*flags, help=help, min=about.get("ge"), max=about.get("le"), **NAMES.get(name, {}))


def _object(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FlagsError(f"--{name} is not JSON: {text!r} ({error}); write '{{\"page\": 3}}'") from error


def _run(name: str, request: Any, workspace: Path, as_json: bool) -> None:
    """Print the answer, page after page. Exit code 1 if no line was found."""
    from ragistry.tools.reach import Reach
    from ragistry.tools.result_text import QUOTED
    from ragistry.tools.toolbox import READING
    from ragistry.utils.dataclass_json import to_json
    from ragistry.workspace import open_workspace

    found_any = False
    with open_workspace(workspace, existing=True) as opened:
        reach = Reach(opened.library)
        while True:
            answer = READING[name].run(reach, request)
            cursor = getattr(answer, "cursor", "")
            found_any |= bool(getattr(answer, "sources", True))
            if as_json:
                print_json(to_json(answer))
            elif getattr(answer, "sources", True) or not (cursor or found_any):
                if cursor:
                    answer.cursor, answer.notes = "", answer.notes[:-1]
                console().print(READING[name].text(answer).removesuffix(QUOTED).rstrip())
            if not cursor or as_json:
                break
            request = replace(request, cursor=cursor)
    if not found_any:
        raise typer.Exit(1)


grep = _command(
    "grep",
    "Find the lines of the documents that contain a pattern, in any format.\n\nThe pattern is a literal text, or a "
    "regular expression with --regex. Exit code 1 if no line has it.",
)
read = _command("read", "Print lines of a source by their numbers, or around a place.")
outline = _command("outline", "List the headings, pages, slides, sheets and chapters of a source.")
