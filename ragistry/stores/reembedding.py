"""Vectors of another embedder, made beside the ones that are searched, and put in their place when all are there."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import numpy as np

from ragistry.stores.embedder_record import record_embedder
from ragistry.stores.writing import touch
from ragistry.types import EmbedderFingerprint
from ragistry.utils.fingerprints import to_json

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

NEXT = "next_embedder"


def begin(connection: sqlite3.Connection, fingerprint: EmbedderFingerprint) -> None:
    """Go on with what was begun with the same embedder; forget what was begun with another."""
    text = to_json(fingerprint)
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (NEXT,)).fetchone()
    if found and found[0] == text:
        return
    connection.execute("DELETE FROM next_vectors")
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (NEXT, text))


def missing(connection: sqlite3.Connection) -> list[int]:
    """The groups that have no new vectors yet."""
    rows = connection.execute("SELECT id FROM sources WHERE id NOT IN (SELECT source FROM next_vectors) ORDER BY first")
    return [id for (id,) in rows]


def texts(connection: sqlite3.Connection, group: int) -> list[str]:
    """The texts of a group, in the order of its vectors; none where it is gone."""
    return [text for (text,) in connection.execute("SELECT text FROM chunks WHERE source = ? ORDER BY key", (group,))]


def put(connection: sqlite3.Connection, group: int, vectors: Vectors) -> None:
    """Keep the new vectors of a group, if its chunks are still those that were read."""
    found = connection.execute("SELECT chunks FROM sources WHERE id = ?", (group,)).fetchone()
    if found and found[0] == len(vectors):
        data = np.ascontiguousarray(vectors, dtype=np.float32).tobytes()
        connection.execute("INSERT OR REPLACE INTO next_vectors VALUES (?, ?)", (group, data))


def finish(connection: sqlite3.Connection, fingerprint: EmbedderFingerprint) -> bool:
    """Put the new vectors in the place of the old ones; False where a group was added meanwhile and lacks them."""
    if missing(connection):
        return False
    connection.execute("DELETE FROM vectors")
    connection.execute("INSERT INTO vectors SELECT source, data FROM next_vectors")
    connection.execute("DELETE FROM next_vectors")
    connection.execute("DELETE FROM meta WHERE key = ?", (NEXT,))
    # What others keep in memory, and the approximate index, are of the old vectors.
    connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
    record_embedder(connection, fingerprint)
    touch(connection)
    return True
