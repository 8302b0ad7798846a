"""Keeps an index in step with the database: it hears what changed, and one that is broken is made again.

The database notes in an outbox the keys of which the index has yet to hear. Whether a key is new or gone is seen from
the chunks themselves, so that applying an outbox twice, as after a crash between two steps, does no harm.
"""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from ragistry.errors import StoreCorruptError, StoreError
from ragistry.stores.database import Database
from ragistry.stores.stamp import OUTDATED, OutdatedIndexError, Stamp

log = logging.getLogger(__name__)

AT_ONCE, VECTORS_AT_ONCE = 5_000, 2_000
"""Keys that an index hears of at once: some seconds, for which a fork waits."""
MISSING = "missing"


class Index(Protocol):
    """What can be made again from the database: pairs of a chunk's key and what is indexed of it."""

    def apply(self, add: Sequence[tuple[int, Any]], delete: Sequence[int]) -> None:
        """Take pairs in, in the place of what there is of their keys, and forget other keys; durable on return."""
        ...

    def count(self) -> int:
        """How many chunks the index holds."""
        ...

    def check(self, count: int) -> str:
        """What is wrong with the index, which should hold ``count`` chunks; empty where nothing is."""
        ...

    def close(self) -> None: ...


I = TypeVar("I", bound=Index)  # noqa: E741
Pairs = Callable[[sqlite3.Connection, list[int] | None], Iterable[tuple[int, Any]]]
"""Of these keys, or of all, those that are stored, each with what is indexed of it."""


