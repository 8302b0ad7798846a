"""The one file that is the truth of a `LocalStore`: its tables, its version, its connections.

Everything else in the store's folder can be made again from it, so it is never made anew where one was before.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import time
from uuid import uuid4

from ragistry.errors import InvalidChunkError, StoreCorruptError, StoreError, StoreLockedError
from ragistry.stores import integrity
from ragistry.stores.rights import is_writable

log = logging.getLogger(__name__)

VERSION = 1
FILE, MARKER = "store.db", "store.version"
WRITABLE = "mode=rw"
BUSY_SECONDS = 5.0
ABANDONED = 60.0
"""Seconds after which the beginnings of a database are taken for those of a process that was killed."""
ERASE_MS = 500
"""How long a deletion waits for readers that still see what it deleted."""

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- A source: chunks whose keys follow one another from `first`. Chunks that belong to no source come in groups
-- without a name. `common`: metadata that all chunks share; `varying`: the keys in which they differ; `whole`: the
-- source is as it was ingested, no chunk of it was added or removed by itself.
CREATE TABLE sources (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    collection TEXT,
    source_file TEXT,
    first INTEGER NOT NULL,
    chunks INTEGER NOT NULL,
    common TEXT NOT NULL,
    varying TEXT NOT NULL,
    whole INTEGER NOT NULL,
    version INTEGER NOT NULL,
    UNIQUE (collection, source_file)
) STRICT;

-- `own`: what a chunk does not share with its source. The columns beside it are for conditions that are common.
CREATE TABLE chunks (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    source INTEGER NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    text_hash INTEGER NOT NULL,
    text TEXT NOT NULL,
    own TEXT NOT NULL,
    page ANY,
    section ANY,
    has_code ANY
) STRICT;
CREATE INDEX chunks_by_source ON chunks (source);
CREATE INDEX chunks_by_text ON chunks (text_hash);
CREATE INDEX chunks_by_page ON chunks (page) WHERE page IS NOT NULL;
CREATE INDEX chunks_by_section ON chunks (section) WHERE section IS NOT NULL;
CREATE INDEX chunks_by_code ON chunks (has_code) WHERE has_code IS NOT NULL;

-- The vectors of a source's chunks as one array of float32, a row a chunk in the order of the keys.
CREATE TABLE vectors (
    source INTEGER PRIMARY KEY REFERENCES sources (id) ON DELETE CASCADE,
    data BLOB NOT NULL
) STRICT;

-- The same of another embedder, while they are being made (`reembedding`).
CREATE TABLE next_vectors (
    source INTEGER PRIMARY KEY REFERENCES sources (id) ON DELETE CASCADE,
    data BLOB NOT NULL
) STRICT;

-- Keys of which an index has yet to hear: of a chunk that is there, or that is gone.
CREATE TABLE lexical_outbox (key INTEGER PRIMARY KEY) STRICT;
CREATE TABLE vector_outbox (key INTEGER PRIMARY KEY) STRICT;
"""


class Database:
    """Connections to ``store.db`` of a folder: as many as read at once, and one to write. Safe for threads and forks.

    A connection must not be used in a forked child, and not even closed there, which therefore gets its own.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        _create(folder)
        self._reading = threading.local()
        self._idle: dict[int, list[sqlite3.Connection]] = {}
        self._writers: dict[int, sqlite3.Connection] = {}
        self._guard = threading.RLock()
        self._closed = False
        self._keeps = True  # connections to a file that stays as it is serve once: somebody else may write it
        with self.read() as connection:
            _check_version(connection, self.path)

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A connection for this thread alone, the same in a block within; each statement sees one state."""
        with translated(self.path):
            pid, connection = getattr(self._reading, "connection", (0, None))
            if connection is not None and pid == os.getpid():
                yield connection
                return
            idle = self._idle.setdefault(os.getpid(), [])
            connection = idle.pop() if idle else self._connect()
            self._reading.connection = (os.getpid(), connection)
            try:
                yield connection
            finally:
                self._reading.connection = (0, None)
                self._give_back(connection)

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._guard:
            if self._closed or not self._keeps:
                connection.close()
            else:
                self._idle[os.getpid()].append(connection)

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """The same, with every statement inside seeing the same state."""
        with self.read() as connection:
            if connection.in_transaction:
                yield connection
                return
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("COMMIT")

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all that is written inside, or nothing of it. Threads take turns."""
        with self._guard, translated(self.path):
            connection = self._writers.get(os.getpid()) or self._connect()
            self._writers[os.getpid()] = connection
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException as error:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if isinstance(error, sqlite3.OperationalError):
                    self.erase()  # what was written in vain keeps its place on the disk, which may be full
                raise

    def erase(self) -> None:
        """Let what was deleted vanish from the disk, as far as no reader still sees it; else when it is next done."""
        with self._guard:
            try:
                if writer := self._writers.get(os.getpid()):
                    writer.execute(f"PRAGMA busy_timeout={ERASE_MS}")
                    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                    writer.execute(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000:.0f}")
            except sqlite3.OperationalError as error:
                log.warning("%s: what was deleted is not yet wiped from the disk: %s", self.path, error)

    def problems(self) -> list[str]:
        """What is wrong with the file, after reading all of it."""
        try:
            with self.read() as connection:
                found = [line for (line,) in connection.execute("PRAGMA integrity_check")]
                found += [str(row) for row in connection.execute("PRAGMA foreign_key_check")]
                found += integrity.faults(connection) if found == ["ok"] else []
        except StoreCorruptError as error:
            return [str(error)]
        return [f"{FILE}: {line}" for line in found if line != "ok"]

    def _connect(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreError(f"{str(self.path.parent)!r}: the store is closed; open it again")
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
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Close every connection; one that another thread is reading from is closed when it has done."""
        with self._guard:
            self._closed = True
            writer = self._writers.pop(os.getpid(), None)
            for connection in (*self._idle.pop(os.getpid(), ()), *filter(None, [writer])):
                connection.close()


