"""How ``store.db`` comes to be: its tables, its version, and that it is never made anew where one was before."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from time import time
from uuid import uuid4

from ragistry.errors import StoreCorruptError, StoreError
from ragistry.stores import meta
from ragistry.stores.database_errors import translated
from ragistry.stores.row_checksums import row_checksum
from ragistry.stores.stamp import FILE as MADE_FROM

VERSION = 2
FILE, MARKER = "store.db", "store.version"
ABANDONED = 60.0
"""Seconds after which the beginnings of a database are taken for those of a process that was killed."""

META_IS_CHECKED = """
CREATE TRIGGER meta_is_checked BEFORE UPDATE ON meta BEGIN
    SELECT RAISE(ABORT, 'it is whole, but of a newer version of this program now; go on with that one');
END;
"""
"""A process of version 1 that still has the file open updates `meta` whenever it writes, and knows of no checksum.
This version only replaces rows, which is no update."""
SCHEMA = f"""
-- `checksum`, here and below: see `row_checksums`.
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    checksum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
{META_IS_CHECKED}
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
    checksum INTEGER NOT NULL,
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
    has_code ANY,
    checksum INTEGER NOT NULL
) STRICT;
CREATE INDEX chunks_by_source ON chunks (source);
CREATE INDEX chunks_by_text ON chunks (text_hash);
CREATE INDEX chunks_by_page ON chunks (page) WHERE page IS NOT NULL;
CREATE INDEX chunks_by_section ON chunks (section) WHERE section IS NOT NULL;
CREATE INDEX chunks_by_code ON chunks (has_code) WHERE has_code IS NOT NULL;

-- The vectors of a source's chunks as one array of float32, a row a chunk in the order of the keys.
CREATE TABLE vectors (
    source INTEGER PRIMARY KEY REFERENCES sources (id) ON DELETE CASCADE,
    data BLOB NOT NULL,
    checksum INTEGER NOT NULL
) STRICT;

-- The same of another embedder, while they are being made (`reembedding`).
CREATE TABLE next_vectors (
    source INTEGER PRIMARY KEY REFERENCES sources (id) ON DELETE CASCADE,
    data BLOB NOT NULL,
    checksum INTEGER NOT NULL
) STRICT;

-- Keys of which an index has yet to hear: of a chunk that is there, or that is gone.
CREATE TABLE lexical_outbox (key INTEGER PRIMARY KEY) STRICT;
CREATE TABLE vector_outbox (key INTEGER PRIMARY KEY) STRICT;
"""


def create(folder: Path) -> None:
    """Make the file where there has never been one; it gets its name when it is whole."""
    path, marker = folder / FILE, folder / MARKER
    was_here = marker.exists() or _has_remains(folder)  # asked first, because all these are made after the file
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
                first: dict[str, str | int] = {
                    "version": VERSION,
                    "store": uuid4().hex,
                    "state": 0,
                    "generation": 0,
                    "next_key": 1,
                }
                for name, value in first.items():
                    meta.put(connection, name, value)
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


def identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from another that takes its place while it is open; None where there is none."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


def _has_remains(folder: Path) -> bool:
    """Whether there is what only a database that was here can have left: an index, or writes of the last process."""
    return (folder / f"{FILE}-wal").exists() or any(folder.glob(f"*/{MADE_FROM}"))


def _mark(marker: Path) -> None:
    marker.write_text(f"{VERSION}\n", encoding="utf-8")


def version_of(connection: sqlite3.Connection) -> str:
    """The version of the program that the file is for; what its checksum says, where that is of this one."""
    _, version, *checksum = connection.execute("SELECT * FROM meta WHERE key = 'version'").fetchone() or ("", "?")
    return str(VERSION if checksum == [row_checksum("version", VERSION)] else version)


def check_version(connection: sqlite3.Connection, path: Path) -> None:
    """Raises `StoreError` where another version of this program wrote the file."""
    version = version_of(connection)
    if version != str(VERSION):
        raise StoreError(
            f"{str(path)!r} has version {version!r}, this program reads version {VERSION}; "
            "use the program that wrote it, or ingest into a new folder"
        )
