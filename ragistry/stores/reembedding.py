"""Vectors of another embedder, made beside the ones that are searched, and put in their place when all are there."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from ragistry.errors import EmbeddingMismatchError, InvalidChunkError, StoreCorruptError
from ragistry.stores import meta
from ragistry.stores.embedder_record import record_embedder, recorded_embedder
from ragistry.stores.group_reading import group_chunks
from ragistry.stores.row_checksums import Damaged
from ragistry.stores.writing import put_vectors, touch
from ragistry.types import EmbedderFingerprint
from ragistry.utils.fingerprints import from_json, to_json
from ragistry.utils.vectors import unit_vectors

if TYPE_CHECKING:
    from ragistry.protocols import Vectors
    from ragistry.stores.catalog import Group

NEXT = "next_embedder"


def begin(connection: sqlite3.Connection, fingerprint: EmbedderFingerprint) -> None:
    """Go on with what was begun with the same embedder; forget what was begun with another."""
    text = to_json(fingerprint)
    if meta.value(connection, NEXT) == text:
        return
    connection.execute("DELETE FROM next_vectors")
    meta.put(connection, NEXT, text)


def missing(connection: sqlite3.Connection) -> list[int]:
    """The groups that have no new vectors yet."""
    rows = connection.execute("SELECT id FROM sources WHERE id NOT IN (SELECT source FROM next_vectors) ORDER BY first")
    return [id for (id,) in rows]


def texts(connection: sqlite3.Connection, group: Group | None) -> list[str]:
    """The texts of a group, in the order of its vectors; none where it is gone. Raises `StoreCorruptError`."""
    try:
        return [] if group is None else [text for _, text, _ in group_chunks(connection, group)]
    except Damaged as error:
        # To ingest it again as it is, the former embedder would be needed.
        raise StoreCorruptError(
            f"{error}; the old vectors stay in use: delete that source (`ragistry sources delete`), run `ragistry "
            "reembed` again, then ingest the source"
        ) from error


def put(connection: sqlite3.Connection, group: int, vectors: Vectors, fingerprint: EmbedderFingerprint) -> None:
    """Keep the new vectors of a group, if it is still there; it is never changed, only replaced by another.

    Raises `InvalidChunkError` for what is not one direction a text, `EmbeddingMismatchError` for another dimension,
    and where an embedder that came later has taken the place of this one.
    """
    if _is_done(connection, fingerprint):
        return
    found = connection.execute("SELECT chunks FROM sources WHERE id = ?", (group,)).fetchone()
    if not found:
        return
    try:
        units = unit_vectors(vectors, found[0])
    except (TypeError, ValueError) as error:
        raise InvalidChunkError(
            f"{fingerprint.model!r} gave what cannot be stored: {error}; the old vectors stay in use; "
            "see to the model, then run `ragistry reembed` again"
        ) from error
    if units.shape[1] != fingerprint.dimension:
        raise EmbeddingMismatchError(
            f"{fingerprint.model!r} gave vectors of {units.shape[1]} numbers in place of {fingerprint.dimension}; "
            "the old vectors stay in use; see to the model, then run `ragistry reembed` again"
        )
    put_vectors(connection, "next_vectors", group, units)


def finish(connection: sqlite3.Connection, fingerprint: EmbedderFingerprint) -> bool:
    """Put the new vectors in the place of the old ones; False where a group was added meanwhile and lacks them.

    Raises `EmbeddingMismatchError` as `put` does.
    """
    if _is_done(connection, fingerprint):
        return True
    if missing(connection):
        return False
    connection.execute("DELETE FROM vectors")
    connection.execute("INSERT INTO vectors SELECT source, data, checksum FROM next_vectors")
    connection.execute("DELETE FROM next_vectors")
    meta.forget(connection, NEXT)
    # What others keep in memory, and the approximate index, are of the old vectors.
    meta.raised(connection, "generation")
    record_embedder(connection, fingerprint)
    touch(connection)
    return True


def _is_done(connection: sqlite3.Connection, fingerprint: EmbedderFingerprint) -> bool:
    """Whether another has finished with the same embedder meanwhile; raises where one began with another."""
    found = meta.value(connection, NEXT)
    if found == to_json(fingerprint):
        return False
    other = from_json(found) if found else recorded_embedder(connection)
    if not found and other == fingerprint:
        return True
    raise EmbeddingMismatchError(
        f"the vectors of {fingerprint.model!r} were not put in place: another `ragistry reembed`, with "
        f"{other.model if other else 'no model'!r}, came later; run it again with the model that is wanted"
    )
