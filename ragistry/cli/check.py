"""``ragistry check``: the quotations and citations of an answer."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragistry.cli.command import Output, on_workspace
from ragistry.cli.options import collection_option
from ragistry.errors import SourceError

if TYPE_CHECKING:
    from ragistry.workspace import Workspace


def _read_answer(file: str) -> str:
    """Return the text of a file, or of standard input. Raises `SourceError`."""
    from ragistry.tools.quotes import LONGEST_ANSWER

    most = 4 * LONGEST_ANSWER + 4
    try:
        if file == "-":
            data = sys.stdin.buffer.read(most)
        else:
            with Path(file).open("rb") as stream:
                data = stream.read(most)
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{file!r} is not UTF-8 at byte {error.start}; save the answer as UTF-8") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SourceError(f"{file!r} cannot be read: {reason}; check the path") from error


@on_workspace()
def check(
    opened: Workspace,
    file: Annotated[str, typer.Argument(help="The answer: Markdown, or the JSON of ask; - reads standard input.")],
    collection: Annotated[str | None, collection_option("Look only into this collection.")] = None,
    strict: Annotated[bool, typer.Option(help="Also fail if a quotation without a source is nowhere.")] = False,
) -> Output:
    """Check the quotations and citations of an answer against the documents.

    Numbers that the cited passages do not have are listed, but may be right. Exit code 0: every quotation with a source
    is at its place; 1: a quotation, source or place is not there, or the check failed.
    """
    from ragistry.tools.quotes import CheckRequest, check_quotes, check_text
    from ragistry.tools.reach import Reach
    from ragistry.utils.dataclass_json import to_json

    found = check_quotes(
        Reach(opened.library), CheckRequest(_read_answer(file), collection, strict, max_tokens=1_000_000)
    )
    return Output(partial(to_json, found), check_text(found), int(not found.ok))
