"""What an ingest did with every source."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ragistry.errors import RagistryError


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
