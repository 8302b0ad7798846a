"""Record the embedder of a store, and replace it by another one.

New vectors are written to a second table; searches use the old ones until every chunk has a new one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragistry.stores.local import rows
from ragistry.stores.local.database import advance, read_head
from ragistry.stores.records import fit_to_json, is_of, recorded_fit, superseded_error
from ragistry.stores.vectors import checked_vectors
from ragistry.types import Chunk, EmbedderFingerprint, Fit
from ragistry.utils.fingerprints import to_json

if TYPE_CHECKING:
    from ragistry.protocols import Vectors
    from ragistry.stores.local.database import Database


class FitRecord:
    """The methods of `protocols.FitStore`."""

    _database: Database

    def fit(self) -> Fit | None:
        with self._database.read() as connection:
            return recorded_fit(read_head(connection).fit)

    def record_fit(self, fit: Fit, fingerprint: EmbedderFingerprint) -> None:
        with self._database.write() as connection:
            head = read_head(connection)
            if is_of(head.embedder, fingerprint):
                connection.execute("UPDATE head SET fit = ?", (fit_to_json(fit),))
                advance(connection, head)


def record_embedder(connection: sqlite3.Connection, fingerprint: EmbedderFingerprint) -> None:
    """Record the embedder; how well it knows the texts is unknown."""
    connection.execute(
        "UPDATE head SET embedder = ?, dimension = ?, fit = NULL", (to_json(fingerprint), fingerprint.dimension)
    )


def begin(connection: sqlite3.Connection, fingerprint: EmbedderFingerprint) -> None:
    """Begin the vectors of this embedder; those of an earlier run with it are kept."""
    head = read_head(connection)
    is_recorded = is_of(head.embedder, fingerprint)
    if is_recorded or not is_of(head.next_embedder, fingerprint):
        connection.execute("DELETE FROM next_vectors")
        connection.execute("UPDATE head SET next_embedder = ?", (None if is_recorded else to_json(fingerprint),))


def lacking(
    connection: sqlite3.Connection, fingerprint: EmbedderFingerprint, after: int, limit: int
) -> tuple[list[tuple[int, Chunk]], int]:
    """Return the first chunks above a key that have no vector of this embedder, and the number of all of them."""
    condition = f"chunks.key > ? AND chunks.key NOT IN (SELECT key FROM {_table(connection, fingerprint)})"
    chunks = list(rows.chunks_where(connection, condition, after, limit=limit))
    [left] = connection.execute(f"SELECT count(*) FROM chunks WHERE {condition}", (after,)).fetchone()
    return chunks, left


def keep(
    connection: sqlite3.Connection, fingerprint: EmbedderFingerprint, keys: Sequence[int], vectors: Vectors
) -> None:
    """Write the vectors of those of these chunks that still exist and have none."""
    units, table = checked_vectors(fingerprint, vectors, len(keys)), _table(connection, fingerprint)
    present, known = rows.ids_of(connection, keys), rows.keys_in(connection, table, keys)
    kept = [row for row, key in enumerate(keys) if key in present and key not in known]
    keys = [keys[row] for row in kept]
    rows.put_vectors(connection, table, keys, units[kept])
    if table == "vectors":
        head = read_head(connection)
        connection.executemany("DELETE FROM waiting WHERE key = ?", ((key,) for key in keys))
        if any(key < head.settled for key in keys):  # the index of vectors has passed them
            connection.execute("UPDATE head SET generation = generation + 1")
        advance(connection, head)


def switch(connection: sqlite3.Connection, fingerprint: EmbedderFingerprint) -> bool:
    """Switch searches to the new vectors; False if chunks added meanwhile have none yet."""
    table = _table(connection, fingerprint)
    missing = f"key NOT IN (SELECT key FROM {table}) AND key NOT IN (SELECT key FROM waiting WHERE refused)"
    if connection.execute(f"SELECT 1 FROM chunks WHERE {missing} LIMIT 1").fetchone():
        return False
    if table == "next_vectors":
        connection.execute("DELETE FROM vectors")
        connection.execute("INSERT INTO vectors SELECT * FROM next_vectors")
        connection.execute("DELETE FROM next_vectors")
    connection.execute("DELETE FROM waiting WHERE key IN (SELECT key FROM vectors)")
    connection.execute("UPDATE head SET next_embedder = NULL, generation = generation + 1")
    record_embedder(connection, fingerprint)
    advance(connection, read_head(connection))
    return True


def _table(connection: sqlite3.Connection, fingerprint: EmbedderFingerprint) -> str:
    """Return the table of this embedder's vectors. Raises `EmbeddingMismatchError` if a later run has another one."""
    head = read_head(connection)
    if is_of(head.embedder, fingerprint):
        return "vectors"
    if not is_of(head.next_embedder, fingerprint):
        raise superseded_error(head, fingerprint)
    return "next_vectors"
