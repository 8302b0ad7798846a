"""Writes to a `LocalStore`'s database, each inside a transaction of its caller.

A group (a source, or chunks without one) is always written whole and under new keys: what an index has to forget and
to learn follows from the keys alone, and a group's vectors stay one array without holes.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ragistry.stores import meta
from ragistry.stores.row_checksums import chunk_checksum, row_checksum, text_hash, vectors_checksum

if TYPE_CHECKING:
    from ragistry.protocols import Vectors
    from ragistry.stores.catalog import Group


COLUMNS = ("page", "section", "has_code")
"""Metadata with a column and an index of their own."""
SOURCE_COLUMNS = (
    "version", "collection", "source_file", "first", "chunks", "common", "varying", "whole", "checksum"
)  # fmt: skip
LOOSE_GROUP = 1_000
"""Chunks without a source are kept in groups of this many."""


class Rows(NamedTuple):
    """Chunks on their way in, or read back: ids, texts, whole metadata, and vectors ``(n, d)`` float32."""

    ids: list[str]
    texts: list[str]
    metadatas: list[dict[str, Any]]
    vectors: Vectors

    def picked(self, rows: Sequence[int]) -> Rows:
        """The same at these positions, in their order."""
        return Rows(
            [self.ids[row] for row in rows], [self.texts[row] for row in rows],
            [self.metadatas[row] for row in rows], self.vectors[list(rows)],
        )  # fmt: skip


def touch(connection: sqlite3.Connection) -> int:
    """A new state of the store, which tells readers that theirs is old."""
    return meta.raised(connection, "state")


def put_group(connection: sqlite3.Connection, name: tuple[str, str] | None, rows: Rows, *, whole: bool = False) -> None:
    """Write chunks as one group.

    ``name``: collection and source file; None: they belong to no source. ``whole``: it is all that was ingested.
    """
    if not rows.ids:
        return
    collection, source_file = name or (None, None)
    common, own = factored(rows.metadatas)
    varying = sorted({key for metadata in own for key in metadata})
    count = len(rows.ids)
    first = meta.raised(connection, "next_key", count) - count  # keys that no chunk has had
    source = _write_source(
        connection, None, (collection, source_file, first, count, _json(common), json.dumps(varying), int(whole))
    )
    connection.executemany(
        "INSERT INTO chunks VALUES (?,?,?,?,?,?,?,?,?,?)",
        [
            (
                key, id, source, hash := text_hash(text), text, written := _json(metadata), *columns_of(metadata),
                chunk_checksum(key, id, source, hash, written),
            )
            for key, id, text, metadata in zip(range(first, first + count), rows.ids, rows.texts, own, strict=True)
        ],
    )  # fmt: skip
    put_vectors(connection, "vectors", source, rows.vectors)
    tell_indexes(connection, range(first, first + len(rows.ids)))


def drop_groups(connection: sqlite3.Connection, sources: Iterable[int]) -> None:
    """Remove groups with all that is theirs."""
    touch(connection)
    end = meta.number(connection, "next_key")
    for source in sources:
        keys = {key for (key,) in connection.execute("SELECT key FROM chunks WHERE source = ?", (source,))}
        span = connection.execute(
            "SELECT max(1, first), min(first + chunks, ?) FROM sources "
            "WHERE id = ? AND typeof(first) = 'integer' AND typeof(chunks) = 'integer'",
            (end, source),
        )
        keys.update(key for first, last in span for key in range(first, last))  # also those whose chunks got lost
        tell_indexes(connection, sorted(keys))
        connection.execute("DELETE FROM chunks WHERE source = ?", (source,))
        connection.execute("DELETE FROM vectors WHERE source = ?", (source,))
        connection.execute("DELETE FROM next_vectors WHERE source = ?", (source,))
        connection.execute("DELETE FROM sources WHERE id = ?", (source,))


def put_vectors(connection: sqlite3.Connection, table: str, source: int, vectors: Vectors) -> None:
    """Write the vectors of a source, ``(n, d)`` with n the number of its chunks, in the place of what is there."""
    data = np.ascontiguousarray(vectors, dtype=np.float32).tobytes()
    checksum = vectors_checksum(source, data)
    connection.execute(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)", (source, data, checksum))


def move_group(connection: sqlite3.Connection, group: Group, to: tuple[str, str], ids: Mapping[str, str]) -> None:
    """Give a source another name, its chunks the ids that follow from it; their keys, and so the indexes, stay.

    ``ids``: the new ones by the old ones.
    """
    _rewrite_source(connection, group, to, group.common | {"collection": to[0]}, whole=group.whole)
    rows = connection.execute("SELECT key, id, text_hash, own FROM chunks WHERE source = ?", (group.id,)).fetchall()
    connection.executemany(
        "UPDATE chunks SET id = ?, checksum = ? WHERE key = ?",
        [(ids[id], chunk_checksum(key, ids[id], group.id, hash, own), key) for key, id, hash, own in rows],
    )


def mark_unwhole(connection: sqlite3.Connection, group: Group) -> None:
    """Note of a source that it is not all that was ingested, so that it is ingested again."""
    _rewrite_source(connection, group, (group.collection, group.source_file), group.common, whole=False)


def _rewrite_source(
    connection: sqlite3.Connection,
    group: Group,
    name: tuple[str | None, str | None],
    common: dict[str, Any],
    *,
    whole: bool,
) -> None:
    varying = json.dumps(sorted(group.varying))
    _write_source(connection, group.id, (*name, group.first, group.chunks, _json(common), varying, int(whole)))


def _write_source(connection: sqlite3.Connection, source: int | None, row: tuple[Any, ...]) -> int:
    """Write what is said of a source, a new one or one of this number, in a new version; returns its number."""
    values = (touch(connection), *row)
    changes = ", ".join(f"{column} = excluded.{column}" for column in SOURCE_COLUMNS)
    written = connection.execute(
        f"INSERT INTO sources (id, {', '.join(SOURCE_COLUMNS)}) VALUES (?,?,?,?,?,?,?,?,?,?) "
        f"ON CONFLICT (id) DO UPDATE SET {changes} RETURNING id",
        (source, *values, row_checksum(*values)),
    )
    return int(written.fetchone()[0])


def tell_indexes(connection: sqlite3.Connection, keys: Iterable[int]) -> None:
    """Note for both indexes that they have to look at these keys again."""
    rows = [(key,) for key in keys]
    for table in ("lexical_outbox", "vector_outbox"):
        connection.executemany(f"INSERT OR IGNORE INTO {table} VALUES (?)", rows)


def factored(metadatas: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What all have in common, and of each the rest."""
    common = dict(metadatas[0])
    for metadata in metadatas[1:]:
        for key in [key for key, value in common.items() if not _same(value, metadata.get(key))]:
            del common[key]
    return common, [{key: value for key, value in metadata.items() if key not in common} for metadata in metadatas]


def _same(one: Any, other: Any) -> bool:
    """Equal, and of one type: True is not 1, and 1 is kept apart from 1.0, 0.0 from -0.0."""
    if type(one) is not type(other) or one != other:
        return False
    return not isinstance(one, list | float) or repr(one) == repr(other)


def columns_of(metadata: Mapping[str, Any]) -> list[Any]:
    """Values of `COLUMNS`; of ``has_code`` only truth values, of the others only text and numbers."""
    values = [metadata.get(name) for name in COLUMNS]
    return [
        value if not isinstance(value, list) and isinstance(value, bool) == (name == "has_code") else None
        for name, value in zip(COLUMNS, values, strict=True)
    ]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
