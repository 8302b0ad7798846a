"""Connections to the one file that is the truth of a `LocalStore`.

Everything else in the store's folder can be made again from it.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from time import monotonic

from ragistry.errors import StoreCorruptError, StoreError
from ragistry.stores.database_errors import ERRORS, translated, translation
from ragistry.stores.database_file import FILE, check_version, create, identity, version_of
from ragistry.stores.database_migration import FORMER, add_checksums
from ragistry.stores.forking import write_lock
from ragistry.stores.integrity import Fault, faults
from ragistry.stores.rights import is_writable
from ragistry.utils.forking import brief_lock
from ragistry.utils.shown import one_line

log = logging.getLogger(__name__)

WRITABLE = "mode=rw"
BUSY_SECONDS = 5.0
LOOK_AGAIN = 0.1
"""Seconds for which readers take the file to be the one that was opened; who writes looks each time."""
ERASE_MS = 500
"""How long a deletion waits for readers that still see what it deleted."""


class ReplacedError(StoreError):
    """The store was removed, or another was put in its place, while it was open."""


class Database:
    """Connections to ``store.db`` of a folder: as many as read at once, and one to write. Safe for threads and forks.

    A connection must not be used in a forked child, and not even closed there, which therefore gets its own.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        create(folder)
        self._file = identity(self.path)
        self._looked = monotonic()
        self._reading = threading.local()
        self._idle: dict[int, list[sqlite3.Connection]] = {}
        self._writers: dict[int, sqlite3.Connection] = {}
        self._lasting: set[sqlite3.Connection] = set()
        self._guard = write_lock()
        self._pool = brief_lock()  # taken after the other, if both are; a reader does not wait for a write
        self._closed = False
        self._keeps = True  # connections to a file that stays as it is serve once: somebody else may write it
        try:
            with self.read() as connection:
                if version_of(connection) != FORMER:  # which can be read, and be brought to this one to be written
                    check_version(connection, self.path)
        except BaseException:
            self.close()
            raise

    def migrate(self, locked: Callable[[], AbstractContextManager[None]]) -> None:
        """Bring a file of the version before to this one, with the store's lock: wholly, or not at all."""
        with self.read() as connection:
            if version_of(connection) != FORMER:
                return
        if not is_writable(self.path.parent):
            raise StoreError(
                f"{str(self.path)!r} is of the version before, and is brought to this one when it is opened by "
                "somebody who may write it; open it so once, or copy the folder to where it may be written"
            )
        with locked(), self.write() as connection:
            if version_of(connection) == FORMER:  # else another process was faster
                log.info("%s is brought to the version of this program", self.path)
                add_checksums(connection)

    def read(self) -> AbstractContextManager[sqlite3.Connection]:
        """A connection for this thread alone, the same in a block within; each statement sees one state."""
        return _Reading(self, snapshot=False)

    def snapshot(self) -> AbstractContextManager[sqlite3.Connection]:
        """The same, with every statement inside seeing the same state."""
        return _Reading(self, snapshot=True)

    def _mine(self) -> sqlite3.Connection | None:
        """The connection that this thread is reading from, in this process and not one that forked it."""
        pid, connection = getattr(self._reading, "connection", (0, None))
        return connection if pid == os.getpid() else None

    def _take(self) -> tuple[sqlite3.Connection, list[sqlite3.Connection]]:
        """A connection for this thread, and those among which it belongs when it is given back."""
        pid = os.getpid()
        if monotonic() - self._looked > LOOK_AGAIN:
            self.check_file()
        with self._pool:
            idle = self._idle.setdefault(pid, [])
            connection = idle.pop() if idle else None
        connection = connection or self._connect()
        self._reading.connection = (pid, connection)
        return connection, idle

    def _give_back(self, connection: sqlite3.Connection, idle: list[sqlite3.Connection]) -> None:
        self._reading.connection = (0, None)
        with self._pool:
            if not self._closed and self._keeps and not connection.in_transaction:
                idle.append(connection)
                return
        connection.close()

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all that is written inside, or nothing of it. Threads take turns."""
        with self._guard, translated(self.path):
            self.check_file()
            connection = self._writer()
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except BaseException as error:
                with suppress(sqlite3.ProgrammingError):  # given up since, see `_writer`
                    connection.rollback()
                if isinstance(error, sqlite3.OperationalError):
                    self.erase()  # what was written in vain keeps its place on the disk, which may be full
                raise

    def unforked(self) -> AbstractContextManager[bool]:
        """A block during which no thread writes to the database, and for whose end a fork waits."""
        return self._guard

    def _writer(self) -> sqlite3.Connection:
        """The connection that writes; one that Ctrl-C left in a transaction is given up, and what it wrote with it."""
        writer = self._writers.get(os.getpid())
        if writer is not None and writer.in_transaction:
            del self._writers[os.getpid()]
            writer.close()
            writer = None
        if writer is None:
            writer = self._writers[os.getpid()] = self._connect()
        return writer

    def erase(self) -> None:
        """Let what was deleted vanish from the disk, as far as no reader still sees it; else when it is next done."""
        with self._guard:
            try:
                if writer := self._writers.get(os.getpid()):
                    # Nobody waits for those who read long: what they see vanishes when it is next done.
                    writer.execute(f"PRAGMA busy_timeout={0 if self._lasting else ERASE_MS}")
                    try:
                        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                    finally:
                        writer.execute(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000:.0f}")
            except sqlite3.OperationalError as error:
                log.warning("%s: what was deleted is not yet wiped from the disk: %s", self.path, error)

    @contextmanager
    def lasting(self) -> Iterator[sqlite3.Connection]:
        """A connection of its own, which sees one state however long it lasts: the thread may read and write beside.

        It takes no lock at its end, which comes at any time where a generator is collected.
        """
        pid = os.getpid()
        with translated(self.path):
            connection = self._connect()
            try:
                self._lasting.add(connection)
                connection.execute("BEGIN")
                yield connection
            finally:
                if pid == os.getpid():  # else it stays in the set: the parent's must not be closed here
                    connection.close()
                    self._lasting.discard(connection)

    def faults(self) -> list[Fault]:
        """What is wrong with the file, after reading all of it."""
        try:
            with self.snapshot() as connection:
                return list(faults(connection))
        except StoreCorruptError as error:
            return [Fault(one_line(str(error.__cause__ or error)))]

    def check_file(self) -> None:
        """Raise `StoreError` where the file that was opened is gone, or another has its place.

        What is read from the former one is not what is stored, and what is known of it does not fit the other.
        """
        try:
            found = identity(self.path)
        except PermissionError:  # what is open may still be read
            return
        except OSError as error:
            raise StoreError(f"{str(self.path)!r} cannot be looked at: {error.strerror!r}; check the disk") from error
        if found != self._file:
            raise ReplacedError(
                f"the store at {str(self.path.parent)!r} was removed or replaced while it was open here; nothing more "
                "is read from it or written to it: start this program again, or open the store again"
            )
        self._looked = monotonic()

    def _connect(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreError(f"{str(self.path.parent)!r}: the store is closed; open it again")
        self.check_file()
        mode = _mode(self.path)
        self._keeps &= mode == WRITABLE
        connection = sqlite3.connect(
            f"{self.path.as_uri()}?{mode}", uri=True, isolation_level=None, check_same_thread=False,
            timeout=BUSY_SECONDS,
        )  # fmt: skip
        # secure_delete: what is deleted is overwritten, not only forgotten. synchronous=FULL: what was said to be
        # stored is there after a power cut.
        try:
            for pragma in ("foreign_keys=ON", "secure_delete=ON", "synchronous=FULL"):
                connection.execute(f"PRAGMA {pragma}")
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Close every connection; one that another thread is reading from is closed when it has done."""
        with self._guard:
            with self._pool:
                self._closed = True
                idle = self._idle.pop(os.getpid(), [])
            writer = self._writers.pop(os.getpid(), None)
            for connection in (*idle, *filter(None, [writer])):
                connection.close()


