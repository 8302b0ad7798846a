"""Files that are not searchable, and what was left out of folders, as rows; see `protocols.UnsearchableStore`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Protocol

from ragistry.stores.records import Name, compact_json, entry_from, entry_row
from ragistry.types import IngestedFolder, Unsearchable


class Rows(Protocol):
    """A connection that takes ``?`` in place of a value."""

    def execute(self, query: str, values: Sequence[Any] = (), /) -> Any: ...

    def executemany(self, query: str, values: Iterable[Sequence[Any]], /) -> Any: ...


class UnsearchableRows:
    """The methods of `protocols.UnsearchableStore` beside those of `LibraryStore`.

    A store adds ``_rows``, which reads, ``_change``, which runs a function in a transaction, and the name of the column
    of sources with their metadata as JSON.
    """

    METADATA: ClassVar = "metadata"
    _rows: Callable[..., list[Any]]
    _change: Callable[..., None]

    def unsearchable(self, after: int = 0, limit: int = 1_000) -> list[tuple[int, Unsearchable]]:
        query = (
            "SELECT key, unsearchable.collection, unsearchable.source_file, place, folder, kind, reason, at, "
            f"{self.METADATA}, (SELECT {self.METADATA} FROM sources AS member "  # of a zip file or folder
            "WHERE member.collection = unsearchable.collection "
            "AND member.source_file > unsearchable.source_file || '/' "
            "AND member.source_file < unsearchable.source_file || '0' "  # the character after /
            f"AND (place = '' OR replace({self.METADATA}, place, '') <> {self.METADATA}) LIMIT 1) "
            "FROM unsearchable LEFT JOIN sources USING (collection, source_file) WHERE key > ? ORDER BY key LIMIT ?"
        )
        return [(key, entry_from(fields, own, member)) for key, *fields, own, member in self._rows(query, after, limit)]

    def record_unsearchable(
        self,
        entries: Sequence[Unsearchable] = (),
        *,
        gone: Sequence[int] = (),
        folders: Sequence[IngestedFolder] = (),
    ) -> None:
        def record(rows: Rows) -> None:
            rows.executemany("DELETE FROM unsearchable WHERE key = ?", [(key,) for key in gone])
            put(rows, entries)
            names = [(one.collection, one.folder) for one in folders]
            rows.executemany("DELETE FROM folders WHERE collection = ? AND folder = ?", names)
            kept = [
                (one.collection, one.folder, compact_json(dict(one.counts)), compact_json(one.exclude))
                for one in folders
                if one.counts or one.exclude
            ]
            rows.executemany("INSERT INTO folders VALUES (?, ?, ?, ?)", kept)

        self._change(record, erases=bool(gone))

    def folders(self, collection: str | None = None) -> list[IngestedFolder]:
        return [
            IngestedFolder(name, folder, json.loads(counts), tuple(json.loads(exclude)))
            for name, folder, counts, exclude in self._rows("SELECT * FROM folders ORDER BY collection, folder")
            if collection in (None, name)
        ]


def put(rows: Rows, entries: Sequence[Unsearchable]) -> None:
    """Write entries; each replaces the one of its file."""
    if entries:
        files = [(one.collection, one.source_path or one.source_file) for one in entries]
        rows.executemany("DELETE FROM unsearchable WHERE collection = ? AND file = ?", files)
        rows.executemany(
            "INSERT INTO unsearchable (file, collection, source_file, place, folder, kind, reason, at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [(file, *entry_row(one)) for (_, file), one in zip(files, entries, strict=True)],
        )


def drop(rows: Rows, name: Name, places: Iterable[str]) -> None:
    """Remove the entries of a source at these places."""
    for place in places:
        rows.execute("DELETE FROM unsearchable WHERE collection = ? AND file = ?", (name[0], place or name[1]))


def move_file(rows: Rows, name: Name, place: str, to: str) -> None:
    """Move the entry of a source to another collection."""
    query = "UPDATE unsearchable SET collection = ? WHERE collection = ? AND file = ?"
    rows.execute(query, (to, name[0], place or name[1]))


def move_all(rows: Rows, collection: str, to: str) -> None:
    """Move the entries and folders of a collection to another one."""
    rows.execute(
        "DELETE FROM folders WHERE collection = ? AND folder IN (SELECT folder FROM folders WHERE collection = ?)",
        (to, collection),
    )
    for table in ("unsearchable", "folders"):
        rows.execute(f"UPDATE {table} SET collection = ? WHERE collection = ?", (to, collection))
