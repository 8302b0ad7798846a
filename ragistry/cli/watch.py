"""``ragistry ingest --watch``: follow what changes in folders."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragistry.cli.output import error_line
from ragistry.errors import RagistryError

if TYPE_CHECKING:
    from ragistry.library.ingest.report import IngestReport

TICK = 300
"""Milliseconds after which a watch says that nothing has changed."""
TOGETHER = 1_000
"""Milliseconds for which changes are gathered at most, while they follow one another closely."""


def changes_in(folders: Sequence[Path]) -> Iterator[set[str]]:
    """The paths that changed, again and again; with the first set, perhaps empty, watching has begun.

    Hidden files and folders do not count. Ctrl-C raises `KeyboardInterrupt`.
    """
    from watchfiles import watch

    roots = [os.path.realpath(folder) for folder in folders]
    for changes in watch(*roots, watch_filter=None, debounce=TOGETHER, rust_timeout=TICK, yield_on_timeout=True):
        yield {path for _, path in changes if any(_is_visible(path, root) for root in roots)}


def _is_visible(path: str, root: str) -> bool:
    inside = Path(path).relative_to(root) if Path(path).is_relative_to(root) else None
    return inside is not None and not any(part.startswith(".") for part in inside.parts)


def follow(
    changes: Iterator[set[str]],
    take: Callable[[set[str]], IngestReport],
    tell: Callable[[IngestReport], None],
    first: IngestReport,
) -> IngestReport:
    """Take in what changes until Ctrl-C, and return all that was done, ``first`` included.

    What a folder is always warned of is said once. An error, such as that of a model that is down, is said; the next
    change tries again what failed.
    """
    total, left = first, set[str]()
    said, gone = {*first.warnings}, {*first.vanished}
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
            if report.added or report.updated or report.deleted or report.failed or report.warnings or report.vanished:
                tell(report)
    except KeyboardInterrupt:
        pass
    return total
