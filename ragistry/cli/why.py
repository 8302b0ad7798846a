"""``ragistry why``: explain why a search does not return a passage."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from ragistry.cli.command import Output, on_workspace
from ragistry.cli.output import console, error_line, print_table
from ragistry.types import SearchRequest

if TYPE_CHECKING:
    from ragistry.library.why import Explanation
    from ragistry.workspace import Workspace

EXIT_CODES = {"found": 0, "not ingested": 1}
EXPLAINED = 3


@on_workspace()
def why(
    opened: Workspace,
    request: SearchRequest,
    expect: Annotated[
        str,
        typer.Option("--expect", metavar="SOURCE[:PLACE]", help="Source to find, with a page, line, sheet or heading."),
    ],
) -> Output:
    """Explain why a search does not return a source: the stage that lost it, and what would return it.

    Exit code 0: the search returns it; 3: it does not, and the output says why; 1: it was not ingested.
    """
    from ragistry.library.why import explain

    found = explain(opened.library, request, expect)
    return Output(asdict(found), partial(_print, found), EXIT_CODES.get(found.cause, EXPLAINED))


def _print(found: Explanation) -> None:
    out = console()
    out.print(found.message)
    if found.ranks:
        out.print()
        rows = [
            (
                one.technique,
                "" if one.rank is None else str(one.rank),
                "" if one.score is None else f"{one.score:.4g}",
                str(one.results),
            )
            for one in found.ranks
        ]
        print_table({"technique": "name", "rank": "number", "score": "number", "results": "number"}, rows)
    if found.remedies:
        out.print()
        for remedy in found.remedies:
            out.print(f"to find it: {remedy}")
    if found.cost:
        out.print(f"the technique asks a model, so it ran once: {found.cost}")
    for reason in found.degraded:
        error_line(reason, label="degraded")
