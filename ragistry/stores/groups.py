"""Adding, replacing, moving and removing chunks of a `LocalStore`, each inside a transaction of its caller."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ragistry.errors import DuplicateChunkIDError
from ragistry.stores.catalog import Catalog, Group
from ragistry.stores.group_reading import group_chunks, group_rows
from ragistry.stores.reading import keys_of
from ragistry.stores.writing import LOOSE_GROUP, Rows, drop_groups, move_group, put_group
from ragistry.utils.chunk_checks import CheckedChunks
from ragistry.utils.ids import chunk_id
from ragistry.utils.shown import shown

Name = tuple[str, str]


def add(connection: sqlite3.Connection, catalog: Catalog, chunks: CheckedChunks) -> None:
    """Write chunks, each in the place of what has its id; those of a source join what is stored of it."""
    incoming = Rows(chunks.ids, chunks.texts, chunks.metadatas, chunks.vectors)
    parts = _by_name(incoming)
    taken = _groups_of(connection, catalog, keys_of(connection, incoming.ids).values())
    named = {name: group for group in catalog.groups.values() if (name := name_of(group)) in parts}
    affected = {group.id: group for group in [*taken, *named.values()]}
    new_ids = set(incoming.ids)
    for group in affected.values():
        rows = group_rows(connection, group)
        kept = rows.picked([row for row, id in enumerate(rows.ids) if id not in new_ids])
        name = name_of(group)
        parts[name] = _joined(kept, parts[name]) if name in parts else kept
    drop_groups(connection, affected)
    for name, rows in parts.items():
        _put(connection, name, rows)


def replace(connection: sqlite3.Connection, name: Name, chunks: CheckedChunks) -> None:
    """Put the chunks of a source in the place of all that is stored of it."""
    found = connection.execute("SELECT id FROM sources WHERE collection = ? AND source_file = ?", name).fetchone()
    if found:
        drop_groups(connection, found)
    _refuse_taken(connection, chunks.ids)
    put_group(connection, name, Rows(chunks.ids, chunks.texts, chunks.metadatas, chunks.vectors), whole=True)


def remove(connection: sqlite3.Connection, catalog: Catalog, keys: Iterable[int]) -> int:
    """Remove the chunks of these keys, and return how many there were."""
    gone = set(keys)
    affected = _groups_of(connection, catalog, gone)
    rest = []
    for group in affected:
        own = range(group.first, group.first + group.chunks)
        kept = [row for row, key in enumerate(own) if key not in gone]
        if kept:
            rest.append((name_of(group), group_rows(connection, group).picked(kept)))
    drop_groups(connection, [group.id for group in affected])
    for name, rows in rest:
        put_group(connection, name, rows)
    return len(gone)


def move(connection: sqlite3.Connection, catalog: Catalog, source_file: str, old: str, new: str) -> int:
    """Give a source to another collection; vectors and row keys stay as they are."""
    return _move(connection, _named_groups(catalog), source_file, old, new)


def move_all(connection: sqlite3.Connection, catalog: Catalog, old: str, new: str) -> int:
    """Give every source of a collection to another."""
    names = _named_groups(catalog)
    return sum(_move(connection, names, name[1], old, new) for name in names if name[0] == old)


def _named_groups(catalog: Catalog) -> dict[Name, Group]:
    return {name: group for group in catalog.groups.values() if (name := name_of(group)) is not None}


def _move(connection: sqlite3.Connection, names: dict[Name, Group], source_file: str, old: str, new: str) -> int:
    group = names.get((old, source_file))
    if group is None or old == new:
        return 0 if group is None else group.chunks
    if (new, source_file) in names:
        raise DuplicateChunkIDError(
            f"collection {shown(new)} has a source {shown(source_file)} already; "
            "delete that one first, or rename the file"
        )
    ids = {id: _moved_id(id, metadata, group, new) for id, _, metadata in group_chunks(connection, group)}
    _refuse_taken(connection, [to for id, to in ids.items() if to != id])
    move_group(connection, group, (new, source_file), ids)
    return group.chunks


def name_of(group: Group) -> Name | None:
    """The name of a source; None for chunks that belong to none."""
    return None if group.collection is None or group.source_file is None else (group.collection, group.source_file)


def _moved_id(id: str, metadata: dict[str, Any], group: Group, to: str) -> str:
    """An id that follows from the source's name follows it; one that somebody chose stays."""
    index = metadata.get("chunk_index")
    if isinstance(index, int) and id == chunk_id(str(group.collection), str(group.source_file), index):
        return chunk_id(to, str(group.source_file), index)
    return id


def _by_name(rows: Rows) -> dict[Name | None, Rows]:
    """The rows by the source that their metadata name; None: those that name none."""
    places: dict[Name | None, list[int]] = {}
    for row, metadata in enumerate(rows.metadatas):
        places.setdefault(_named(metadata), []).append(row)
    return {name: rows.picked(picked) for name, picked in places.items()}


def _named(metadata: dict[str, Any]) -> Name | None:
    collection, source_file, index = (metadata.get(key) for key in ("collection", "source_file", "chunk_index"))
    if isinstance(collection, str) and isinstance(source_file, str) and type(index) is int:
        return collection, source_file
    return None


def _joined(one: Rows, other: Rows) -> Rows:
    return Rows(
        [*one.ids, *other.ids], [*one.texts, *other.texts], [*one.metadatas, *other.metadatas],
        np.concatenate([one.vectors, other.vectors]) if one.ids else other.vectors,
    )  # fmt: skip


def _put(connection: sqlite3.Connection, name: Name | None, rows: Rows) -> None:
    if name is None:
        for start in range(0, len(rows.ids), LOOSE_GROUP):
            put_group(connection, None, rows.picked(range(start, min(start + LOOSE_GROUP, len(rows.ids)))))
        return
    order = sorted(range(len(rows.ids)), key=lambda row: (rows.metadatas[row]["chunk_index"], rows.ids[row]))
    put_group(connection, name, rows.picked(order))


def _refuse_taken(connection: sqlite3.Connection, ids: Sequence[str]) -> None:
    taken = keys_of(connection, ids)
    if taken:
        raise DuplicateChunkIDError(
            f"nothing was changed: chunk {next(iter(taken))!r} is stored under another source; delete it first"
        )


def _groups_of(connection: sqlite3.Connection, catalog: Catalog, keys: Iterable[int]) -> list[Group]:
    """The groups in which these keys lie, each once."""
    return list({group.id: group for group in _each_group(connection, catalog, list(keys))}.values())


def _each_group(connection: sqlite3.Connection, catalog: Catalog, keys: list[int]) -> Iterator[Group]:
    rows = connection.execute(
        "SELECT DISTINCT source FROM chunks WHERE key IN (SELECT value FROM json_each(?))", (json.dumps(keys),)
    )
    for (source,) in rows:
        yield catalog.group(source)