class Upkeep(Generic[I]):
    """One index in its folder. Whatever writes is called by the holder of the store's lock, one thread at a time."""

    def __init__(
        self,
        database: Database,
        folder: Path,
        outbox: str,
        open_index: Callable[[Path], I],
        build: Callable[[Path, Iterable[tuple[int, Any]]], None],
        pairs: Pairs,
        *,
        of_vectors: bool = False,
    ) -> None:
        self.database = database
        self.of_vectors = of_vectors
        self.folder = folder
        self.outbox = outbox
        self._open_index = open_index
        self._build = build
        self._pairs = pairs
        self._index: I | None = None
        self._inherited: list[I] = []
        self._known: tuple[int, str | None] = -1, None
        self._pid = os.getpid()
        self._stamp = Stamp(folder, outbox, of_vectors=of_vectors)

    def pending(self, connection: sqlite3.Connection) -> int:
        """How many keys the index has yet to hear of."""
        return int(connection.execute(f"SELECT count(*) FROM {self.outbox}").fetchone()[0])

    def is_of(self, connection: sqlite3.Connection, state: int) -> bool:
        """Whether the index, as it was at the last look at it, holds just the chunks that the connection sees.

        Asked after a search: the mark in the folder changes before the index does. ``state``: that of the store.
        """
        mark, pending = connection.execute(
            f"SELECT (SELECT value FROM meta WHERE key = ?), EXISTS (SELECT * FROM {self.outbox})", (self.outbox,)
        ).fetchone()
        if pending or not self._stamp.is_of(mark):
            return False
        self._known = state, mark
        return True

    def known_to_be_of(self, state: int) -> I | None:
        """The index, if the last look at the database told that it holds what this state of the store does.

        That stays so as long as it is as known: a state is never written to.
        """
        return self.present if self._known[0] == state else None

    def is_as_known(self) -> bool:
        """Whether the folder has the mark that it had at the last look at the database; asked after a search."""
        return self._stamp.is_of(self._known[1])

    @property
    def present(self) -> I | None:
        """The index, if it was opened before, by this process and not one that forked it."""
        return self._index if self._pid == os.getpid() else None

    def opened(self) -> I | None:
        """The index as it lies there, to read; None where there is none that fits and can be opened."""
        if self.present is None and not self.unfit():
            try:
                index = self._open_index(self.folder)
            except StoreCorruptError:
                return None
            with self.database.snapshot() as connection:
                found = index.count()
                if not self.pending(connection) and found != _chunks(connection, found):
                    return None
            self._keep(index)
        return self.present

    def _keep(self, index: I) -> I:
        if self.present is None and self._index is not None:
            self._inherited.append(self._index)  # not let go of: to close it would close what the parent has open
        self._index, self._pid = index, os.getpid()
        return index

    def brought_up(self) -> I:
        """The index, sound and with everything that was written to the database.

        Made again where it is missing, cannot be read, does not hold what it should, or belongs to another database.
        """
        reason = self.unfit()
        if not reason:
            try:
                with _translated(self.folder):
                    return self._caught_up()
            except OutdatedIndexError:
                reason = OUTDATED
            except StoreCorruptError as error:
                reason = str(error)
        return self.rebuild(reason)

    def mended(self, broken: I | None, reason: str) -> I:
        """The same; made again also if it is still the one that broke. ``reason``: empty if none did."""
        index = self.brought_up()
        return self.rebuild(reason) if reason and index is broken else index

    def _caught_up(self) -> I:
        opened = self.present is None
        index = self.present or self._keep(self._open_index(self.folder))
        with self.database.read() as connection:
            keys = [key for (key,) in connection.execute(f"SELECT key FROM {self.outbox} ORDER BY key")]
        step = VECTORS_AT_ONCE if self.of_vectors else AT_ONCE
        for start in range(0, len(keys), step):
            self._apply(index, keys[start : start + step])
        if opened:
            found = index.count()
            with self.database.read() as connection:
                chunks = _chunks(connection, found)
            if found != chunks:
                raise StoreCorruptError(f"holding {found:,} chunks in place of {chunks:,}")
        return index

    def _apply(self, index: I, keys: list[int]) -> None:
        with self.database.read() as connection:
            present = list(self._pairs(connection, keys))
            gone = set(keys).difference(key for key, _ in present)
            mark = self._stamp.write(self.folder, connection, forgotten=self._stamp.forgotten + len(gone))
        with self.database.unforked():  # a child would inherit the index's own lock, and never give it back
            index.apply(present, sorted(gone))
        with self.database.write() as connection:
            connection.executemany(f"DELETE FROM {self.outbox} WHERE key = ?", [(key,) for key in keys])
            self._stamp.confirm(connection, mark)

    def unfit(self) -> str:
        """Why the index in the folder is not one of this database; empty where it is, also if it lags behind."""
        if not self.folder.exists():
            return MISSING
        with self.database.snapshot() as connection:
            return self._stamp.mismatch(connection)

    def rebuild(self, reason: str) -> I:
        """Make the index again from the database, beside the old one, and put it in its place."""
        if reason not in (MISSING, OUTDATED):
            log.warning("%s: the index is %s; making it again", self.folder, reason)
        self.close()
        new, old = self.folder.with_name(f"{self.folder.name}.new"), self.folder.with_name(f"{self.folder.name}.old")
        for left_over in (new, old):
            shutil.rmtree(left_over, ignore_errors=True)
        try:
            with _translated(self.folder):
                self._replace(new, old)
        finally:
            for left_over in (new, old):
                shutil.rmtree(left_over, ignore_errors=True)
        return self._keep(self._open_index(self.folder))

    def _replace(self, new: Path, old: Path) -> None:
        new.mkdir(parents=True)
        # The write transaction holds the database still, so that nothing is missed and the outbox can be emptied.
        with self.database.write() as connection:
            self._build(new, self._pairs(connection, None))
            mark = self._stamp.write(new, connection)
            if self.folder.exists():
                self.folder.rename(old)
            new.rename(self.folder)
            connection.execute(f"DELETE FROM {self.outbox}")
            self._stamp.confirm(connection, mark)

    def problem(self) -> str:
        """What is wrong with the index; empty where nothing is. What it has yet to hear of is no fault."""
        reason = self.unfit()
        if reason:
            return "" if reason in (MISSING, OUTDATED) else reason
        self.close()  # what is in memory says nothing of the files
        try:
            with _translated(self.folder):
                index = self._caught_up()
                with self.database.read() as connection:
                    chunks = _chunks(connection, index.count())
                return index.check(chunks)
        except OutdatedIndexError:
            return ""
        except StoreCorruptError as error:
            return str(error)

    def remains(self) -> str:
        """What was deleted and is still in the index's files; empty where nothing is."""
        forgotten = self._stamp.forgotten if self.of_vectors else 0
        return f"keeping {forgotten:,} vectors in its files that were deleted" if forgotten else ""

    def discard(self) -> None:
        """Remove the index; it is made again when it is needed."""
        self.close()
        # By one step: half an index would be a damaged one.
        old = self.folder.with_name(f"{self.folder.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        with _translated(self.folder), suppress(FileNotFoundError):
            self.folder.rename(old)
        shutil.rmtree(old, ignore_errors=True)

    def close(self) -> None:
        """Let go of the index's files."""
        if self._index is not None and self._pid == os.getpid():  # a forked child leaves its parent's alone
            self._index.close()
            self._index = None


def _chunks(connection: sqlite3.Connection, found: int) -> int:
    """How many chunks an index has to hold that holds ``found``: all on record, or those that did not get lost."""
    recorded = int(connection.execute("SELECT coalesce(sum(chunks), 0) FROM sources").fetchone()[0])
    if found != recorded:  # only then: to count the chunks takes longer
        there = int(connection.execute("SELECT count(*) FROM chunks").fetchone()[0])
        return found if found == there else recorded
    return recorded


@contextmanager
def _translated(folder: Path) -> Iterator[None]:
    """Errors of the file system as ours; the database has its own."""
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(
            f"the index at {str(folder)!r} cannot be written: {error.strerror!r}; nothing is lost; "
            "make room on the disk, or make the folder writable, and try again"
        ) from error
