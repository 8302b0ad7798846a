"""What an ingest did with every source."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragistry.errors import RagistryError, SourceNotFoundError, public_name
from ragistry.utils.wording import agreeing, numbered


@dataclass(frozen=True, slots=True)
class Failure:
    """A source that was not taken in, and why."""

    source: str
    cause: RagistryError

    @property
    def error(self) -> str:
        """The reason in one line."""
        return str(self.cause)


@dataclass(slots=True)
class IngestReport:
    """Every source stands in one of the five lists, by its name in the collection.

    ``vanished``: in the collection, but no longer in the folder. ``warnings``: what its owner should know of sources
    that were taken in, and of links and files of other formats that were not. ``unread``: how many files there were of
    each format that is not read, by suffix. ``chunks``: how many were written;
    ``embedded``: how many of them the model saw.
    """

    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unread: dict[str, int] = field(default_factory=dict)
    chunks: int = 0
    embedded: int = 0

    def merge(self, other: IngestReport) -> None:
        """Add what another ingest did."""
        for name in ("added", "updated", "skipped", "deleted", "failed", "vanished", "warnings"):
            getattr(self, name).extend(getattr(other, name))
        self.vanished = list(dict.fromkeys(self.vanished))  # from one folder that lies in another, hidden, for both
        self.unread = dict(Counter(self.unread) + Counter(other.unread))
        self.chunks += other.chunks
        self.embedded += other.embedded


def say_written(error: RagistryError, report: IngestReport) -> None:
    """Add to the message of an error that ended an ingest how many sources were written before."""
    written = len(report.added) + len(report.updated)
    if written:
        done = numbered(written, "[source was|sources were] written before and")
        error.args = (f"{error}; {done} {agreeing(written, '[stays|stay]')}; ingest again to go on",)


def without_missing(failed: Sequence[Failure], folder: str | Path) -> list[Failure]:
    """Replace the failures of files below a folder that has vanished meanwhile by one."""
    root = Path(folder).absolute()
    missing = [
        one
        for one in failed
        if isinstance(one.cause, SourceNotFoundError) and Path(one.source).absolute().is_relative_to(root)
    ]
    if len(missing) < 2 or Path(folder).exists():
        return list(failed)
    error = SourceNotFoundError(
        f"{os.fspath(folder)!r} vanished while it was read, and {len(missing):,} of its files were not ingested; "
        "ingest it again when it is there"
    )
    return [*(one for one in failed if one not in missing), Failure(os.fspath(folder), error)]


REPORTED = ("added", "updated", "skipped", "deleted", "vanished", "warnings", "unread", "chunks", "embedded")
"""Fields of an `IngestReport`, apart from ``failed``."""


def report_as_mapping(report: IngestReport, collection: str) -> dict[str, Any]:
    """What an ingest did; the form of `ragistry ingest --json`, of a job's report, and of the client."""
    return {
        "collection": collection,
        **{name: getattr(report, name) for name in REPORTED},
        "failed": [
            {"source": one.source, "error": one.error, "type": public_name(type(one.cause))} for one in report.failed
        ],
    }


def report_from_mapping(values: Mapping[str, Any], error_of: Callable[[str, str], RagistryError]) -> IngestReport:
    """The report of `report_as_mapping`; ``error_of`` makes an error of its type and message."""
    failed = [Failure(one["source"], error_of(one["type"], one["error"])) for one in values["failed"]]
    return IngestReport(failed=failed, **{name: values[name] for name in REPORTED})
