"""The embedder recorded in a store, and its replacement by another one.

New vectors are written to a second table; searches use the old ones until every chunk has a new one.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any, Protocol

from ragistry.errors import EmbeddingMismatchError, InvalidChunkError
from ragistry.stores.local import rows
from ragistry.stores.local.database import Database, advance, read_head
from ragistry.types import EmbedderFingerprint, Progress
from ragistry.utils.breadcrumb import searched_text
from ragistry.utils.fingerprints import check_same_embedder, differences, from_json, to_json
from ragistry.utils.vectors import unit_vectors

if TYPE_CHECKING:
    from ragistry.protocols import Embedder, Vectors

AT_ONCE = 128
"""Number of chunks embedded in one call."""


class Recorded(Protocol):
    """The recorded embedder of a store: fingerprint as JSON, and dimension, 0 before the first vector."""

    @property
    def embedder(self) -> str | None: ...
    @property
    def dimension(self) -> int: ...


def recorded_embedder(head: Recorded) -> EmbedderFingerprint | None:
    """The recorded embedder."""
    return None if head.embedder is None else from_json(head.embedder)


def check_embedder(head: Recorded, fingerprint: EmbedderFingerprint) -> bool:
    """Whether an embedder is recorded. Raises `EmbeddingMismatchError` if it is another one."""
    if recorded := recorded_embedder(head):
        check_same_embedder(recorded, fingerprint)
        return True
    if head.dimension not in (0, fingerprint.dimension):
        raise EmbeddingMismatchError(
            f"the vectors in the store have {head.dimension} numbers, those of {fingerprint.model!r} have "
            f"{fingerprint.dimension}; set embed_model in documents.yaml to the embedder that the store was filled "
            "with, or run `ragistry reembed`"
        )
    return False


def record_embedder(connection: sqlite3.Connection, fingerprint: EmbedderFingerprint) -> None:
    """Record the embedder."""
    connection.execute("UPDATE head SET embedder = ?, dimension = ?", (to_json(fingerprint), fingerprint.dimension))


def reembed(database: Database, embedder: Embedder, progress: Progress | None) -> int:
    """See `LibraryStore.reembed`. With the recorded embedder, only chunks without vectors are embedded."""
    fingerprint = embedder.fingerprint
    with database.write() as connection:
        table = _begin(connection, fingerprint)
    done = 0
    while True:
        with database.read() as connection:
            lacking = f"chunks.key NOT IN (SELECT key FROM {table})"
            missing = list(rows.chunks_where(connection, lacking, limit=AT_ONCE))
            counts = f"SELECT (SELECT count(*) FROM chunks) - (SELECT count(*) FROM {table})"
            [left] = connection.execute(counts).fetchone()
        if progress is not None:
            progress("chunks", done, done + left)
        vectors = embedded(embedder, [searched_text(*chunk) for _, chunk in missing]) if missing else None
        with database.write() as connection:
            if _begin(connection, fingerprint, only_continue=True) != table:
                return done  # another run with the same embedder has finished
            if vectors is not None:
                _keep(connection, table, [key for key, _ in missing], vectors)
            elif _switch(connection, fingerprint, table):
                return done
        done += len(missing)


def _begin(connection: sqlite3.Connection, fingerprint: EmbedderFingerprint, *, only_continue: bool = False) -> str:
    """The table for the vectors; vectors of an earlier run with the same embedder are kept.

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
            other = from_json(head.next_embedder or head.embedder or "").model
            raise EmbeddingMismatchError(
                f"the vectors of {fingerprint.model!r} were not put in place: another `ragistry reembed`, with "
                f"{other!r}, came later; run it again with the model that you want"
            )
        connection.execute("DELETE FROM next_vectors")
        connection.execute("UPDATE head SET next_embedder = ?", (to_json(fingerprint),))
    return "next_vectors"


def is_of(recorded: str | None, fingerprint: EmbedderFingerprint) -> bool:
    """Whether this embedder is recorded."""
    return recorded is not None and not differences(from_json(recorded), fingerprint)


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


def embedded(embedder: Embedder, texts: list[str]) -> Vectors:
    """The vectors of the texts at unit length."""
    fingerprint = embedder.fingerprint
    remedy = "the old vectors stay in use; check the model, then run `ragistry reembed` again"
    vectors: Any = embedder.embed(texts, role="document")
    try:
        units = unit_vectors(vectors, len(texts))
    except (TypeError, ValueError) as error:
        raise InvalidChunkError(f"{fingerprint.model!r} gave what cannot be stored: {error}; {remedy}") from error
    if units.shape[1] != fingerprint.dimension:
        raise EmbeddingMismatchError(
            f"{fingerprint.model!r} gave vectors of {units.shape[1]} numbers instead of {fingerprint.dimension}; "
            f"{remedy}"
        )
    return units
