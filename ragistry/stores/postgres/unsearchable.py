"""Files that are not searchable, and what was left out of folders, as rows; see `protocols.UnsearchableStore`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ragistry.stores.postgres.where import escaped, unescaped
from ragistry.stores.records import Name, compact_json, entry_from, entry_row
from ragistry.types import IngestedFolder, Unsearchable

if TYPE_CHECKING:
    from ragistry.stores.postgres.database import Connection, Transaction

TABLES = """
CREATE TABLE unsearchable (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    collection text NOT NULL,
    source_file text NOT NULL,
    place text NOT NULL,                     -- path or address, or nothing
    folder text NOT NULL,
    kind text NOT NULL,
    reason text NOT NULL,
    at double precision NOT NULL
);
CREATE INDEX unsearchable_by_place ON unsearchable (collection, md5(place));  -- a path may be too long for an index
CREATE TABLE folders (
    collection text COLLATE "C" NOT NULL,
    folder text COLLATE "C" NOT NULL,
    counts text NOT NULL,                    -- number of files that were left out, by reason
    exclude text NOT NULL                    -- patterns
);
"""
"""The tables as format 4 has them; a later format changes them by a step."""
OF_FILE = "collection = %s AND md5(place) = md5(%s) AND (place != '' OR source_file = %s)"


class UnsearchableRows:
    """The methods of `protocols.UnsearchableStore` that `PostgresStore` has beside `replace_source`."""

    _read: Callable[[Callable[[Connection], Any]], Any]
    _write: Callable[[Callable[[Transaction], Any]], Any]

    def unsearchable(self, after: int = 0, limit: int = 1_000) -> list[tuple[int, Unsearchable]]:
        query = (
            "SELECT key, unsearchable.collection, unsearchable.source_file, place, folder, kind, reason, at, info "
            "FROM unsearchable LEFT JOIN sources USING (collection, source_file) WHERE key > %s ORDER BY key LIMIT %s"
        )
        rows = self._read(lambda connection: connection.execute(query, (after, limit)).fetchall())
        return [(key, entry_from([*map(unescaped, texts), at], source)) for key, *texts, at, source in rows]

    def record_unsearchable(
        self,
        entries: Sequence[Unsearchable] = (),
        *,
        gone: Sequence[int] = (),
        folders: Sequence[IngestedFolder] = (),
    ) -> None:
        def record(write: Transaction) -> None:
            connection = write.connection
            connection.execute("DELETE FROM unsearchable WHERE key = ANY(%s::bigint[])", (list(gone),))
            put(connection, entries)
            for one in folders:
                name = escaped(one.collection), escaped(one.folder)
                connection.execute("DELETE FROM folders WHERE collection = %s AND folder = %s", name)
                if one.counts or one.exclude:
                    row = (*name, compact_json(dict(one.counts)), compact_json(one.exclude))
                    connection.execute("INSERT INTO folders VALUES (%s, %s, %s, %s)", row)

        self._write(record)

    def folders(self, collection: str | None = None) -> list[IngestedFolder]:
        name = None if collection is None else escaped(collection)
        query = "SELECT * FROM folders WHERE %s::text IS NULL OR collection = %s ORDER BY collection, folder"
        rows = self._read(lambda connection: connection.execute(query, (name, name)).fetchall())
        return [
            IngestedFolder(unescaped(name), unescaped(folder), json.loads(counts), tuple(json.loads(exclude)))
            for name, folder, counts, exclude in rows
        ]


def put(connection: Connection, entries: Sequence[Unsearchable]) -> None:
    """Write entries; each replaces the one of its file."""
    if entries:
        files = [map(escaped, (one.collection, one.source_path, one.source_file)) for one in entries]
        connection.cursor().executemany(f"DELETE FROM unsearchable WHERE {OF_FILE}", map(list, files))
        connection.cursor().executemany(
            "INSERT INTO unsearchable (collection, source_file, place, folder, kind, reason, at) "
            "VALUES (%s, %s, %s, %s, %s, %s, %s)",
            [[escaped(field) if isinstance(field, str) else field for field in entry_row(one)] for one in entries],
        )


def drop(connection: Connection, name: Name, places: Iterable[str]) -> None:
    """Remove the entries of a source at these places."""
    collection, source_file = map(escaped, name)
    connection.execute(
        "DELETE FROM unsearchable WHERE collection = %s AND md5(place) IN (SELECT md5(unnest(%s::text[]))) "
        "AND (place != '' OR source_file = %s)",
        (collection, list(map(escaped, places)), source_file),
    )


def move_file(connection: Connection, name: Name, place: str, to: str) -> None:
    """Move the entry of a source to another collection."""
    values = list(map(escaped, (to, name[0], place, name[1])))
    connection.execute(f"UPDATE unsearchable SET collection = %s WHERE {OF_FILE}", values)


def move_all(connection: Connection, collection: str, to: str) -> None:
    """Move the entries and folders of a collection to another one."""
    names = escaped(to), escaped(collection)
    connection.execute(
        "DELETE FROM folders WHERE collection = %s AND folder IN (SELECT folder FROM folders WHERE collection = %s)",
        names,
    )
    for table in ("unsearchable", "folders"):
        connection.execute(f"UPDATE {table} SET collection = %s WHERE collection = %s", names)
