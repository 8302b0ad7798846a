"""A version of a collection as the one file that is its truth: counted and copied without opening the store."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from ragistry.errors import StoreCorruptError
from ragistry.stores.catalog import state_of
from ragistry.stores.database import Database
from ragistry.stores.database_errors import translated
from ragistry.stores.database_file import FILE


def check_there(folder: Path) -> Path:
    """The folder itself; raises `StoreCorruptError` where it holds no store: opening it would make one."""
    if not (folder / FILE).is_file():
        raise StoreCorruptError(f"the store {str(folder)!r} is gone; index again, or put it back from a backup")
    return folder


def count_chunks(folder: Path) -> int:
    """How many chunks there are, whatever their number, in some 0.3 ms."""
    database = Database(check_there(folder).resolve())
    try:
        with database.read() as connection:
            [chunks] = connection.execute("SELECT coalesce(sum(chunks), 0) FROM sources").fetchone()
    finally:
        database.close()
    return int(chunks)


def state_of_version(folder: Path) -> int:
    """A number that grows with every write to the store in a folder."""
    database = Database(check_there(folder).resolve())
    try:
        with database.read() as connection:
            return state_of(connection)
    finally:
        database.close()


def copy_store(old: Path, new: Path) -> None:
    """Copy a store, which may be in use, into the folder ``new``, as of one moment.

    The index of words is made again from it, at some 0.03 ms a chunk. Raises `StoreError`.
    """
    check_there(old)
    new.mkdir(parents=True)
    with (
        translated(old / FILE),
        closing(sqlite3.connect(f"{(old / FILE).resolve().as_uri()}?mode=ro", uri=True)) as source,
        closing(sqlite3.connect(new / FILE)) as target,
    ):
        source.backup(target)
