"""Writes to a `LocalStore`'s database, each inside a transaction of its caller.

A group (a source, or chunks without one) is always written whole and under new keys: what an index has to forget and
to learn follows from the keys alone, and a group's vectors stay one array without holes.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from ragistry.protocols import Vectors


COLUMNS = ("page", "section", "has_code")
"""Metadata with a column and an index of their own."""
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


def text_hash(text: str) -> int:
    """64 bits by which a text is looked up; whoever finds it compares the text itself."""
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), "little", signed=True)


def touch(connection: sqlite3.Connection) -> int:
    """A new state of the store, which tells readers that theirs is old."""
    connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'state'")
    return int(connection.execute("SELECT value FROM meta WHERE key = 'state'").fetchone()[0])


def put_group(connection: sqlite3.Connection, name: tuple[str, str] | None, rows: Rows, *, whole: bool = False) -> None:
    """Write chunks as one group.

    ``name``: collection and source file; None: they belong to no source. ``whole``: it is all that was ingested.
    """
    if not rows.ids:
        return
    collection, source_file = name or (None, None)
    common, own = factored(rows.metadatas)
    varying = sorted({key for metadata in own for key in metadata})
    first = _take_keys(connection, len(rows.ids))
    source = connection.execute(
        "INSERT INTO sources (collection, source_file, first, chunks, common, varying, whole, version)"
        " VALUES (?,?,?,?,?,?,?,?)",
        (collection, source_file, first, len(rows.ids), _json(common), json.dumps(varying), whole, touch(connection)),
    ).lastrowid
    connection.executemany(
        "INSERT INTO chunks VALUES (?,?,?,?,?,?,?,?,?)",
        [
            (first + row, id, source, text_hash(text), text, _json(metadata), *_columns(metadata))
            for row, (id, text, metadata) in enumerate(zip(rows.ids, rows.texts, own, strict=True))
        ],
    )
    data = np.ascontiguousarray(rows.vectors, dtype=np.float32)
    connection.execute("INSERT INTO vectors VALUES (?, ?)", (source, data.tobytes()))
    tell_indexes(connection, range(first, first + len(rows.ids)))


def drop_groups(connection: sqlite3.Connection, sources: Iterable[int]) -> None:
    """Remove groups with all that is theirs."""
    touch(connection)
    for source in sources:
        first, count = connection.execute("SELECT first, chunks FROM sources WHERE id = ?", (source,)).fetchone()
        tell_indexes(connection, range(first, first + count))
        connection.execute("DELETE FROM chunks WHERE source = ?", (source,))
        connection.execute("DELETE FROM vectors WHERE source = ?", (source,))
        connection.execute("DELETE FROM next_vectors WHERE source = ?", (source,))
        connection.execute("DELETE FROM sources WHERE id = ?", (source,))


def move_group(
    connection: sqlite3.Connection, source: int, to: tuple[str, str], common: Mapping[str, Any], ids: Sequence[str]
) -> None:
    """Give a source another name, its chunks the ids that follow from it; their keys, and so the indexes, stay."""
    first = connection.execute("SELECT first FROM sources WHERE id = ?", (source,)).fetchone()[0]
    connection.execute(
        "UPDATE sources SET collection = ?, source_file = ?, common = ?, version = ? WHERE id = ?",
        (*to, _json(common), touch(connection), source),
    )
    connection.executemany("UPDATE chunks SET id = ? WHERE key = ?", [(id, first + row) for row, id in enumerate(ids)])


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
    """Equal, and of one type: True is not 1, and 1 is kept apart from 1.0."""
    return type(one) is type(other) and one == other and (not isinstance(one, list) or repr(one) == repr(other))


def _take_keys(connection: sqlite3.Connection, count: int) -> int:
    """The first of ``count`` keys that no chunk has had."""
    [first] = connection.execute("SELECT value FROM meta WHERE key = 'next_key'").fetchone()
    connection.execute("UPDATE meta SET value = ? WHERE key = 'next_key'", (str(int(first) + count),))
    return int(first)


def _columns(metadata: Mapping[str, Any]) -> list[Any]:
    """Values of `COLUMNS`; of ``has_code`` only truth values, of the others only text and numbers."""
    values = [metadata.get(name) for name in COLUMNS]
    return [
        value if not isinstance(value, list) and isinstance(value, bool) == (name == "has_code") else None
        for name, value in zip(COLUMNS, values, strict=True)
    ]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
