"""``ragistry gate A.json B.json``: say whether a change lost quality, for automatic checks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragistry.cli.output import console, print_text


def gate(
    before: Annotated[Path, typer.Argument(metavar="A.json", help="The report of `ragistry compare` before a change.")],
    after: Annotated[Path, typer.Argument(metavar="B.json", help="The report after it, over the same questions.")],
    min_effect: Annotated[
        float, typer.Option("--min-effect", min=0, max=1, help="The smallest loss that counts.")
    ] = 0.01,
    markdown: Annotated[Path | None, typer.Option("--markdown", help="Write a summary here; - prints it.")] = None,
) -> None:
    """Say whether B lost quality against A, two reports of compare, and name what else differs.

    Exit code 0: no loss is shown; 1: a technique lost; 2: nothing can be decided.
    """
    from ragistry.evaluation import Comparison
    from ragistry.evaluation.changes import NOT_DECIDED, Gate
    from ragistry.evaluation.changes import gate as decide
    from ragistry.evaluation.outputs import write_text
    from ragistry.evaluation.report.text import print_table

    try:
        found = decide(Comparison.from_json(before), Comparison.from_json(after), min_effect)
    except Exception as error:  # noqa: BLE001, exit code 1 would mean a loss
        found = Gate(NOT_DECIDED, f"Not decided: {' '.join(str(error).split()) or repr(error)}")
    if markdown == Path("-"):
        print_text(found.markdown())
        raise typer.Exit(found.code)
    out = console()
    out.print(found.sentence)
    if (table := found.table) is not None:
        out.print()
        print_table(table, out)
    for line in found.others:
        out.print(f"- {line}")
    if markdown is not None:
        write_text(markdown, found.markdown())
    raise typer.Exit(found.code)
