"""Record the embedder of a store, and replace it by another one.

New vectors are written to a second table; searches use the old ones until every chunk has a new one. Then
`Head.generation` increases, and with it the name of the searched table changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragistry.stores.postgres import rows
from ragistry.stores.postgres.database import Connection, Head, Transaction, create_vectors, read_head
from ragistry.stores.postgres.where import Sql
from ragistry.stores.records import check_embedder, fit_to_json, is_of, superseded_error
from ragistry.stores.vectors import checked_vectors
from ragistry.types import Chunk, EmbedderFingerprint, Fit
from ragistry.utils.fingerprints import to_json

if TYPE_CHECKING:
    from ragistry.protocols import Vectors


def record_embedder(write: Transaction, fingerprint: EmbedderFingerprint) -> None:
    """Record the embedder, unless another process was faster. Raises `EmbeddingMismatchError`."""
    write.connection.execute("SELECT FROM head FOR UPDATE")
    if not check_embedder(read_head(write.connection, ""), fingerprint):
        write.connection.execute(
            "UPDATE head SET embedder = %s, dimension = %s, fit = NULL", (to_json(fingerprint), fingerprint.dimension)
        )


def record_fit(write: Transaction, fit: Fit, fingerprint: EmbedderFingerprint) -> None:
    """Record how well this embedder knows the texts, unless it was replaced meanwhile."""
    if is_of(write.head.embedder, fingerprint):
        write.connection.execute("UPDATE head SET fit = %s", (fit_to_json(fit),))


def begin(write: Transaction, fingerprint: EmbedderFingerprint) -> None:
    """Begin the vectors of this embedder; those of an earlier run with it are kept."""
    head = write.head
    if not is_of(head.embedder, fingerprint) and not is_of(head.next_embedder, fingerprint):
        write.connection.execute(f"DROP TABLE IF EXISTS {head.next_vectors}")
        create_vectors(write.connection, head.next_vectors)
        write.connection.execute("UPDATE head SET next_embedder = %s", (to_json(fingerprint),))


def lacking(
    connection: Connection, head: Head, fingerprint: EmbedderFingerprint, after: int, limit: int
) -> tuple[list[tuple[int, Chunk]], int]:
    """Return the first chunks above a key that have no vector of this embedder, and the number of all of them."""
    if _is_in_use(head, fingerprint):
        return [], 0
    text = f"key > %s AND NOT EXISTS (SELECT FROM {head.next_vectors} AS new WHERE new.key = chunks.key)"
    found = list(rows.chunks_where(connection, Sql(text, (after,)), limit))
    [left] = connection.execute(f"SELECT count(*) FROM chunks WHERE {text}", (after,)).fetchone() or (0,)
    return found, int(left)


def keep(write: Transaction, fingerprint: EmbedderFingerprint, keys: Sequence[int], vectors: Vectors) -> None:
    """Write the vectors of those of these chunks that still exist and have none."""
    units = checked_vectors(fingerprint, vectors, len(keys))
    if _is_in_use(write.head, fingerprint):
        return
    found = write.connection.execute(
        "SELECT key FROM chunks WHERE key = ANY(%s::bigint[]) "
        f"AND key NOT IN (SELECT key FROM {write.head.next_vectors}) FOR UPDATE",
        (list(keys),),
    )
    stored = {key for (key,) in found}
    kept = [row for row, key in enumerate(keys) if key in stored]
    if kept:
        rows.put_vectors(write.connection, write.head.next_vectors, [keys[row] for row in kept], units[kept])


def switch(write: Transaction, fingerprint: EmbedderFingerprint) -> bool:
    """Switch searches to the new vectors; False if chunks added meanwhile have none yet."""
    head = write.head
    if _is_in_use(head, fingerprint):
        return True
    if lacking(write.connection, head, fingerprint, 0, 1)[0]:
        return False
    write.connection.execute(f"DROP TABLE {head.vectors}")
    write.connection.execute(
        "UPDATE head SET generation = generation + 1, next_embedder = NULL, embedder = %s, dimension = %s, fit = NULL",
        (to_json(fingerprint), fingerprint.dimension),
    )
    return True


def _is_in_use(head: Head, fingerprint: EmbedderFingerprint) -> bool:
    """Return whether searches use this embedder. Raises `EmbeddingMismatchError` if a later run has another one."""
    if is_of(head.embedder, fingerprint):
        return True
    if not is_of(head.next_embedder, fingerprint):
        raise superseded_error(head, fingerprint)
    return False
