"""Errors of SQLite, in the words of a store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ragistry.errors import InvalidChunkError, StoreCorruptError, StoreError, StoreLockedError
from ragistry.stores.row_checksums import Damaged
from ragistry.utils.shown import one_line

ERRORS = (sqlite3.DatabaseError, UnicodeEncodeError, UnicodeDecodeError)
"""What comes of SQLite. It cannot decode what it says itself of a file in which names are garbled."""


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Errors of SQLite as ours."""
    try:
        yield
    except ERRORS as error:
        raise translation(path, error) from error


def translation(path: Path, error: sqlite3.DatabaseError | UnicodeError) -> StoreError:
    """What an error of SQLite means for the store."""
    if isinstance(error, UnicodeEncodeError):
        return InvalidChunkError(
            f"nothing was changed: {error.object[:80]!r} has half a character (a lone surrogate); take it out"
        )
    said = one_line(str(error))
    if isinstance(error, Damaged):
        return StoreCorruptError(
            f"{str(path)!r} is damaged: {said}; `ragistry repair` tells what to ingest again, "
            "or put the file back from a backup"
        )
    if isinstance(error, sqlite3.OperationalError):
        return _operational(path, error, said)
    return StoreCorruptError(
        f"{str(path)!r} is damaged ({said}); put it back from a backup, or ingest again into a new folder"
    )


def _operational(path: Path, error: sqlite3.OperationalError, said: str) -> StoreError:
    code = getattr(error, "sqlite_errorname", "")
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StoreLockedError(f"{str(path)!r} is being written by another process; try again when it is done")
    if code.startswith("SQLITE_FULL"):
        return StoreError(f"no space left for {str(path)!r}; nothing was changed; free some space and try again")
    if code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return StoreError(f"{str(path)!r} cannot be opened or written ({said}); nothing was changed; check its rights")
    if code.startswith("SQLITE_IOERR"):
        return StoreError(f"{str(path)!r}: reading or writing failed ({said}); nothing was changed; check the disk")
    return StoreCorruptError(f"{str(path)!r} is damaged ({said}); put it back from a backup, or ingest again")
