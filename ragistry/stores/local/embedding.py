"""Record the embedder of a store, and replace it by another one.

New vectors are written to a second table; searches use the old ones until every chunk has a new one.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from ragistry.stores.embedding import AT_ONCE, embed_missing, is_of, superseded_error
from ragistry.stores.local import rows
from ragistry.stores.local.database import Database, advance, read_head
from ragistry.types import Chunk, EmbedderFingerprint, Progress
from ragistry.utils.fingerprints import to_json

if TYPE_CHECKING:
    from ragistry.protocols import Embedder, Vectors


def record_embedder(connection: sqlite3.Connection, fingerprint: EmbedderFingerprint) -> None:
    """Record the embedder."""
    connection.execute("UPDATE head SET embedder = ?, dimension = ?", (to_json(fingerprint), fingerprint.dimension))


def reembed(database: Database, embedder: Embedder, progress: Progress | None) -> int:
    """See `LibraryStore.reembed`. With the recorded embedder, only chunks without vectors are embedded."""
    fingerprint = embedder.fingerprint
    with database.write() as connection:
        table = _begin(connection, fingerprint)

    def missing() -> tuple[list[tuple[int, Chunk]], int]:
        with database.read() as connection:
            lacking = f"chunks.key NOT IN (SELECT key FROM {table})"
            chunks = list(rows.chunks_where(connection, lacking, limit=AT_ONCE))
            counts = f"SELECT (SELECT count(*) FROM chunks) - (SELECT count(*) FROM {table})"
            [left] = connection.execute(counts).fetchone()
            return chunks, left

    def keep(keys: list[int], vectors: Vectors) -> bool:
        with database.write() as connection:
            if _begin(connection, fingerprint, only_continue=True) != table:
                return False
            _keep(connection, table, keys, vectors)
            return True

    def switch() -> bool:
        with database.write() as connection:
            is_finished = _begin(connection, fingerprint, only_continue=True) != table
            return is_finished or _switch(connection, fingerprint, table)

    return embed_missing(embedder, progress, missing=missing, keep=keep, switch=switch)


def _begin(connection: sqlite3.Connection, fingerprint: EmbedderFingerprint, *, only_continue: bool = False) -> str:
    """Return the table for the vectors; vectors of an earlier run with the same embedder are kept.

    ``only_continue``: raise `EmbeddingMismatchError` if a run with another embedder began meanwhile.
    """
    head = read_head(connection)
    if is_of(head.embedder, fingerprint):
        if not only_continue:
            connection.execute("DELETE FROM next_vectors")
            connection.execute("UPDATE head SET next_embedder = NULL")
        return "vectors"
    if not is_of(head.next_embedder, fingerprint):
        if only_continue:
            raise superseded_error(head, fingerprint)
        connection.execute("DELETE FROM next_vectors")
        connection.execute("UPDATE head SET next_embedder = ?", (to_json(fingerprint),))
    return "next_vectors"


def _keep(connection: sqlite3.Connection, table: str, keys: list[int], vectors: Vectors) -> None:
    """Write the vectors of the chunks that still exist."""
    stored = rows.ids_of(connection, keys)
    kept = [row for row, key in enumerate(keys) if key in stored]
    rows.put_vectors(connection, table, [keys[row] for row in kept], vectors[kept])


def _switch(connection: sqlite3.Connection, fingerprint: EmbedderFingerprint, table: str) -> bool:
    """Switch searches to the new vectors; False if chunks added meanwhile have none yet."""
    if connection.execute(f"SELECT 1 FROM chunks WHERE key NOT IN (SELECT key FROM {table}) LIMIT 1").fetchone():
        return False
    if table == "next_vectors":
        connection.execute("DELETE FROM vectors")
        connection.execute("INSERT INTO vectors SELECT * FROM next_vectors")
        connection.execute("DELETE FROM next_vectors")
    connection.execute("UPDATE head SET next_embedder = NULL, generation = generation + 1")
    record_embedder(connection, fingerprint)
    advance(connection, read_head(connection))
    return True
