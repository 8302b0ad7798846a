"""Whole groups of a `LocalStore`: their vectors, and all that is theirs where they are written again."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ragistry.stores.catalog import Group
from ragistry.stores.reading import CHUNK, marks, pages
from ragistry.stores.row_checksums import (
    Damaged,
    as_vectors,
    check_chunk,
    checked_vectors,
    chunk_checksum,
    intact_vectors,
    text_hash,
    undecoded,
)
from ragistry.stores.writing import Rows

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

MOST = 512
"""Groups whose vectors are read by one statement."""


def group_vectors(connection: sqlite3.Connection, groups: Sequence[Group]) -> Iterator[tuple[Group, Vectors]]:
    """Of each group its vectors, ``(chunks, d)``, in the order of their keys; read only, and not looked over."""
    by_id = {group.id: group for group in groups}
    for page in map(_padded, pages(list(by_id), MOST)):
        rows = connection.execute(f"SELECT source, data FROM vectors WHERE source IN ({marks(page)})", page)
        for source, data in rows:
            if group := by_id.pop(source, None):
                yield group, as_vectors(group.id, group.chunks, data)
    for group in by_id.values():
        raise Damaged(f"the vectors of {group.name} are gone")


def group_rows(connection: sqlite3.Connection, group: Group) -> Rows:
    """All of a group, to be written again."""
    chunks = group_chunks(connection, group)
    vectors = _intact_vectors(connection, group)
    return Rows([id for id, _, _ in chunks], [text for _, text, _ in chunks], [own for *_, own in chunks], vectors)


def _intact_vectors(connection: sqlite3.Connection, group: Group) -> Vectors:
    found = connection.execute("SELECT data, checksum FROM vectors WHERE source = ?", (group.id,)).fetchone()
    if found is None or not intact_vectors(group.id, group.chunks, *found):
        raise Damaged(f"the vectors of {group.name} are not what was written")
    return checked_vectors(group.id, group.chunks, *found)


def group_chunks(connection: sqlite3.Connection, group: Group) -> list[tuple[str, str, dict[str, Any]]]:
    """Of each chunk of a group its id, its text and its whole metadata."""
    rows = connection.execute(f"SELECT {CHUNK}, text FROM chunks WHERE source = ? ORDER BY key", (group.id,))
    found = []
    for key, id, _, _, own, checksum, text in rows:
        check_chunk(key, id, group.id, text_hash(text), own, checksum)
        found.append((id, text, group.metadata(json.loads(own))))
    if len(found) != group.chunks:
        raise Damaged(f"{group.name} has {len(found):,} chunks in place of {group.chunks:,}")
    return found


def vectors_of_texts(connection: sqlite3.Connection, texts: Sequence[str]) -> dict[str, Vectors]:
    """The vector of every text that is stored somewhere."""
    wanted = {text_hash(text): text for text in texts}
    places: dict[str, tuple[int, int]] = {}
    for page in pages(list(wanted)):
        rows = connection.execute(
            "SELECT c.text, c.source, c.key - s.first, c.key, c.id, c.text_hash, c.own, c.checksum "
            "FROM json_each(?) AS wanted "
            "JOIN chunks AS c ON c.text_hash = wanted.value JOIN sources AS s ON s.id = c.source",
            (json.dumps(page),),
        )
        with undecoded(connection):
            for text, source, row, key, id, hash, own, checksum in rows:
                if wanted.get(hash) == text and chunk_checksum(key, id, source, hash, own) == checksum:
                    places[text] = (source, row)
    found: dict[str, Vectors] = {}
    by_source: dict[int, list[tuple[str, int]]] = {}
    for text, (source, row) in places.items():
        by_source.setdefault(source, []).append((text, row))
    for source, pairs in by_source.items():
        stored = connection.execute(
            "SELECT s.chunks, v.data, v.checksum FROM vectors AS v JOIN sources AS s ON s.id = v.source WHERE s.id = ?",
            (source,),
        ).fetchone()
        if stored and intact_vectors(source, *stored):  # what is damaged is made again
            matrix = checked_vectors(source, *stored)
            found |= {text: matrix[row] for text, row in pairs if 0 <= row < len(matrix)}
    return found


def _padded(page: Sequence[int]) -> list[int]:
    """8, 64 or 512 ids, the last of them again and again: so that few statements have ever to be compiled."""
    size = 8
    while size < len(page):
        size *= 8
    return [*page, *[page[-1]] * (size - len(page))]
