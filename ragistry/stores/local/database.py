"""``store.db``, the SQLite file with all data of a `LocalStore`: its tables, connections and transactions."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from time import time_ns
from typing import Any

from ragistry.errors import ConfigError, StoreCorruptError, StoreError, StoreLockedError
from ragistry.stores.chunk_checks import CheckedChunks
from ragistry.stores.local import migrations
from ragistry.stores.local.room import Room
from ragistry.stores.lock import WriterLock
from ragistry.stores.records import half_character_error
from ragistry.utils.disk import is_full
from ragistry.utils.wording import one_line, shown

log = logging.getLogger(__name__)

FILE = "store.db"
INDEXES = ("words", "vectors")
BUSY_SECONDS = 5.0
ERASE_MS = 500
"""Milliseconds that a deletion waits for readers that still see the deleted rows."""

SCHEMA = f"""
CREATE TABLE head (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL DEFAULT 0,     -- grows with every write; by the clock, so that two copies differ
    next_key INTEGER NOT NULL DEFAULT 1,    -- the key of the next chunk; a key is never used twice
    generation INTEGER NOT NULL DEFAULT 0,  -- grows when all vectors are replaced
    dimension INTEGER NOT NULL DEFAULT 0,   -- numbers in a vector; 0 before the first
    embedder TEXT,                          -- fingerprint, JSON
    next_embedder TEXT,                     -- the one whose vectors are in next_vectors
    fit TEXT                                -- how well the embedder knows the texts, JSON
);
INSERT INTO head (one) VALUES (1);
CREATE TABLE sources (
    id INTEGER PRIMARY KEY,
    collection TEXT NOT NULL,
    source_file TEXT NOT NULL,
    chunks INTEGER NOT NULL,
    whole INTEGER NOT NULL,                 -- 1: exactly the chunks that were ingested
    metadata TEXT NOT NULL,                 -- what all its chunks have in common
    varying TEXT NOT NULL                   -- the keys in which they may differ
);
-- Has every column, so that a source survives the loss of a page of the table, and the reverse.
CREATE INDEX sources_copy ON sources (collection, source_file, chunks, whole, metadata, varying);
CREATE UNIQUE INDEX sources_by_name ON sources (collection, source_file);
CREATE TABLE chunks (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    source INTEGER,                         -- NULL: belongs to no source
    hash BLOB NOT NULL,                     -- of the text
    metadata TEXT NOT NULL,                 -- without what the source has
    text TEXT NOT NULL
);
CREATE UNIQUE INDEX chunks_by_id ON chunks (id);
CREATE INDEX chunks_by_source ON chunks (source, metadata);
CREATE INDEX chunks_by_hash ON chunks (hash);
CREATE TABLE vectors (key INTEGER PRIMARY KEY, vector BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE waiting (key INTEGER PRIMARY KEY, refused INTEGER NOT NULL);  -- chunks that have no vector yet
CREATE TABLE next_vectors (key INTEGER PRIMARY KEY, vector BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE removed (number INTEGER PRIMARY KEY AUTOINCREMENT, key INTEGER NOT NULL);  -- for the indexes
CREATE TABLE indexes (name TEXT PRIMARY KEY, mark TEXT NOT NULL, removed INTEGER NOT NULL) WITHOUT ROWID;
{migrations.UNSEARCHABLE}
PRAGMA user_version = {migrations.FORMAT};
"""


@dataclass(frozen=True, slots=True)
class Head:
    """The counters of the store in one snapshot.

    ``removed``: number of the last removal. ``waiting``: whether chunks wait for their vectors. ``settled``: key
    up to which the index of vectors can follow, because no chunk before it waits, except refused ones.
    """

    version: int
    next_key: int
    generation: int
    dimension: int
    embedder: str | None
    next_embedder: str | None
    fit: str | None
    removed: int
    waiting: bool = False
    settled: int = 0


HEAD = (
    "SELECT version, next_key, generation, dimension, embedder, next_embedder, fit, "
    "coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'removed'), 0), EXISTS (SELECT 1 FROM waiting), "
    "coalesce((SELECT min(key) FROM waiting WHERE NOT refused), next_key) FROM head"
)


def store_folder(folder: Any) -> Path:
    """Resolve the path of the store's folder. Raises `ConfigError` for an invalid one."""
    try:
        path = Path(os.path.realpath(folder))
        str(path).encode()
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{shown(folder)} is not the path of a folder; give the path as text") from error
    if not folder or isinstance(folder, bytes):
        raise ConfigError(f"{shown(folder)} is not the path of a folder; give the path as text")
    return path


class Database:
    """Connections to ``store.db``: any number of readers, and one writer that holds the lock. Thread-safe."""

    def __init__(self, folder: Path, lock: WriterLock) -> None:
        self.path = folder / FILE
        self.lock = lock
        self.room = Room(self.path)
        self._alone: sqlite3.Connection | None = None
        self._turn = RLock()
        self._idle: list[sqlite3.Connection] = []
        self._writer: sqlite3.Connection | None = None
        self.commits = 0
        self.closed = False
        self._checked = False
        if not self.path.exists():
            self._create(folder)

    def _create(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        with self.lock.writing(), translated(self.path):
            if not self.path.exists():  # else another process was faster
                if remains := [name for name in INDEXES if (folder / name).exists()]:
                    raise StoreCorruptError(
                        f"{str(self.path)!r} is missing, but its indexes ({', '.join(remains)}) exist; restore it from "
                        "a backup, or remove the folder to create a new store"
                    )
                new = self.path.with_name(f"{FILE}.new")
                remove(new)
                create(new)
                new.replace(self.path)

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Provide a connection with one snapshot of the store."""
        if self.closed or self.lock.pid != os.getpid():
            self.check_usable()
        if not self._idle and reading_mode(self.path) == WRITABLE and self.room.is_short():
            with self._read_alone() as alone:
                if alone is not None:
                    yield alone
                    return
        frozen: tuple[int, ...] = ()  # the state of a file that must not change during the read
        try:
            connection = self._idle.pop()
        except IndexError:
            mode = reading_mode(self.path)
            with translated(self.path):
                connection = self._connect(mode)
            frozen = self._state() if mode == FROZEN else ()
        try:
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")
            if frozen and frozen != self._state():
                raise StoreLockedError(f"{str(self.path)!r} was written by another process meanwhile; try again")
        except ERRORS as error:
            connection.close()
            raise translation(self.path, error) from error
        except BaseException:
            with suppress(sqlite3.Error):
                connection.close()
            raise
        if self.closed or frozen:
            connection.close()
        else:
            self._idle.append(connection)

    @contextmanager
    def _read_alone(self) -> Iterator[sqlite3.Connection | None]:
        """Provide a snapshot that needs no disk space; None if the database is open elsewhere.

        An open database does not need disk space either. The snapshot excludes other threads and processes, so nested
        blocks use the same connection.
        """
        with self._turn:
            if self._alone is not None:
                yield self._alone
                return
            with translated(self.path):
                connection = open_alone(self.path)
            if connection is None:
                yield None
                return
            try:
                if migrations.format_of(connection) in migrations.STEPS:
                    self.room.check_any()  # raises, because space is what a migration lacks here
                migrations.check_format(connection, self.path)
                connection.execute("BEGIN")
                self._alone = connection
                yield connection
            except ERRORS as error:
                raise translation(self.path, error) from error
            finally:
                self._alone = None
                connection.close()

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Run one transaction under the lock: everything inside is stored, or nothing."""
        with self.lock.writing(), translated(self.path):
            if self.closed:
                raise self._closed_error()
            self.room.check_any()
            if self._writer is None:
                self._writer = self._connect(WRITABLE)
            connection = self._writer
            try:
                connection.execute("BEGIN IMMEDIATE")
                migrations.check_format(connection, self.path)  # a newer version may have migrated it meanwhile
                yield connection
                connection.execute("COMMIT")
                self.commits += 1
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.rollback()
                raise

    @contextmanager
    def delete(self) -> Iterator[sqlite3.Connection]:
        """Like `write`, for a deletion: it also works on a full disk, and erases the deleted rows."""
        with self.lock.writing(), self.room.for_deletion():
            with self.write() as connection:
                yield connection
            self.erase()

    def erase(self) -> None:
        """Erase deleted rows from the write-ahead log; if a reader still sees them, the next call erases them."""
        with self.lock.writing():
            if self._writer is not None:
                self._writer.execute(f"PRAGMA busy_timeout = {ERASE_MS}")
                try:
                    self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                except sqlite3.OperationalError as error:
                    log.warning("%s: deleted text is not erased from the disk yet: %s", self.path, error)
                finally:
                    self._writer.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000:.0f}")

    def close(self) -> None:
        """Close every unused connection; the others close when they are returned."""
        self.closed = True
        while self._idle:
            self._idle.pop().close()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _state(self) -> tuple[int, ...]:
        status = self.path.stat()
        return status.st_ino, status.st_mtime_ns, status.st_size

    def _connect(self, mode: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self.path.as_uri()}?{mode}", uri=True, isolation_level=None, check_same_thread=False,
            timeout=BUSY_SECONDS,
        )  # fmt: skip
        # secure_delete overwrites what is deleted. synchronous=FULL: a commit survives a power cut.
        try:
            connection.executescript("PRAGMA secure_delete = ON; PRAGMA synchronous = FULL")
            if not self._checked:
                self._check_format(connection, mode)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_format(self, connection: sqlite3.Connection, mode: str) -> None:
        """Check the format at the first connection, and migrate a file of an earlier version that can be written."""
        if mode == WRITABLE and migrations.format_of(connection) in migrations.STEPS:
            with self.lock.writing():
                self.room.check_any()
                migrations.migrate(connection, self.path)
        migrations.check_format(connection, self.path)
        self._checked = True

    def migrate_if_possible(self) -> None:
        """Migrate a file of an earlier version, even if it is damaged elsewhere. Raises `StoreError` if it cannot."""
        self.check_usable()
        with suppress(StoreCorruptError), self.read():
            pass

    def check_usable(self) -> None:
        """Raise `StoreError` if the store is closed, or was opened before this process was forked."""
        if self.closed:
            raise self._closed_error()
        self.lock.check_process()

    def _closed_error(self) -> StoreError:
        return StoreError(f"the store {str(self.path.parent)!r} is closed; open it again")


def create(path: Path) -> None:
    """Create an empty database. Raises `sqlite3.Error`."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA page_size = 8192")  # five vectors of 384 numbers
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(f"BEGIN; {SCHEMA} COMMIT;")
    finally:
        connection.close()


def remove(path: Path) -> None:
    """Remove a closed database and the files that belong to it."""
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        path.with_name(name).unlink(missing_ok=True)


def read_head(connection: sqlite3.Connection) -> Head:
    """Read the counters of the snapshot."""
    row = connection.execute(HEAD).fetchone()
    if row is None:
        raise sqlite3.DatabaseError("the row of counters is missing")
    return Head(*row)


def advance(connection: sqlite3.Connection, head: Head, added: CheckedChunks | None = None) -> None:
    """Update the counters after a write that added chunks."""
    count = len(added.ids) if added else 0
    dimension = (added.vectors.shape[1] if added and count else 0) or head.dimension
    connection.execute(
        "UPDATE head SET version = ?, next_key = ?, dimension = ?",
        (max(head.version + 1, time_ns()), head.next_key + count, dimension),
    )


WRITABLE, FROZEN = "mode=rw", "mode=ro&immutable=1"


def reading_mode(path: Path) -> str:
    """Return the mode to open a database for reading: SQLite writes a file next to it unless it is immutable."""
    if os.access(path.parent, os.W_OK) and os.access(path, os.W_OK):
        return WRITABLE
    return "mode=ro" if path.with_name(f"{FILE}-wal").exists() else FROZEN


def open_alone(path: Path) -> sqlite3.Connection | None:
    """Open a database such that SQLite keeps its index of the log in memory; None if it is open elsewhere.

    On a full disk, SQLite cannot create the file in which connections share this index, or the process dies when it
    writes to a page of it. The connection sees everything in the log, and excludes others.
    """
    connection = sqlite3.connect(f"{path.as_uri()}?{WRITABLE}", uri=True, isolation_level=None, timeout=0)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("SELECT count(*) FROM sqlite_master")
    except BaseException as error:
        connection.close()
        if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return None
        raise
    return connection


ERRORS = (sqlite3.Error, UnicodeError)
"""Exceptions of SQLite; damaged text raises `UnicodeDecodeError`."""


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Translate errors of SQLite in the block to `StoreError`."""
    try:
        yield
    except ERRORS as error:
        raise translation(path, error) from error


def translation(path: Path, error: Exception) -> StoreError:
    """Return the `StoreError` for an error of SQLite."""
    if isinstance(error, UnicodeEncodeError):
        return half_character_error(error)
    text, code = one_line(str(error)), getattr(error, "sqlite_errorname", "")
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StoreLockedError(f"{str(path)!r} is being written by another process; try again when it is done")
    if code.startswith("SQLITE_FULL") or (code.startswith("SQLITE_IOERR") and Room(path).is_short()):
        return StoreError(
            f"the disk of {str(path)!r} is full; earlier writes are safe, the last one was undone; free some space and "
            "try again"
        )
    if code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return StoreError(f"{str(path)!r} cannot be opened or written ({text}); make the file and its folder writable")
    if code.startswith("SQLITE_IOERR"):
        return StoreError(f"reading or writing {str(path)!r} failed ({text}); check the disk and `ulimit -f`")
    return StoreCorruptError(
        f"{str(path)!r} is damaged ({text}); run `ragistry repair` to save the readable part, or restore a backup"
    )


@contextmanager
def opening(folder: Path) -> Iterator[None]:
    """Raise errors of the system as `StoreError`, with what to do about the folder."""
    try:
        yield
    except OSError as error:
        remedy = (
            "free some space on the disk"
            if is_full(error)
            else "make the folder readable and writable, or name another"
        )
        raise StoreError(f"the store {str(folder)!r} cannot be opened: {error.strerror or error}; {remedy}") from error
