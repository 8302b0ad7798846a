"""``ragistry check``: the quotations and citations of an answer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ragistry.cli.options import DebugOption, JsonOption, WorkspaceOption, collection_option
from ragistry.cli.output import console, print_json


def check(
    file: Annotated[str, typer.Argument(help="The answer: Markdown, or the JSON of ask; - reads standard input.")],
    collection: Annotated[str | None, collection_option("Look only into this collection.")] = None,
    strict: Annotated[bool, typer.Option(help="Also fail if a quotation without a source is nowhere.")] = False,
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Check the quotations and citations of an answer against the documents.

    Numbers that the cited passages do not have are listed, but may be right. Exit code 0: every quotation with a source
    is at its place; 1: a quotation, source or place is not there, or the check failed.
    """
    from ragistry.errors import SourceError
    from ragistry.tools.quotes import LONGEST_ANSWER, CheckRequest, check_quotes, check_text
    from ragistry.tools.reach import Reach
    from ragistry.utils.dataclass_json import to_json
    from ragistry.workspace import open_workspace

    most = 4 * LONGEST_ANSWER + 4
    try:
        if file == "-":
            data = sys.stdin.buffer.read(most)
        else:
            with Path(file).open("rb") as stream:
                data = stream.read(most)
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{file!r} is not UTF-8 at byte {error.start}; save the answer as UTF-8") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SourceError(f"{file!r} cannot be read: {reason}; check the path") from error
    with open_workspace(workspace, existing=True) as opened:
        found = check_quotes(Reach(opened.library), CheckRequest(text, collection, strict, max_tokens=1_000_000))
    if as_json:
        print_json(to_json(found))
    else:
        console().print(check_text(found))
    if not found.ok:
        raise typer.Exit(1)