def _create(folder: Path) -> None:
    """Make the file where there has never been one; it gets its name when it is whole."""
    path, marker = folder / FILE, folder / MARKER
    was_here = marker.exists()  # asked first, because it is made after the file
    size = path.stat().st_size if path.exists() else -1
    if size > 0:
        with suppress(OSError):
            if not marker.exists():  # its maker was killed before it made the marker
                _mark(marker)
            for unfinished in folder.glob(f".{FILE}.*"):
                if unfinished.stat().st_mtime < time() - ABANDONED:  # else another process may be at it
                    unfinished.unlink(missing_ok=True)
        return
    if size == 0 or was_here:
        raise StoreCorruptError(
            f"{str(path)!r} is {'gone' if size < 0 else 'empty'}, though there was a store here; "
            f"put the file back from a backup, or remove the folder {str(folder)!r} and ingest again"
        )
    with translated(path):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            new = folder / f".{FILE}.{uuid4().hex}"
            connection = sqlite3.connect(new, isolation_level=None)
            try:
                # Larger pages: a text or a source's vectors take few of them.
                connection.execute("PRAGMA page_size=16384")
                connection.execute("PRAGMA journal_mode=WAL")
                connection.executescript(SCHEMA)
                first = {"version": VERSION, "store": uuid4().hex, "state": 0, "generation": 0, "next_key": 1}
                connection.executemany("INSERT INTO meta VALUES (?, ?)", [(k, str(v)) for k, v in first.items()])
            finally:
                connection.close()
            with suppress(FileExistsError):  # another process was faster: the file is then its
                os.link(new, path)
            new.unlink()
            _mark(marker)
        except OSError as error:
            raise StoreError(
                f"cannot make a store in {str(folder)!r}: {error.strerror}; choose a folder that can be written"
            ) from error


def _mode(path: Path) -> str:
    """How SQLite opens the file: to write, or where that is not allowed, to read.

    A reader usually keeps a file of its own beside the database. Where it may not make one and nobody has a write
    under way, the database is taken for one that stays as it is.
    """
    if is_writable(path.parent):
        return WRITABLE
    return "mode=ro" if path.with_name(f"{FILE}-wal").exists() else "mode=ro&immutable=1"


def _mark(marker: Path) -> None:
    marker.write_text(f"{VERSION}\n", encoding="utf-8")


def _check_version(connection: sqlite3.Connection, path: Path) -> None:
    [version] = connection.execute("SELECT value FROM meta WHERE key = 'version'").fetchone() or ["?"]
    if version != str(VERSION):
        raise StoreError(
            f"{str(path)!r} has version {version!r}, this program reads version {VERSION}; "
            "use the program that wrote it, or ingest into a new folder"
        )


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Errors of SQLite as ours."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise InvalidChunkError(
            f"nothing was changed: {error.object[:80]!r} has half a character (a lone surrogate); take it out"
        ) from error
    except sqlite3.OperationalError as error:
        raise _operational(path, error) from error
    except sqlite3.DatabaseError as error:
        raise StoreCorruptError(
            f"{str(path)!r} is damaged ({error}); put it back from a backup, or ingest again into a new folder"
        ) from error


def _operational(path: Path, error: sqlite3.OperationalError) -> StoreError:
    code = getattr(error, "sqlite_errorname", "")
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StoreLockedError(f"{str(path)!r} is being written by another process; try again when it is done")
    if code.startswith("SQLITE_FULL"):
        return StoreError(f"no space left for {str(path)!r}; nothing was changed; free some space and try again")
    if code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return StoreError(f"{str(path)!r} cannot be opened or written ({error}); nothing was changed; check its rights")
    if code.startswith("SQLITE_IOERR"):
        return StoreError(f"{str(path)!r}: reading or writing failed ({error}); nothing was changed; check the disk")
    return StoreCorruptError(f"{str(path)!r} is damaged ({error}); put it back from a backup, or ingest again")
