"""``ragistry grep``, ``read`` and ``outline``: the texts of the library by lines."""

from __future__ import annotations

from dataclasses import MISSING, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragistry.cli.command import Output, Rule, on_workspace
from ragistry.cli.flags import refuse_together
from ragistry.cli.options import declare, field_options, path
from ragistry.cli.output import console

if TYPE_CHECKING:
    from ragistry.tools.tool import Tool
    from ragistry.workspace import Workspace

_HIDDEN = ("max_tokens", "cursor")
"""Options that the command line does not need: it prints all pages."""


def _command(name: str, description: str, *rules: Rule, **more: Any) -> Any:
    """Make a command of a tool: an option for each field of its request, and ``more``."""
    from ragistry.tools.toolbox import READING

    tool = READING[name]

    def run(opened: Workspace, as_json: bool, **values: Any) -> Output:
        values.pop("workspace", None)
        if values.pop("chunks", False):
            from ragistry.tools.outline import split

            return Output(*split(opened, values["source"], values["collection"]))
        return _pages(opened, tool, tool.request(**values, max_tokens=50_000), as_json)

    options = field_options(tool.request, *_HIDDEN) | more
    if name == "grep":  # its -w is for words, as in every grep
        folder = Annotated[Path, typer.Option("--workspace", help="Folder of the workspace.", parser=path)]
        options["workspace"] = (folder, Path())
    run.__doc__, run.__name__ = description, name
    return on_workspace(*rules)(declare(run, {"opened": (Any, MISSING), "as_json": (bool, MISSING)} | options))


def _pages(opened: Workspace, tool: Tool, request: Any, as_json: bool) -> Output:
    """Return the answer, whose text is printed page after page. Exit code 1 if no line was found."""
    from ragistry.tools.reach import Reach
    from ragistry.tools.result_text import QUOTED
    from ragistry.utils.dataclass_json import to_json

    reach = Reach(opened.library)
    first = tool.run(reach, request)

    def write() -> None:
        answer, found_any = first, False
        while True:
            cursor = getattr(answer, "cursor", "")
            found = bool(getattr(answer, "sources", True))
            found_any |= found
            if found or not (cursor or found_any):
                if cursor:
                    answer.cursor, answer.notes = "", answer.notes[:-1]
                console().print(tool.text(answer).removesuffix(QUOTED).rstrip())
            if not cursor:
                break
            answer = tool.run(reach, replace(request, cursor=cursor))
        if not found_any:
            raise typer.Exit(1)

    return Output(partial(to_json, first), write, int(as_json and not getattr(first, "sources", True)))


grep = _command(
    "grep",
    "Find the lines of the documents that contain a pattern, in any format.\n\nThe pattern is a literal text, or a "
    "regular expression with --regex. Exit code 1 if no line has it.",
    (refuse_together, "count", "context", "sources_only"),
    (refuse_together, "context", "sources_only"),
)
read = _command(
    "read", "Print lines of a source by their numbers, or around a place.", (refuse_together, "line", "place")
)
outline = _command(
    "outline",
    "List the headings, pages, slides, sheets and chapters of a source.",
    (refuse_together, "chunks", "line"),
    chunks=(
        Annotated[bool, typer.Option("--chunks", help="List its chunks; also of a file that is not stored.")],
        False,
    ),
)
