"""Files that are not searchable, and what was left out of folders, as rows; see `protocols.UnsearchableStore`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ragistry.stores.records import Name, compact_json, entry_from, entry_row
from ragistry.types import IngestedFolder, Unsearchable

if TYPE_CHECKING:
    from ragistry.stores.local.database import Database

TABLES = """
CREATE TABLE IF NOT EXISTS unsearchable (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    collection TEXT NOT NULL,
    source_file TEXT NOT NULL,
    place TEXT NOT NULL,                    -- path or address, or nothing
    folder TEXT NOT NULL,
    kind TEXT NOT NULL,
    reason TEXT NOT NULL,
    at REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS unsearchable_by_place ON unsearchable (collection, place, source_file);
CREATE TABLE IF NOT EXISTS folders (
    collection TEXT NOT NULL,
    folder TEXT NOT NULL,
    counts TEXT NOT NULL,                   -- number of files that were left out, by reason
    exclude TEXT NOT NULL,                  -- patterns
    PRIMARY KEY (collection, folder)
) WITHOUT ROWID;
"""
"""The tables as format 15 has them; a later format changes them by a step."""
OF_FILE = "collection = ? AND place = ? AND (place != '' OR source_file = ?)"


class UnsearchableRows:
    """The methods of `protocols.UnsearchableStore` that `LocalStore` has beside `replace_source`."""

    _database: Database

    def unsearchable(self, after: int = 0, limit: int = 1_000) -> list[tuple[int, Unsearchable]]:
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT unsearchable.*, metadata FROM unsearchable LEFT JOIN sources USING (collection, source_file) "
                "WHERE key > ? ORDER BY key LIMIT ?",
                (after, limit),
            )
            return [(key, entry_from(fields, source)) for key, *fields, source in rows]

    def record_unsearchable(
        self,
        entries: Sequence[Unsearchable] = (),
        *,
        gone: Sequence[int] = (),
        folders: Sequence[IngestedFolder] = (),
    ) -> None:
        with self._database.delete() if gone else self._database.write() as connection:
            connection.executemany("DELETE FROM unsearchable WHERE key = ?", ((key,) for key in gone))
            put(connection, entries)
            for one in folders:
                connection.execute(
                    "DELETE FROM folders WHERE (collection, folder) = (?, ?)", (one.collection, one.folder)
                )
                if one.counts or one.exclude:
                    row = (one.collection, one.folder, compact_json(dict(one.counts)), compact_json(one.exclude))
                    connection.execute("INSERT INTO folders VALUES (?, ?, ?, ?)", row)

    def folders(self, collection: str | None = None) -> list[IngestedFolder]:
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT * FROM folders WHERE ?1 IS NULL OR collection = ?1 ORDER BY collection, folder", (collection,)
            )
            return [
                IngestedFolder(name, folder, json.loads(counts), tuple(json.loads(exclude)))
                for name, folder, counts, exclude in rows
            ]


def put(connection: sqlite3.Connection, entries: Sequence[Unsearchable]) -> None:
    """Write entries; each replaces the one of its file."""
    files = ((one.collection, one.source_path, one.source_file) for one in entries)
    connection.executemany(f"DELETE FROM unsearchable WHERE {OF_FILE}", files)
    connection.executemany(
        "INSERT INTO unsearchable (collection, source_file, place, folder, kind, reason, at) VALUES (?,?,?,?,?,?,?)",
        map(entry_row, entries),
    )


def drop(connection: sqlite3.Connection, name: Name, places: Iterable[str]) -> None:
    """Remove the entries of a source at these places."""
    files = ((name[0], place, name[1]) for place in places)
    connection.executemany(f"DELETE FROM unsearchable WHERE {OF_FILE}", files)


def move_file(connection: sqlite3.Connection, name: Name, place: str, to: str) -> None:
    """Move the entry of a source to another collection."""
    connection.execute(f"UPDATE unsearchable SET collection = ? WHERE {OF_FILE}", (to, name[0], place, name[1]))


def move_all(connection: sqlite3.Connection, collection: str, to: str) -> None:
    """Move the entries and folders of a collection to another one."""
    for table in ("unsearchable", "folders"):
        connection.execute(f"UPDATE OR REPLACE {table} SET collection = ? WHERE collection = ?", (to, collection))
