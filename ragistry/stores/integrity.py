"""Whether what a `LocalStore`'s database holds is what was written: SQLite checks its pages, not what is in them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator

import numpy as np

from ragistry.stores.writing import text_hash

SHOWN = 10
UNIT = 1e-3
"""By how much the length of a stored vector may differ from 1."""


def faults(connection: sqlite3.Connection) -> list[str]:
    """What is wrong with the contents, one line each, the first of them; reads all of it."""
    found = [*_faulty_chunks(connection), *_faulty_sources(connection)]
    more = [f"and {len(found) - SHOWN:,} more"] if len(found) > SHOWN else []
    return found[:SHOWN] + more


def _faulty_chunks(connection: sqlite3.Connection) -> Iterator[str]:
    for id, text, stored_hash, own in connection.execute("SELECT id, text, text_hash, own FROM chunks"):
        if text_hash(text) != stored_hash:
            yield f"the text of chunk {id!r} is not what was written"
        if not _is_mapping(own):
            yield f"the metadata of chunk {id!r} cannot be read"


def _faulty_sources(connection: sqlite3.Connection) -> Iterator[str]:
    rows = connection.execute(
        "SELECT s.collection, s.source_file, s.chunks, s.common, v.data, (SELECT count(*) FROM chunks AS c"
        " WHERE c.source = s.id AND c.key BETWEEN s.first AND s.first + s.chunks - 1)"
        " FROM sources AS s LEFT JOIN vectors AS v ON v.source = s.id"
    )
    for collection, source_file, chunks, common, data, held in rows:
        name = f"source {source_file!r} of collection {collection!r}"
        if held != chunks:
            yield f"{name} has {held:,} chunks in place of {chunks:,}"
        if not _is_mapping(common):
            yield f"the metadata of {name} cannot be read"
        if not _are_unit_vectors(data, chunks):
            yield f"the vectors of {name} are not what was written"


def _is_mapping(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _are_unit_vectors(data: bytes | None, count: int) -> bool:
    if not data or count < 1 or len(data) % (4 * count):
        return False
    lengths = np.linalg.norm(np.frombuffer(data, dtype=np.float32).reshape(count, -1), axis=1)
    return bool(np.all(np.abs(lengths - 1) < UNIT))
