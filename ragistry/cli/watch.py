"""``ragistry ingest --watch``: ingest changes in folders."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragistry.cli.output import error_line
from ragistry.errors import RagistryError
from ragistry.library.ingest.ignore import IGNORE_FILES

if TYPE_CHECKING:
    from ragistry.library.ingest.report import IngestReport

TICK = 300
"""Milliseconds without changes after which the watch yields an empty set."""
TOGETHER = 1_000
"""Maximum milliseconds for which successive changes are collected."""


def changes_in(folders: Sequence[Path]) -> Iterator[set[str]]:
    """Yield sets of changed paths. The first set, perhaps empty, means that watching has begun.

    Hidden files and folders are left out, except files with rules to ignore. Ctrl-C raises `KeyboardInterrupt`.
    """
    from watchfiles import watch

    roots = [os.path.realpath(folder) for folder in folders]
    for changes in watch(*roots, watch_filter=None, debounce=TOGETHER, rust_timeout=TICK, yield_on_timeout=True):
        yield {path for _, path in changes if any(_is_visible(path, root) for root in roots)}


def _is_visible(path: str, root: str) -> bool:
    inside = Path(path).relative_to(root) if Path(path).is_relative_to(root) else None
    return inside is not None and not any(part.startswith(".") and part not in IGNORE_FILES for part in inside.parts)


def follow(
    changes: Iterator[set[str]],
    take: Callable[[set[str]], IngestReport],
    tell: Callable[[IngestReport], None],
    first: IngestReport,
) -> IngestReport:
    """Ingest changes until Ctrl-C, and return the totals, including those of ``first``.

    A repeated warning is printed once. An error, such as a model server that is down, is printed, and the next change
    includes the failed ones.
    """
    total, left = first, set[str]()
    said, gone, left_out = {*first.warnings}, {*first.vanished}, first.left_out
    try:
        for changed in changes:
            left |= changed
            if not changed:
                continue
            try:
                report = take(left)
            except RagistryError as error:
                error_line(str(error))
                continue
            left = set()
            total.merge(report)
            report.warnings = [line for line in report.warnings if line not in said]
            report.vanished, gone = [name for name in report.vanished if name not in gone], {*report.vanished}
            said.update(report.warnings)
            left_out, report.left_out = report.left_out, {} if report.left_out == left_out else report.left_out
            if report.added or report.updated or report.deleted or report.failed or report.warnings or report.vanished:
                tell(report)
    except KeyboardInterrupt:
        pass
    return total
