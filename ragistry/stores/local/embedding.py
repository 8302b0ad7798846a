"""Record the embedder of a store, and replace it by another one.

New vectors are written to a second table; searches use the old ones until every chunk has a new one.
"""

from __future__ import annotations

import logging
import sqlite3
from typing import TYPE_CHECKING

from ragistry.stores.embedding import AT_ONCE, embed_missing, is_of, superseded_error
from ragistry.stores.local import rows
from ragistry.stores.local.database import Database, advance, read_head
from ragistry.types import Chunk, EmbedderFingerprint, Progress
from ragistry.utils.fingerprints import to_json
from ragistry.utils.wording import agreeing, numbered

if TYPE_CHECKING:
    from ragistry.protocols import Embedder, Vectors

log = logging.getLogger(__name__)


def record_embedder(connection: sqlite3.Connection, fingerprint: EmbedderFingerprint) -> None:
    """Record the embedder."""
    connection.execute("UPDATE head SET embedder = ?, dimension = ?", (to_json(fingerprint), fingerprint.dimension))


def reembed(database: Database, embedder: Embedder, progress: Progress | None) -> int:
    """See `LibraryStore.reembed`. With the recorded embedder, only chunks without vectors are embedded."""
    fingerprint = embedder.fingerprint
    with database.write() as connection:
        table = _begin(connection, fingerprint)
    after = 0

    def missing() -> tuple[list[tuple[int, Chunk]], int]:
        nonlocal after
        with database.read() as connection:
            lacking = f"chunks.key > ? AND chunks.key NOT IN (SELECT key FROM {table})"
            chunks = list(rows.chunks_where(connection, lacking, after, limit=AT_ONCE))
            [left] = connection.execute(f"SELECT count(*) FROM chunks WHERE {lacking}", (after,)).fetchone()
            after = chunks[-1][0] if chunks else after
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

    def may_wait(keys: list[int]) -> bool:
        with database.write() as connection:
            if waits := set(keys) <= rows.waiting_among(connection, keys):
                connection.executemany("UPDATE waiting SET refused = 1 WHERE key = ?", ((key,) for key in keys))
        if waits:
            log.warning(
                "%s refuses %s; %s only found by words", fingerprint.model, numbered(len(keys), "chunk[|s]"),
                agreeing(len(keys), "[it stays|they stay]"),
            )  # fmt: skip
        return waits

    return embed_missing(embedder, progress, missing=missing, keep=keep, switch=switch, may_wait=may_wait)


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
    if table == "vectors":
        settle(connection, [keys[row] for row in kept], vectors[kept])
    else:
        rows.put_vectors(connection, table, [keys[row] for row in kept], vectors[kept])


def settle(connection: sqlite3.Connection, keys: list[int], vectors: Vectors) -> None:
    """Write the vectors of chunks that had none."""
    head = read_head(connection)
    rows.put_vectors(connection, "vectors", keys, vectors)
    connection.executemany("DELETE FROM waiting WHERE key = ?", ((key,) for key in keys))
    if any(key < head.settled for key in keys):  # the index of vectors has passed them
        connection.execute("UPDATE head SET generation = generation + 1")
    advance(connection, head)


def _switch(connection: sqlite3.Connection, fingerprint: EmbedderFingerprint, table: str) -> bool:
    """Switch searches to the new vectors; False if chunks added meanwhile have none yet."""
    lacking = f"key NOT IN (SELECT key FROM {table}) AND key NOT IN (SELECT key FROM waiting WHERE refused)"
    if connection.execute(f"SELECT 1 FROM chunks WHERE {lacking} LIMIT 1").fetchone():
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
