"""Which embedder the vectors of a `LocalStore` come from, in its database."""

from __future__ import annotations

import sqlite3

from ragistry.errors import EmbeddingMismatchError
from ragistry.stores import meta
from ragistry.types import EmbedderFingerprint
from ragistry.utils.fingerprints import check_same_embedder, from_json, to_json

EMBEDDER, DIMENSION = "embedder", "dimension"


def recorded_embedder(connection: sqlite3.Connection) -> EmbedderFingerprint | None:
    """The embedder, where one was recorded."""
    found = meta.value(connection, EMBEDDER)
    return None if found is None else from_json(found)


def check_recorded(connection: sqlite3.Connection, fingerprint: EmbedderFingerprint) -> None:
    """Raise `EmbeddingMismatchError` unless the vectors are of this embedder, as far as it is known."""
    known, dimension = recorded_embedder(connection), recorded_dimension(connection)
    if known is not None:
        check_same_embedder(known, fingerprint)
    elif dimension not in (None, fingerprint.dimension):
        raise EmbeddingMismatchError(
            f"the vectors of {fingerprint.model!r} have {fingerprint.dimension} numbers, those in the store have "
            f"{dimension}; use the embedder that the store was filled with, or run `ragistry reembed`"
        )


def check_to_write(connection: sqlite3.Connection, fingerprint: EmbedderFingerprint | None) -> int | None:
    """How many numbers the vectors must have that are about to be written; None: as many as they like.

    ``fingerprint``: the embedder that the writer said it uses. Asked in the transaction of the write, because another
    process may have given the store to another embedder since. A store that was cleared since takes it again.
    """
    if fingerprint is not None:
        check_recorded(connection, fingerprint)
        if recorded_embedder(connection) is None:
            record_embedder(connection, fingerprint)
    return recorded_dimension(connection)


def record_embedder(connection: sqlite3.Connection, fingerprint: EmbedderFingerprint) -> None:
    """Remember the embedder and how long its vectors are."""
    meta.put(connection, EMBEDDER, to_json(fingerprint))
    record_dimension(connection, fingerprint.dimension)


def recorded_dimension(connection: sqlite3.Connection) -> int | None:
    """How many numbers a vector has, once there is one."""
    found = meta.value(connection, DIMENSION)
    return None if found is None else int(found)


def record_dimension(connection: sqlite3.Connection, dimension: int) -> None:
    """Remember how many numbers a vector has."""
    meta.put(connection, DIMENSION, dimension)


def forget_embedder(connection: sqlite3.Connection) -> None:
    """Remember no embedder, as in a new store."""
    meta.forget(connection, EMBEDDER, DIMENSION)
    meta.raised(connection, "generation")
