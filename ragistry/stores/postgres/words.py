"""The word index of one reader: the index of a `LocalStore` that follows the changes of a Postgres database.

Each folder has its own index, so that word searches cost the server little and work with a standby. The alternative is
a table of postings on the server. With 50,000 chunks (`benchmarks/postgres_store.py`) a query takes 1.3 ms here and 96
ms there, replacing a source of 40 chunks 13 and 129 ms, and building the index 25 and 41 s.

The position of an index is the number of the last applied change. Numbers follow the order of commits
(`Database.write`), so no change below this number can appear later.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ragistry.stores.local.index import SnapshotPosition, Stale, Stamp
from ragistry.stores.local.words import WordIndex, WordView
from ragistry.stores.lock import WriterLock
from ragistry.stores.postgres.database import Connection, Head, read_head
from ragistry.stores.postgres.rows import chunks_where, selected_keys
from ragistry.stores.postgres.where import Sql
from ragistry.stores.records import Keys, Scores
from ragistry.types import Chunk

LOCK_SECONDS = 60.0
"""Seconds to wait for another process that updates the same index."""


@dataclass(slots=True)
class FollowedDatabase:
    """The database of an index (`IndexDatabase`), and the lock of its folder."""

    lock: WriterLock
    connection: Connection | None = None

    def read(self) -> AbstractContextManager[Any]:
        return nullcontext(self.connection)

    def write(self) -> AbstractContextManager[Any]:
        raise AssertionError("an index writes nothing to Postgres")


@dataclass(frozen=True, slots=True)
class ChangePosition:
    """A `Head` as the position of an index, counted in changes."""

    head: Head

    @property
    def version(self) -> int:
        return self.head.number

    next_key = removed = version

    @property
    def generation(self) -> int:
        return self.head.generation


class FollowingWords(WordIndex):
    """A word index in ``folder`` that follows a database; ``place``: its name in messages."""

    def __init__(self, folder: Path, place: str, *, language: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        lock = WriterLock(folder / "lock", f"the word index {str(folder)!r}", wait=LOCK_SECONDS)
        self.place = place
        self.source = FollowedDatabase(lock)
        super().__init__(self.source, folder, language=language)

    def head(self, connection: Connection) -> SnapshotPosition:
        return ChangePosition(read_head(connection, self.place))

    def new_mark(self, head: ChangePosition) -> str:
        return head.head.mark

    def known_mark(self, connection: Connection, version: int) -> str:
        row = connection.execute("SELECT mark FROM changes WHERE number = %s", (version,)).fetchone()
        return str(row[0]) if row else ""

    def record(self, stamp: Stamp) -> None:
        """Does nothing: the mark is that of a change in the database."""

    def added(self, connection: Connection, since: Stamp | None) -> Iterator[tuple[int, Chunk]]:
        if since is None:
            return chunks_where(connection, Sql("true"))
        newer = "key IN (SELECT unnest(added) FROM changes WHERE number > %s)"
        return chunks_where(connection, Sql(newer, (since.version,)))

    def removed(self, connection: Connection, since: Stamp) -> Iterator[int]:
        rows = connection.execute("SELECT unnest(removed) FROM changes WHERE number > %s", (since.version,))
        return (key for (key,) in rows)

    def bring_up_in(self, connection: Connection, reason: str = "") -> None:
        """Like `bring_up`, for the snapshot of this connection, which must begin while the lock is held."""
        with self.source.lock.writing():
            self.source.connection = connection
            try:
                self.bring_up(reason)
            finally:
                self.source.connection = None

    def reached(self) -> int:
        """Return the number of the last change in the files; 0 without files."""
        try:
            return self._stamp().version
        except Stale:
            return 0

    def found(
        self,
        connection: Connection,
        view: WordView,
        query: str,
        top_k: int,
        which: Sql | None,
        *,
        every: bool,
    ) -> tuple[Keys, Scores]:
        """Return the result of `best` without removed chunks that the index still has."""
        if which is not None:
            return self.best(view, query, top_k, selected_keys(connection, which), every=every)
        gone = np.fromiter(self.removed(connection, view.stamp), dtype=np.int64)
        keys, scores = self.best(view, query, top_k + len(gone), None, every=every)
        stored = ~np.isin(keys, gone)
        return keys[stored], scores[stored]

    def lacking(self, connection: Connection, view: WordView, query: str, which: Sql | None) -> list[str]:
        """Return the result of `unknown` in this snapshot."""
        is_behind = which is None and any(True for _ in self.removed(connection, view.stamp))
        allowed = selected_keys(connection, which or Sql("true")) if which is not None or is_behind else None
        return self.unknown(view, query, allowed)

    def lag(self, view: WordView, head: SnapshotPosition) -> int:
        """Count the changes that the index has not applied."""
        return head.version - view.stamp.version

    def check(self, connection: Connection, view: WordView) -> str:  # noqa: ARG002
        return ""
