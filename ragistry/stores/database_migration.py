"""A ``store.db`` of the version before, brought to this one; see `database_file` for what it is like now."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

from ragistry.stores.database_file import META_IS_CHECKED
from ragistry.stores.row_checksums import chunk_checksum, row_checksum, text_hash, vectors_checksum

FORMER = "1"
NONE = -1
"""The checksum of what was found damaged, which none has, so that it is told of ever after."""
TABLES = ("meta", "sources", "chunks", "vectors", "next_vectors")
# Texts are given as bytes: for one that is no UTF-8 the `sqlite3` module would raise.
UPDATES = (
    "UPDATE meta SET value = '2' WHERE key = 'version'",
    "UPDATE meta SET checksum = row(CAST(key AS BLOB), CAST(value AS BLOB))",
    "UPDATE sources SET checksum = source(version, CAST(collection AS BLOB), CAST(source_file AS BLOB), first, chunks, "
    "CAST(common AS BLOB), CAST(varying AS BLOB), whole)",
    "UPDATE chunks SET text_hash = hash(CAST(text AS BLOB), text_hash)",
    "UPDATE chunks SET checksum = chunk(key, CAST(id AS BLOB), source, text_hash, CAST(own AS BLOB))",
    "UPDATE vectors SET checksum = vectors(source, (SELECT chunks FROM sources WHERE id = source), data)",
    "UPDATE next_vectors SET checksum = vectors(source, (SELECT chunks FROM sources WHERE id = source), data)",
)


def add_checksums(connection: sqlite3.Connection) -> None:
    """From version 1 to version 2, inside a transaction: everything gets its checksum."""
    functions: dict[str, Callable[..., int]] = {
        "row": _of_texts(row_checksum), "source": _of_texts(_source), "hash": _of_texts(_hash),
        "chunk": _of_texts(_chunk), "vectors": _vectors,
    }  # fmt: skip
    for name, function in functions.items():
        connection.create_function(name, -1, function)
    for table in TABLES:
        connection.execute(f"ALTER TABLE {table} ADD COLUMN checksum INTEGER NOT NULL DEFAULT {NONE}")
    for update in UPDATES:
        connection.execute(update)
    connection.execute(META_IS_CHECKED)


def _of_texts(function: Callable[..., int]) -> Callable[..., int]:
    """The function for texts that are given as bytes; `NONE` where they are no text."""

    def checksum(*values: Any) -> int:
        try:
            return function(*(value.decode() if isinstance(value, bytes) else value for value in values))
        except UnicodeDecodeError:
            return NONE

    return checksum


def _hash(text: str, former: int) -> int:
    was = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)
    return text_hash(text) if was == former else NONE


def _source(*values: Any) -> int:
    *_, common, varying, _ = values
    return row_checksum(*values) if _is(common, dict) and _is(varying, list) else NONE


def _chunk(key: int, id: str, source: int, hash: int, own: str) -> int:
    return chunk_checksum(key, id, source, hash, own) if _is(own, dict) else NONE


def _vectors(source: int, chunks: int | None, data: bytes) -> int:
    fits = chunks and data and len(data) % (4 * chunks) == 0
    return vectors_checksum(source, data) if fits else NONE


def _is(written: str, kind: type) -> bool:
    try:
        return isinstance(json.loads(written), kind)
    except ValueError:
        return False
