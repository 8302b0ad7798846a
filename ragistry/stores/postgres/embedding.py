"""Record the embedder of a store, and replace it by another one.

New vectors are written to a second table; searches use the old ones until every chunk has a new one. Then
`Head.generation` increases, and with it the name of the searched table changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragistry.stores.embedding import AT_ONCE, check_embedder, embed_missing, is_of, superseded_error
from ragistry.stores.postgres import rows
from ragistry.stores.postgres.database import Connection, Database, Head, Transaction, create_vectors, read_head
from ragistry.stores.postgres.where import Sql
from ragistry.types import Chunk, EmbedderFingerprint, Progress
from ragistry.utils.fingerprints import to_json

if TYPE_CHECKING:
    from ragistry.protocols import Embedder, Vectors


def record_embedder(write: Transaction, fingerprint: EmbedderFingerprint) -> None:
    """Record the embedder, unless another process was faster. Raises `EmbeddingMismatchError`."""
    write.connection.execute("SELECT FROM head FOR UPDATE")
    if not check_embedder(read_head(write.connection, ""), fingerprint):
        write.connection.execute(
            "UPDATE head SET embedder = %s, dimension = %s", (to_json(fingerprint), fingerprint.dimension)
        )


def reembed(database: Database, embedder: Embedder, progress: Progress | None) -> int:
    """See `LibraryStore.reembed`. Vectors of an interrupted run with the same embedder are kept."""
    fingerprint = embedder.fingerprint
    head = database.read(lambda connection: read_head(connection, database.place))
    if is_of(head.embedder, fingerprint):
        return 0
    database.write(lambda write: _begin(write, fingerprint), alone=True)

    def missing() -> tuple[list[tuple[int, Chunk]], int]:
        return database.read(lambda connection: _missing(connection, head))

    def keep(keys: list[int], vectors: Vectors) -> bool:
        database.write(lambda write: _keep(write, fingerprint, keys, vectors))
        return True

    def switch() -> bool:
        return database.write(lambda write: _switch(write, fingerprint), alone=True)[0]

    return embed_missing(embedder, progress, missing=missing, keep=keep, switch=switch)


def _begin(write: Transaction, fingerprint: EmbedderFingerprint) -> None:
    head = write.head
    if not is_of(head.next_embedder, fingerprint):
        write.connection.execute(f"DROP TABLE IF EXISTS {head.next_vectors}")
        create_vectors(write.connection, head.next_vectors)
        write.connection.execute("UPDATE head SET next_embedder = %s", (to_json(fingerprint),))


def _missing(connection: Connection, head: Head) -> tuple[list[tuple[int, Chunk]], int]:
    """Read some of the chunks without a new vector, and their total number."""
    lacking = Sql(f"NOT EXISTS (SELECT FROM {head.next_vectors} AS new WHERE new.key = chunks.key)")
    if connection.execute("SELECT to_regclass(%s)", (head.next_vectors,)).fetchone() == (None,):
        return [], 0
    found = list(rows.chunks_where(connection, lacking, AT_ONCE))
    [left] = connection.execute(f"SELECT count(*) FROM chunks WHERE {lacking.text}").fetchone() or (0,)
    return found, int(left)


def _keep(write: Transaction, fingerprint: EmbedderFingerprint, keys: list[int], vectors: Vectors) -> None:
    """Write the vectors of the chunks that still exist and have none."""
    if is_of(write.head.embedder, fingerprint):
        return  # another run with the same embedder was faster
    _check_own(write.head, fingerprint)
    found = write.connection.execute(
        "SELECT key FROM chunks WHERE key = ANY(%s::bigint[]) "
        f"AND key NOT IN (SELECT key FROM {write.head.next_vectors}) FOR UPDATE",
        (keys,),
    )
    stored = {key for (key,) in found}
    kept = [row for row, key in enumerate(keys) if key in stored]
    if kept:
        rows.put_vectors(write.connection, write.head.next_vectors, [keys[row] for row in kept], vectors[kept])


def _switch(write: Transaction, fingerprint: EmbedderFingerprint) -> bool:
    """Switch searches to the new vectors; False if chunks added meanwhile have none yet."""
    head = write.head
    if is_of(head.embedder, fingerprint):
        return True  # another run with the same embedder was faster
    _check_own(head, fingerprint)
    if _missing(write.connection, head)[0]:
        return False
    write.connection.execute(f"DROP TABLE {head.vectors}")
    write.connection.execute(
        "UPDATE head SET generation = generation + 1, next_embedder = NULL, embedder = %s, dimension = %s",
        (to_json(fingerprint), fingerprint.dimension),
    )
    return True


def _check_own(head: Head, fingerprint: EmbedderFingerprint) -> None:
    if not is_of(head.next_embedder, fingerprint):
        raise superseded_error(head, fingerprint)
