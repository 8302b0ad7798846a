"""Reads from a `LocalStore`'s database: in a snapshot of the caller, or followed by a read that tells the state."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ragistry.stores.catalog import Catalog, Group, Selection, state_of
from ragistry.stores.narrowing import Narrowing, narrowed
from ragistry.stores.row_checksums import (
    Damaged,
    as_vectors,
    checked_vectors,
    chunk_checksum,
    intact_vectors,
    text_hash,
    undecoded,
)
from ragistry.stores.writing import Rows
from ragistry.types import Document
from ragistry.utils.chunk_checks import id_problem
from ragistry.utils.where import matches

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

Keys = NDArray[np.int64]
AT_ONCE = 10_000
FEW = 1_000
"""So many values are better given one by one than as JSON, for which SQLite needs some 30 µs more."""
MOST = 512
"""Groups whose vectors are read by one statement."""
_parsed = json.JSONDecoder().raw_decode
"""`json.loads` without its search for blanks around."""


class Outdated(Exception):  # noqa: N818
    """The store was written to since a catalog was read."""


def contents(
    connection: sqlite3.Connection, catalog: Catalog, keys: Sequence[int], *, checked: bool = False
) -> list[tuple[int, str, str, dict[str, Any]]]:
    """Of each of these keys that is stored: the key, the chunk's id, its text, its metadata.

    A text is always what was written; the rest too where it is ``checked``, for which a search is not to wait. Raises
    `Outdated` where the catalog is that of another state, which outside of a snapshot may be.
    """
    found = []
    state = str(catalog.state)
    for page in _pages(keys, FEW):
        rows = connection.execute(_contents(len(page)), (*page, state)).fetchall()
        if len(rows) < len(page):
            _refuse_lost(connection, catalog, set(page).difference([row[0] for row in rows]))
        for (key, id, source, hash, own, checksum, text), read in zip(rows, _owns(rows), strict=True):
            if text_hash(text) != hash or (checked and chunk_checksum(key, id, source, hash, own) != checksum):
                raise _damaged(id)
            found.append((key, id, text, catalog.group(source).metadata(read)))
    return found


@cache
def _contents(keys: int) -> str:
    # Joined to a list of rows, which are looked up as they come: what stands after IN is put into a table first.
    rows = ",".join(["(?)"] * keys)
    return (
        f"SELECT {_CHUNK}, text FROM (VALUES {rows}) AS wanted CROSS JOIN chunks ON key = wanted.column1 "
        "WHERE (SELECT value FROM meta WHERE key = 'state') = ?"
    )


def _owns(rows: list[Any]) -> list[dict[str, Any]]:
    """What the fifth column of each row holds."""
    try:
        owns: list[Any] = _parsed(f"[{','.join([row[4] for row in rows])}]")[0]  # all at once takes half as long
    except ValueError as error:
        raise Damaged("the metadata of a chunk cannot be read") from error
    if [*map(type, owns)] != [dict] * len(rows):
        raise Damaged("the metadata of a chunk are not what was written")
    return owns


_CHUNK = "key, id, source, text_hash, own, checksum"


def _check_chunk(key: int, id: str, source: int, hash: int, own: str, checksum: int) -> None:
    """Raise `Damaged` unless all this is what was written."""
    if chunk_checksum(key, id, source, hash, own) != checksum:
        raise _damaged(id)


def _damaged(id: str) -> Damaged:
    return Damaged(f"chunk {id!r} is not what was written")


def documents(connection: sqlite3.Connection, catalog: Catalog, keys: Sequence[int]) -> list[Document]:
    """The chunks of these keys, in their order."""
    read = contents(connection, catalog, keys, checked=True)
    found = {key: Document(text, metadata, 0.0, id) for key, id, text, metadata in read}
    return [found[key] for key in keys if key in found]


def documents_of(connection: sqlite3.Connection, catalog: Catalog, ids: Sequence[str]) -> list[Document]:
    """The chunks of these ids that are stored, in their order."""
    keys = keys_of(connection, ids)
    found = {document.id: document for document in documents(connection, catalog, list(keys.values()))}
    if found.keys() != keys.keys():
        raise Damaged("the index of ids leads to other chunks")
    return [found[id] for id in ids if id in found]


def _refuse_lost(connection: sqlite3.Connection, catalog: Catalog, keys: set[int]) -> None:
    """Raise `Damaged` if a source has one of these keys, of which there are no chunks, else maybe `Outdated`."""
    if state_of(connection) != catalog.state:
        raise Outdated
    for key in keys:
        if group := catalog.group_at(key):
            raise Damaged(f"a chunk of {group.name} is gone")


def keys_of(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, int]:
    """The key of each id that is stored; what could not be one is none."""
    found: dict[str, int] = {}
    # One by one: SQLite's JSON cuts a text where it holds a NUL, and what is left may be the id of another chunk.
    for page in _pages([id for id in ids if not id_problem(id)], FEW):
        found.update(connection.execute(f"SELECT id, key FROM chunks WHERE id IN ({_marks(page)})", page))
    return found


def selected_keys(connection: sqlite3.Connection, selection: Selection) -> Keys:
    """The keys of a selection, ascending."""
    parts = [np.arange(group.first, group.first + group.chunks, dtype=np.int64) for group in selection.whole]
    by_condition: dict[str, list[Group]] = {}
    for group, left in selection.partial:
        by_condition.setdefault(json.dumps(left, sort_keys=True), []).append(group)
    parts += [
        np.fromiter(_matching(connection, groups, json.loads(left)), dtype=np.int64)
        for left, groups in by_condition.items()
    ]
    keys = np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
    keys.sort()
    return keys


def count_selected(connection: sqlite3.Connection, selection: Selection) -> int:
    """How many chunks are selected."""
    partial = Selection([], selection.partial)
    return sum(group.chunks for group in selection.whole) + len(selected_keys(connection, partial))


def _matching(connection: sqlite3.Connection, groups: list[Group], where: dict[str, Any]) -> Iterator[int]:
    """The keys of chunks that meet a condition, by the columns it names, else by reading those that may meet it."""
    sources = json.dumps([group.id for group in groups])
    narrowing = narrowed(where)
    chosen = f"FROM chunks WHERE source IN (SELECT value FROM json_each(?)) AND {narrowing.sql}"
    values = (sources, *narrowing.values)
    if narrowing.column and (found := _in_index(connection, groups, narrowing)) is not None:
        yield from found
        return
    if narrowing.exact:
        yield from (key for (key,) in connection.execute(f"SELECT key {chosen}", values))
        return
    common = {group.id: group.common for group in groups}
    for row in connection.execute(f"SELECT {_CHUNK} {chosen}", values):
        _check_chunk(*row)
        key, _, source, _, own, _ = row
        if source in common and matches(where, common[source] | json.loads(own)):
            yield key
    there = connection.execute(
        "SELECT count(*) FROM chunks WHERE source IN (SELECT value FROM json_each(?))", (sources,)
    )
    lacking = sum(group.chunks for group in groups) - there.fetchone()[0]
    if lacking:
        raise Damaged(f"{lacking:,} chunks of the sources in question are gone")


def _in_index(connection: sqlite3.Connection, groups: list[Group], narrowing: Narrowing) -> list[int] | None:
    """The keys that an index finds in these groups; None where it has more of other groups than these have chunks."""
    most = sum(group.chunks for group in groups)
    rows = connection.execute(f"SELECT key FROM chunks WHERE {narrowing.sql} LIMIT ?", (*narrowing.values, most + 1))
    keys = np.fromiter((key for (key,) in rows), dtype=np.int64)
    if len(keys) > most:
        return None
    ranges = np.array(sorted((group.first, group.first + group.chunks) for group in groups), dtype=np.int64)
    places = np.searchsorted(ranges[:, 0], keys, side="right") - 1
    found: list[int] = keys[(places >= 0) & (keys < ranges[places, 1])].tolist()
    return found


def group_vectors(connection: sqlite3.Connection, groups: Sequence[Group]) -> Iterator[tuple[Group, Vectors]]:
    """Of each group its vectors, ``(chunks, d)``, in the order of their keys; read only, and not looked over."""
    by_id = {group.id: group for group in groups}
    for page in map(_padded, _pages(list(by_id), MOST)):
        rows = connection.execute(f"SELECT source, data FROM vectors WHERE source IN ({_marks(page)})", page)
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
    rows = connection.execute(f"SELECT {_CHUNK}, text FROM chunks WHERE source = ? ORDER BY key", (group.id,))
    found = []
    for key, id, _, _, own, checksum, text in rows:
        _check_chunk(key, id, group.id, text_hash(text), own, checksum)
        found.append((id, text, group.metadata(json.loads(own))))
    if len(found) != group.chunks:
        raise Damaged(f"{group.name} has {len(found):,} chunks in place of {group.chunks:,}")
    return found


def vectors_of_texts(connection: sqlite3.Connection, texts: Sequence[str]) -> dict[str, Vectors]:
    """The vector of every text that is stored somewhere."""
    wanted = {text_hash(text): text for text in texts}
    places: dict[str, tuple[int, int]] = {}
    for page in _pages(list(wanted)):
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


def _marks(page: Sequence[Any]) -> str:
    return ",".join("?" * len(page))


def _pages(items: Sequence[Any], at_once: int = AT_ONCE) -> Iterable[Sequence[Any]]:
    if 0 < len(items) <= at_once:
        return (items,)
    return [items[start : start + at_once] for start in range(0, len(items), at_once)]
