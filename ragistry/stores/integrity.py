"""Whether what a `LocalStore`'s database holds is what was written: SQLite checks its pages, not what is in them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ragistry.stores import meta
from ragistry.stores.catalog import Catalog, Group
from ragistry.stores.database_file import FILE
from ragistry.stores.embedder_record import recorded_dimension, recorded_embedder
from ragistry.stores.row_checksums import Damaged, chunk_checksum, intact_vectors, row_checksum, text_hash
from ragistry.stores.writing import SOURCE_COLUMNS, columns_of, drop_groups, mark_unwhole

SHOWN = 10
UNIT = 1e-3
"""By how much the length of a stored vector may differ from 1."""


class Fault(NamedTuple):
    """Something that is not what was written, and cannot be made again.

    ``group``: the source whose it is; ``unreadable``: the number of a source of which nobody knows what it was.
    """

    said: str
    group: Group | None = None
    unreadable: int | None = None

    @property
    def remedy(self) -> str:
        """What its owner can do."""
        if self.unreadable is not None:
            return "its chunks were taken out, so that the rest can be used: ingest the source again"
        if self.group is None:
            return "put the file back from a backup, or ingest everything again into a new folder"
        if self.group.source_file is None:
            return "it is lost: delete the chunks of this group and add them again"
        return "it is lost: ingest the source again, which `ragistry ingest` takes for changed"


def faults(connection: sqlite3.Connection) -> Iterator[Fault]:
    """What is wrong with the contents, which are read whole."""
    try:
        for (name,) in connection.execute("SELECT key FROM meta").fetchall():
            meta.value(connection, name)
        unreadable = list(_unreadable_sources(connection))
        if unreadable:
            yield from unreadable
            return
        groups = Catalog().refreshed(connection).groups
        recorded_embedder(connection)
        dimension = recorded_dimension(connection)
    except Damaged as error:  # without these nothing else can be told
        yield Fault(str(error))
        return
    yield from _faulty_chunks(connection, groups)
    for group in groups.values():
        yield from _faulty_vectors(connection, group, dimension)
    yield from _faulty_keys(connection)


def told(faults: Sequence[Fault]) -> list[str]:
    """One line each, the first of them."""
    more = [f"{FILE}: and {len(faults) - SHOWN:,} more"] if len(faults) > SHOWN else []
    return [f"{FILE}: {fault.said}" for fault in faults[:SHOWN]] + more


def remedies(faults: Sequence[Fault]) -> list[str]:
    """One line for each source of which something is lost, and for all else: what is wrong, and what can be done."""
    first = {fault.group.id if fault.group else fault.said: fault for fault in reversed(faults)}
    return [f"{FILE}: {fault.said}; {fault.remedy}" for fault in reversed(first.values())]


def give_up(connection: sqlite3.Connection, faults: Sequence[Fault]) -> None:
    """Take every source of which something is lost for one that has to be ingested again; drop the unreadable."""
    drop_groups(connection, [fault.unreadable for fault in faults if fault.unreadable is not None])
    for group in {fault.group.id: fault.group for fault in faults if fault.group is not None}.values():
        if group.whole:
            mark_unwhole(connection, group)


def _unreadable_sources(connection: sqlite3.Connection) -> Iterator[Fault]:
    for id, *row, checksum in connection.execute(f"SELECT id, {', '.join(SOURCE_COLUMNS)} FROM sources"):
        if row_checksum(*row) != checksum:
            name = f"source {row[2]!r} of collection {row[1]!r}"
            yield Fault(f"what is recorded of {name} is not what was written", unreadable=id)


def _faulty_chunks(connection: sqlite3.Connection, groups: dict[int, Group]) -> Iterator[Fault]:
    held = dict.fromkeys(groups, 0)
    rows = connection.execute(
        "SELECT key, id, source, text_hash, own, checksum, text, page, section, has_code FROM chunks ORDER BY key"
    )
    for key, id, source, hash, own, checksum, text, *columns in rows:
        group = groups.get(source)
        if group is None or not group.first <= key < group.first + group.chunks:
            yield Fault(f"chunk {id!r} belongs to no source")
            continue
        held[source] += 1
        if text_hash(text) != hash:
            yield Fault(f"the text of chunk {id!r} of {group.name} is not what was written", group)
        elif chunk_checksum(key, id, source, hash, own) != checksum or columns_of(json.loads(own)) != columns:
            yield Fault(f"the metadata of chunk {id!r} of {group.name} are not what was written", group)
    for group in groups.values():
        if held[group.id] != group.chunks:
            yield Fault(f"{group.name} has {held[group.id]:,} chunks in place of {group.chunks:,}", group)


def _faulty_vectors(connection: sqlite3.Connection, group: Group, dimension: int | None) -> Iterator[Fault]:
    said = f"the vectors of {group.name} are not what was written"
    found = connection.execute("SELECT data, checksum FROM vectors WHERE source = ?", (group.id,)).fetchone()
    if not (found and intact_vectors(group.id, group.chunks, *found) and _are_units(found[0], group.chunks, dimension)):
        yield Fault(said, group)
    found = connection.execute("SELECT data, checksum FROM next_vectors WHERE source = ?", (group.id,)).fetchone()
    if found and not intact_vectors(group.id, group.chunks, *found):
        yield Fault(f"{said}, those that `ragistry reembed` made", group)


def _are_units(data: bytes, chunks: int, dimension: int | None) -> bool:
    vectors = np.frombuffer(data, dtype=np.float32).reshape(chunks, -1)
    lengths = np.linalg.norm(vectors, axis=1)
    return vectors.shape[1] == dimension and bool(np.all(np.abs(lengths - 1) < UNIT))


def _faulty_keys(connection: sqlite3.Connection) -> Iterator[Fault]:
    [last] = connection.execute("SELECT coalesce(max(first + chunks), 1) FROM sources").fetchone()
    if meta.number(connection, "next_key") < last:
        yield Fault("the next chunks would get the keys of others")
