"""The report of an ingest, and its JSON form."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ragistry.errors import RagistryError, SourceNotFoundError, public_name
from ragistry.readers.formats import is_readable
from ragistry.readers.text_files import CREDENTIALS
from ragistry.types import IngestedFolder
from ragistry.utils.quoting import visible_line
from ragistry.utils.wording import agreeing, numbered


@dataclass(frozen=True, slots=True)
class Failure:
    """A source that was not ingested, and the reason."""

    source: str
    cause: RagistryError

    @property
    def error(self) -> str:
        """The reason, in one line."""
        return str(self.cause)


@dataclass(slots=True)
class IngestReport:
    """The outcome of every source.

    Each source is in one of the first five lists, by its name in the collection.

    Attributes:
        added: New sources.
        updated: Changed sources.
        skipped: Unchanged sources.
        deleted: Deleted sources.
        failed: Sources that were not ingested.
        vanished: Sources of the collection whose files are no longer in the folder.
        warnings: Warnings about ingested sources, and about links and unsupported formats.
        unread: Number of documents of each unsupported format, by suffix.
        left_out: Number of other files of folders and zip files that were left out. By suffix: files that are not text,
            lock files, source maps, minified and encoded text, and text over 5 MB. By the reason: ignored files, keys
            and credentials.
        chunks: Number of chunks written.
        embedded: Number of chunks embedded.
    """

    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unread: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    chunks: int = 0
    embedded: int = 0

    def merge(self, other: IngestReport) -> None:
        """Add the outcomes of another ingest."""
        for name in ("added", "updated", "skipped", "deleted", "failed", "vanished", "warnings"):
            getattr(self, name).extend(getattr(other, name))
        self.vanished = list(dict.fromkeys(self.vanished))  # nested folders may both report a source
        self.unread = dict(Counter(self.unread) + Counter(other.unread))
        self.left_out = dict(Counter(self.left_out) + Counter(other.left_out))
        self.chunks += other.chunks
        self.embedded += other.embedded


ALL_KINDS = 1_000_000
"""Number of characters in which all reasons and suffixes have room."""
LINE = 80
"""Number of characters of a line in a terminal."""
REASONS = ("ignored by ", "in ", CREDENTIALS)
"""How the reasons begin why files are left out, which are counted as suffixes are."""


def left_out_kinds(counts: Mapping[str, int], width: int = 60) -> str:
    """List numbers of files by reason and suffix, the most frequent first, in about ``width`` characters.

    No reason is left out.
    """
    ordered = sorted(Counter(counts).most_common(), key=lambda one: not one[0].startswith(REASONS))
    kinds = [f"{number:,} {kind}" for kind, number in ordered]
    if len(", ".join(kinds)) <= width:
        return ", ".join(kinds)
    fitting = sum(len(", ".join(kinds[:end])) < width - len(", 999 others") for end in range(1, len(kinds)))
    fitting = max(1, fitting, sum(kind.startswith(REASONS) for kind in counts))
    rest = sum(number for _, number in ordered[fitting:])
    return ", ".join([*kinds[:fitting], *[f"{rest:,} others"] * bool(rest)])


def left_out_line(report: IngestReport) -> str:
    """Return one line about the files that were left out; empty if there were none."""
    if not report.left_out:
        return ""
    more = "; read with --all" if is_surprising(report.left_out) else "; read text with --all"
    return f"{left_out_kinds(report.left_out, LINE - len(f'left out: {more}'))}{more}"


def folder_line(folder: IngestedFolder, shown: str = "") -> str:
    """Return one line about what a folder leaves out; ``shown``: its name, in place of the path."""
    options = "".join(f"; --exclude {shlex.quote(one)}" for one in folder.exclude)
    kinds = left_out_kinds(folder.counts, ALL_KINDS) or "nothing"
    return visible_line(f"left out of {shown or folder.folder}: {kinds}{options}", 2_000)


def is_surprising(counts: Mapping[str, int]) -> bool:
    """Return whether files were left out that would be read if their content, name or folder were another."""
    return any(is_readable(kind) or kind.startswith(REASONS) for kind in counts)


def say_written(error: RagistryError, report: IngestReport) -> None:
    """Add the number of written sources to the message of an error."""
    written = len(report.added) + len(report.updated)
    if written:
        done = numbered(written, "[source was|sources were] written before and")
        error.args = (f"{error}; {done} {agreeing(written, '[stays|stay]')}; ingest again to continue",)


def without_missing(failed: Sequence[Failure], folder: str | Path) -> list[Failure]:
    """Replace the failures of all files below a vanished folder by one failure."""
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
        "ingest it again when it exists"
    )
    return [*(one for one in failed if one not in missing), Failure(os.fspath(folder), error)]


def report_as_mapping(report: IngestReport, collection: str) -> dict[str, Any]:
    """Convert a report to JSON values.

    This form is used by `ragistry ingest --json`, by jobs, and by the client.
    """
    values = {one.name: getattr(report, one.name) for one in fields(report)}
    return values | {
        "collection": collection,
        "failed": [
            {"source": one.source, "error": one.error, "type": public_name(type(one.cause))} for one in report.failed
        ],
    }


def report_from_mapping(values: Mapping[str, Any], error_of: Callable[[str, str], RagistryError]) -> IngestReport:
    """Convert the values of `report_as_mapping` to a report.

    Args:
        values: The values.
        error_of: Creates an error from the name of its class and its message.
    """
    failed = [Failure(one["source"], error_of(one["type"], one["error"])) for one in values["failed"]]
    known = {one.name for one in fields(IngestReport)}
    return IngestReport(**{name: value for name, value in values.items() if name in known} | {"failed": failed})
