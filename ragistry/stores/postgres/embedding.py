"""The embedder recorded in a store, and its replacement by another one.

New vectors are written to a second table; searches use the old ones until every chunk has a new one. Then
`Head.generation` increases, and with it the name of the searched table changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragistry.errors import EmbeddingMismatchError
from ragistry.stores.local.embedding import AT_ONCE, check_embedder, embedded, is_of
from ragistry.stores.postgres import rows
from ragistry.stores.postgres.database import Connection, Database, Head, Transaction, create_vectors, read_head
from ragistry.stores.postgres.where import Sql
from ragistry.types import Chunk, EmbedderFingerprint, Progress
from ragistry.utils.breadcrumb import searched_text
from ragistry.utils.fingerprints import from_json, to_json

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
    done = 0
    while True:
        missing, left = database.read(lambda connection: _missing(connection, head))
        if progress is not None:
            progress("chunks", done, done + left)
        if missing:
            vectors = embedded(embedder, [searched_text(*chunk) for _, chunk in missing])
            keys = [key for key, _ in missing]
            database.write(lambda write, keys=keys, vectors=vectors: _keep(write, fingerprint, keys, vectors))  # type: ignore[misc]
            done += len(missing)
        elif database.write(lambda write: _switch(write, fingerprint), alone=True)[0]:
            return done


def _begin(write: Transaction, fingerprint: EmbedderFingerprint) -> None:
    head = write.head
    if not is_of(head.next_embedder, fingerprint):
        write.connection.execute(f"DROP TABLE IF EXISTS {head.next_vectors}")
        create_vectors(write.connection, head.next_vectors)
        write.connection.execute("UPDATE head SET next_embedder = %s", (to_json(fingerprint),))


def _missing(connection: Connection, head: Head) -> tuple[list[tuple[int, Chunk]], int]:
    """Some of the chunks without a new vector, and their total number."""
    lacking = Sql(f"NOT EXISTS (SELECT FROM {head.next_vectors} AS made WHERE made.key = chunks.key)")
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
        other = from_json(head.next_embedder or head.embedder or "").model
        raise EmbeddingMismatchError(
            f"the vectors of {fingerprint.model!r} were not put in place: another `ragistry reembed`, with "
            f"{other!r}, came later; run it again with the model that you want"
        )
