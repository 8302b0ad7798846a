"""``ragistry plan REPORT``: say how many questions a comparison needs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragistry.cli.output import console


def plan(
    report: Annotated[
        Path | None,
        typer.Argument(metavar="[REPORT.json]", help="A report of `ragistry compare`, whose deviations are used."),
    ] = None,
) -> None:
    """Say how many questions a comparison needs to show a difference, for usual deviations or those of a report."""
    from ragistry.evaluation import Comparison
    from ragistry.evaluation.report.content import plan_table
    from ragistry.evaluation.report.text import print_table

    print_table(plan_table(None if report is None else Comparison.from_json(report)), console())
