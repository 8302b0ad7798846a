"""The format of ``store.db``, and the steps that bring a file of an earlier version to it.

Every change of what is stored, or of its meaning, raises `FORMAT` and adds a step. All steps of a file run in one
transaction: a process that is killed meanwhile leaves the old library. A step leaves what it would add and finds.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path

from ragistry.errors import StoreError

log = logging.getLogger(__name__)

FORMAT = 15
UNSEARCHABLE = """
CREATE TABLE IF NOT EXISTS unsearchable (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    collection TEXT NOT NULL,
    file TEXT NOT NULL,                     -- the place, else the name
    source_file TEXT NOT NULL,
    place TEXT NOT NULL,                    -- path or address
    folder TEXT NOT NULL,
    kind TEXT NOT NULL,
    reason TEXT NOT NULL,
    at REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS unsearchable_by_file ON unsearchable (collection, file);
CREATE TABLE IF NOT EXISTS folders (
    collection TEXT NOT NULL,
    folder TEXT NOT NULL,
    counts TEXT NOT NULL,                   -- number of files that were left out, by reason
    exclude TEXT NOT NULL                   -- patterns
);
"""
"""The tables that format 15 has added; a later format changes them by a step."""


def _add_waiting(connection: sqlite3.Connection) -> None:
    """Chunks may wait for their vectors."""
    connection.execute("CREATE TABLE waiting (key INTEGER PRIMARY KEY, refused INTEGER NOT NULL)")


def _add_line_feeds(connection: sqlite3.Connection) -> None:
    """Chunks have ``line_feeds`` in their metadata; readers expect that earlier ones have none."""


def _add_missing(connection: sqlite3.Connection) -> None:
    """Every chunk without a vector waits for it, also one that lost it in a damaged file."""
    connection.execute(
        "INSERT OR IGNORE INTO waiting SELECT key, 0 FROM chunks WHERE key NOT IN (SELECT key FROM vectors)"
    )
    # The index has passed these chunks, and would never read their vectors
    connection.execute("UPDATE head SET generation = generation + 1 WHERE changes()")


def _add_fit(connection: sqlite3.Connection) -> None:
    """How well the embedder knows the texts is recorded; the next ingest measures it."""
    if "fit" not in {name for _, name, *_ in connection.execute("PRAGMA table_info(head)")}:
        connection.execute("ALTER TABLE head ADD COLUMN fit TEXT")


def _add_unsearchable(connection: sqlite3.Connection) -> None:
    """Files that are not searchable are kept, from the next ingest on."""
    for statement in UNSEARCHABLE.split(";"):
        connection.execute(statement)


STEPS: Mapping[int, Callable[[sqlite3.Connection], None]] = {
    10: _add_waiting, 11: _add_line_feeds, 12: _add_missing, 13: _add_fit, 14: _add_unsearchable,
}  # fmt: skip
"""From each format that can be migrated, the step to the next one. It runs within the transaction."""


def format_of(connection: sqlite3.Connection) -> int:
    """Read the format of a database."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def check_format(connection: sqlite3.Connection, path: Path) -> None:
    """Raise `StoreError` unless a file has the format of this version; the message names the remedy."""
    found = format_of(connection)
    if found == FORMAT:
        return
    if found > FORMAT:
        raise StoreError(
            f"{str(path)!r} was written by a newer version of Ragistry (format {found}, this one has {FORMAT}); "
            "update Ragistry, or restore a backup that this version made"
        )
    if found in STEPS:
        raise StoreError(
            f"{str(path)!r} was written by an earlier version of Ragistry (format {found}, this one has {FORMAT}), and "
            "it cannot be written to migrate it; make its folder writable, or restore a `ragistry backup` of it in "
            "another folder"
        )
    raise StoreError(
        f"{str(path)!r} was written by a version of Ragistry that is too old to be migrated (format {found}, this one "
        f"has {FORMAT}); move the folder away and ingest again"
    )


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring a database to the format of this version, if there is a step for it; the caller holds the write lock.

    Raises:
        StoreError: A step failed; nothing was changed.
    """
    connection.execute("BEGIN IMMEDIATE")
    found = first = format_of(connection)  # another process may have been faster
    try:
        while found in STEPS and found < FORMAT:
            STEPS[found](connection)
            found += 1
            connection.execute(f"PRAGMA user_version = {found}")
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        connection.rollback()
        raise StoreError(
            f"{str(path)!r} could not be migrated from format {first} to {FORMAT} ({error}); nothing was changed; free "
            "some space and try again, or use the earlier version; `ragistry backup` makes a copy before you try"
        ) from error
    if found != first:
        log.warning(
            "%s: migrated from format %d to %d; earlier versions of Ragistry cannot open it anymore, but a `ragistry "
            "backup` that they made",
            path, first, found,
        )  # fmt: skip