class _Reading:
    """What `Database.read` and `Database.snapshot` give. As generators they took a tenth of a search."""

    __slots__ = ("_begun", "_connection", "_database", "_idle", "_snapshot")

    def __init__(self, database: Database, *, snapshot: bool) -> None:
        self._database = database
        self._snapshot = snapshot
        self._begun = False
        self._idle: list[sqlite3.Connection] | None = None

    def __enter__(self) -> sqlite3.Connection:
        connection = self._database._mine()
        try:
            if connection is None:
                connection, self._idle = self._database._take()
            self._connection = connection
            if self._snapshot and not connection.in_transaction:
                self._begun = True
                connection.execute("BEGIN")
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return connection

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            try:
                if self._begun:
                    self._connection.commit()
            finally:
                if self._idle is not None:
                    idle, self._idle = self._idle, None
                    self._database._give_back(self._connection, idle)
        except ERRORS as late:
            raise translation(self._database.path, late) from late
        if isinstance(error, ERRORS):
            raise translation(self._database.path, error) from error

    def __del__(self) -> None:
        """Where Ctrl-C came between the block and its end, this thread would else see that state for ever."""
        if self._idle is not None and self._database._mine() is self._connection:
            self.__exit__(None, None, None)


def _mode(path: Path) -> str:
    """How SQLite opens the file: to write, or where that is not allowed, to read.

    A reader usually keeps a file of its own beside the database. Where it may not make one and nobody has a write
    under way, the database is taken for one that stays as it is.
    """
    if is_writable(path.parent):
        return WRITABLE
    return "mode=ro" if path.with_name(f"{FILE}-wal").exists() else "mode=ro&immutable=1"
