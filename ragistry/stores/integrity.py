"""Whether what a `LocalStore`'s database holds is what was written: SQLite checks its pages, not what is in them."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from ragistry.stores import mending, meta
from ragistry.stores.catalog import Catalog, Group
from ragistry.stores.database_errors import ERRORS
from ragistry.stores.database_file import FILE
from ragistry.stores.embedder_record import recorded_dimension
from ragistry.stores.row_checksums import as_vectors, chunk_checksum, intact_vectors, row_checksum, text_hash, undecoded
from ragistry.stores.writing import SOURCE_COLUMNS, columns_of
from ragistry.utils.shown import one_line

SHOWN = 10
INDEX = re.compile("row [0-9]+ missing from index|wrong # of entries in index")
"""What SQLite says of an index of its own that does not agree with its table."""


class Fault(NamedTuple):
    """Something that is not what was written.

    ``about``: what it is a fault of, where several may be of the same. ``mend``: does what can be done about it inside
    a transaction, and returns what was done and what its owner can do.
    """

    said: str
    about: Hashable = None
    mend: Callable[[sqlite3.Connection], str] | None = None


def faults(connection: sqlite3.Connection) -> Iterator[Fault]:
    """What is wrong with the contents, which are read whole; only the first kind, without which no other can be told.

    They are the pages, the records of the store as a whole, what is recorded of each source, and all that they hold.
    """
    with undecoded(connection):
        try:
            for kind in (_faulty_pages, _faulty_records, _lost_sources, _faulty_sources, _faulty_contents):
                found = list(kind(connection))
                yield from found
                if found:
                    return
        except ERRORS as error:
            yield Fault(one_line(str(error)))


def told(faults: Sequence[Fault]) -> list[str]:
    """One line each, the first of them."""
    more = [f"{FILE}: and {len(faults) - SHOWN:,} more"] if len(faults) > SHOWN else []
    return [f"{FILE}: {fault.said}" for fault in faults[:SHOWN]] + more


def mended(connection: sqlite3.Connection, faults: Sequence[Fault]) -> dict[str, str]:
    """Do what can be done about each; by the first fault of a source, and all else: what is wrong, what can be done."""
    first = {fault.about or fault.said: fault for fault in reversed(faults)}
    with undecoded(connection):
        return {
            fault.said: f"{FILE}: {fault.said}; {fault.mend(connection)}" if fault.mend else beyond_repair(fault)
            for fault in reversed(first.values())
        }


def beyond_repair(fault: Fault) -> str:
    """What is wrong, and what its owner can do."""
    return f"{FILE}: {fault.said}; put the file back from a backup, or ingest everything again into a new folder"


def _faulty_pages(connection: sqlite3.Connection) -> Iterator[Fault]:
    broken = [line for (line,) in connection.execute("PRAGMA integrity_check") if line != "ok"]
    mend = mending.indexes if all(map(INDEX.match, broken)) else None
    for line in broken:
        yield Fault(line, mend and INDEX, mend)


def _lost_sources(connection: sqlite3.Connection) -> Iterator[Fault]:
    rows = connection.execute(
        "SELECT source FROM chunks UNION SELECT source FROM vectors UNION SELECT source FROM next_vectors "
        "EXCEPT SELECT id FROM sources"
    )
    for (id,) in rows.fetchall():
        yield Fault(f"what is recorded of source number {id} is gone", id, partial(mending.lost_source, id=id))


def _faulty_records(connection: sqlite3.Connection) -> Iterator[Fault]:
    rows = connection.execute("SELECT key, value, checksum FROM meta").fetchall()
    [last] = connection.execute("SELECT max(first + chunks) FROM sources").fetchone()
    for name, value, checksum in rows:
        if row_checksum(name, value) != checksum:
            yield Fault(f"the record {name!r} is not what was written", mend=partial(mending.record, name=name))
    present = {name for name, *_ in rows}
    for name in [name for name in ("state", "generation", "next_key", "dimension") if name not in present]:
        if name != "dimension" or last:
            yield Fault(f"the record {name!r} is gone", mend=partial(mending.record, name=name))


def _faulty_sources(connection: sqlite3.Connection) -> Iterator[Fault]:
    for id, *row, checksum in connection.execute(f"SELECT id, {', '.join(SOURCE_COLUMNS)} FROM sources"):
        if row_checksum(*row) != checksum:
            name = f"group {id} of chunks without a source"
            if row[2] is not None:
                name = f"source {row[2]!r} of collection {row[1]!r}"
            yield Fault(f"what is recorded of {name} is not what was written", id, partial(mending.source, id=id))


def _faulty_contents(connection: sqlite3.Connection) -> Iterator[Fault]:
    groups = Catalog().refreshed(connection).groups
    dimension = recorded_dimension(connection)
    yield from _faulty_chunks(connection, groups)
    for group in groups.values():
        yield from _faulty_vectors(connection, group, dimension)
    [last] = connection.execute("SELECT coalesce(max(first + chunks), 1) FROM sources").fetchone()
    if meta.number(connection, "next_key") < last:
        mend = partial(mending.record, name="next_key")
        yield Fault("the next chunks would get the keys of others", mend=mend)


def _of(group: Group, said: str) -> Fault:
    return Fault(said, group.id, partial(mending.contents, group=group))


def _faulty_chunks(connection: sqlite3.Connection, groups: dict[int, Group]) -> Iterator[Fault]:
    held = dict.fromkeys(groups, 0)
    rows = connection.execute(
        "SELECT key, id, source, text_hash, own, checksum, text, page, section, has_code FROM chunks ORDER BY key"
    )
    for key, id, source, hash, own, checksum, text, *columns in rows:
        group = groups.get(source)
        if group is None or not group.first <= key < group.first + group.chunks:
            said = f"chunk {id!r} belongs to no source"
            yield Fault(said) if group is None else _of(group, said)
            continue
        held[source] += 1
        if text_hash(text) != hash:
            yield _of(group, f"the text of chunk {id!r} of {group.name} is not what was written")
        elif chunk_checksum(key, id, source, hash, own) != checksum or columns_of(json.loads(own)) != columns:
            yield _of(group, f"the metadata of chunk {id!r} of {group.name} are not what was written")
    for group in groups.values():
        if held[group.id] != group.chunks:
            yield _of(group, f"{group.name} has {held[group.id]:,} chunks in place of {group.chunks:,}")


def _faulty_vectors(connection: sqlite3.Connection, group: Group, dimension: int | None) -> Iterator[Fault]:
    said = f"the vectors of {group.name} are not what was written"
    found = connection.execute("SELECT data, checksum FROM vectors WHERE source = ?", (group.id,)).fetchone()
    is_intact = found and intact_vectors(group.id, group.chunks, *found)
    if not (is_intact and mending.are_units(as_vectors(group.id, group.chunks, found[0]), dimension).all()):
        yield _of(group, said)
    found = connection.execute("SELECT data, checksum FROM next_vectors WHERE source = ?", (group.id,)).fetchone()
    if found and not intact_vectors(group.id, group.chunks, *found):
        mend = partial(mending.next_vectors, id=group.id)
        yield Fault(f"{said}, those that `ragistry reembed` made", mend=mend)
