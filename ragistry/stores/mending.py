"""What `repair` does about what is damaged in a `LocalStore`'s database, each inside a transaction of its caller.

Nothing that is sound is lost: it stays, or where it stood in the way of all else, its texts are written into a file.
That file is its owner's: what is deleted from the store later stays in it. Each function returns what was done, and
what the owner of the store can do.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Container, Iterable
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ragistry.errors import StoreError
from ragistry.stores import meta
from ragistry.stores.catalog import Group
from ragistry.stores.database_file import VERSION
from ragistry.stores.embedder_record import DIMENSION, EMBEDDER, recorded_dimension
from ragistry.stores.groups import name_of
from ragistry.stores.reembedding import NEXT
from ragistry.stores.row_checksums import checked_vectors, chunk_checksum, intact_vectors, row_checksum, text_hash
from ragistry.stores.writing import SOURCE_COLUMNS, Rows, drop_groups, mark_unwhole, put_group
from ragistry.utils.shown import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ragistry.protocols import Vectors

NOTHING_LOST = "it was made again: nothing is lost"
MARKS = ("lexical_outbox", "vector_outbox")
"""Records that tell which index was made from the database: without its mark an index is made again."""
RECORDS = ("version", "store", "state", "generation", "next_key", DIMENSION, EMBEDDER, NEXT, *MARKS)
"""Every record that there can be of a store as a whole."""
UNIT = 1e-3
"""By how much the length of a stored vector may differ from 1."""


def indexes(connection: sqlite3.Connection) -> str:
    """Make SQLite's own indexes again, from their tables."""
    connection.execute("REINDEX")
    return NOTHING_LOST


def record(connection: sqlite3.Connection, name: str) -> str:
    """Make a record of the store as a whole again: from itself where only its name is damaged, else from the rest."""
    key = name.encode("utf-8", "surrogateescape")
    found = connection.execute("SELECT value, checksum FROM meta WHERE CAST(key AS BLOB) = ?", (key,)).fetchone()
    connection.execute("DELETE FROM meta WHERE CAST(key AS BLOB) = ?", (key,))
    for known in RECORDS if found else ():
        if row_checksum(known, found[0]) == found[1]:
            meta.put(connection, known, found[0])
            return NOTHING_LOST
    if name == "version":
        meta.put(connection, name, VERSION)
    elif name in ("state", "generation"):  # more than any count of writes, and more with each repair
        meta.put(connection, name, time.time_ns() // 1_000_000)
    elif name == "next_key":
        meta.put(connection, name, _next_key(connection))
    elif name == DIMENSION:
        if dimension := _dimension(connection):
            meta.put(connection, name, dimension)
    elif name == NEXT:
        connection.execute("DELETE FROM next_vectors")
        return "`ragistry reembed` starts anew"
    elif name not in ("store", *MARKS):  # that of the embedder, or one whose name is damaged too
        return (
            "nothing says any more which embedder the vectors are of, so the next one that is used is taken for it: "
            "use that with which the store was filled, or run `ragistry reembed`"
        )
    return NOTHING_LOST


def _next_key(connection: sqlite3.Connection) -> int:
    """A key above all that were given, as far as can be seen."""
    [last] = connection.execute(
        "SELECT max(coalesce(max(key), 0), (SELECT coalesce(max(key), 0) FROM lexical_outbox), "
        "(SELECT coalesce(max(key), 0) FROM vector_outbox), "
        "(SELECT coalesce(max(first + chunks), 1) - 1 FROM sources)) FROM chunks"
    ).fetchone()
    return int(last) + 1


def _dimension(connection: sqlite3.Connection) -> int | None:
    """How many numbers most vectors have."""
    found = connection.execute(
        "SELECT length(data) / s.chunks / 4 AS dimension FROM vectors JOIN sources AS s ON s.id = source "
        "WHERE s.chunks > 0 AND length(data) % (4 * s.chunks) = 0 "
        "GROUP BY dimension ORDER BY sum(s.chunks) DESC LIMIT 1"
    ).fetchone()
    return int(found[0]) if found else None


def next_vectors(connection: sqlite3.Connection, id: int) -> str:
    """Drop what another embedder made for a source."""
    connection.execute("DELETE FROM next_vectors WHERE source = ?", (id,))
    return "`ragistry reembed` makes them again"


def source(connection: sqlite3.Connection, id: int) -> str:
    """Make again what is recorded of a source, where its checksum proves it; else take the source out."""
    columns = ", ".join(SOURCE_COLUMNS)
    *row, checksum = connection.execute(f"SELECT {columns} FROM sources WHERE id = ?", (id,)).fetchone()
    for candidate in _candidates(connection, id, row):
        if row_checksum(*candidate) == checksum:
            changes = ", ".join(f"{column} = ?" for column in SOURCE_COLUMNS)
            if connection.execute(
                f"UPDATE OR IGNORE sources SET {changes} WHERE id = ?", (*candidate, checksum, id)
            ).rowcount:
                return NOTHING_LOST
    saved = _rescued(connection, id, _parsed(row[5]))
    drop_groups(connection, [id])
    again = "add them again" if row[2] is None else "ingest the source again"
    return f"its chunks were taken out, so that the rest can be used{saved}; {again}"


def lost_source(connection: sqlite3.Connection, id: int) -> str:
    """Take out what belongs to a source of which nothing is recorded any more."""
    saved = _rescued(connection, id, {})
    drop_groups(connection, [id])
    return f"what belonged to it was taken out, so that the rest can be used{saved}; ingest the source again"


def _candidates(connection: sqlite3.Connection, id: int, row: list[Any]) -> Iterable[tuple[Any, ...]]:
    """What the row of a source may have been: each value as it stands there, or as it follows from another place."""
    version, collection, source_file, first, chunks, common, varying, whole = row
    keys, owns = [], []
    for key, own in connection.execute("SELECT key, own FROM chunks WHERE source = ?", (id,)):
        keys.append(key)
        owns.append(_parsed(own))
    names = _parsed(common)
    derived = json.dumps(sorted({key for own in owns for key in own}))
    # What stands there comes first: a collection called "None" has the checksum of none at all.
    return product(
        [version],
        (collection, _text(names.get("collection")), None),
        (source_file, _text(names.get("source_file")), None),
        (first, min(keys, default=first)),
        (chunks, len(keys)),
        [common],
        (varying, derived),
        (whole, 0, 1),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def contents(connection: sqlite3.Connection, group: Group) -> str:
    """Write a group again where all that was damaged follows from the rest.

    Else let the source be ingested again; of chunks without one, take out what is damaged.
    """
    name, sound = name_of(group), _sound(connection, group)
    lost = group.chunks - len(sound.ids)
    if lost and name is not None:
        if group.whole:
            mark_unwhole(connection, group)
        return "it is lost: ingest the source again, which `ragistry ingest` takes for changed"
    saved = _rescued(connection, group.id, group.common, without=set(sound.ids))
    drop_groups(connection, [group.id])
    put_group(connection, name, sound, whole=group.whole)
    if not lost and not saved:
        return NOTHING_LOST
    return f"what is damaged was taken out, {lost:,} of {group.chunks:,} chunks{saved}; add them again"


def _sound(connection: sqlite3.Connection, group: Group) -> Rows:
    """The chunks of a group that are what was written, with their vectors."""
    found = connection.execute("SELECT data, checksum FROM vectors WHERE source = ?", (group.id,)).fetchone()
    if not (found and intact_vectors(group.id, group.chunks, *found)):
        return Rows([], [], [], np.empty((0, 0), dtype=np.float32))
    vectors = checked_vectors(group.id, group.chunks, *found)
    usable = are_units(vectors, recorded_dimension(connection))
    rows = connection.execute(
        "SELECT key, id, own, checksum, text FROM chunks WHERE source = ? ORDER BY key", (group.id,)
    )
    sound = [
        (id, text, group.metadata(json.loads(own)), key - group.first)
        for key, id, own, checksum, text in rows
        if chunk_checksum(key, id, group.id, text_hash(text), own) == checksum and usable[key - group.first]
    ]
    return Rows(
        [id for id, *_ in sound], [text for _, text, *_ in sound], [metadata for *_, metadata, _ in sound],
        vectors[[place for *_, place in sound]],
    )  # fmt: skip


def are_units(vectors: Vectors, dimension: int | None) -> NDArray[np.bool_]:
    """Of each vector, ``(n, d)``, whether it is one of a store of this dimension: of length 1."""
    lengths = np.linalg.norm(vectors, axis=1)
    found: NDArray[np.bool_] = (np.abs(lengths - 1) < UNIT) & (vectors.shape[1] == dimension)
    return found


def _rescued(connection: sqlite3.Connection, id: int, common: dict[str, Any], without: Container[str] = ()) -> str:
    """Write the chunks of a source into a file, a line each, with the texts that are what was written; says where.

    ``without``: the ids of those that stay. Ids and metadata are as they are found, and may be what is damaged. The
    file is for whoever may read the database; what is in it decides its name, so that a repair that fails and is
    begun again writes the same file.
    """
    rows = connection.execute("SELECT id, text, text_hash, own FROM chunks WHERE source = ? ORDER BY key", (id,))
    chunks = [
        {"id": id, "text": text if text_hash(text) == hash else None, "metadata": common | _parsed(own)}
        for id, text, hash, own in rows
        if id not in without
    ]
    if not chunks:
        return ""
    written = "".join(f"{json.dumps(chunk, ensure_ascii=False)}\n" for chunk in chunks)
    content = written.encode("utf-8", "backslashreplace")
    [database] = connection.execute("SELECT file FROM pragma_database_list WHERE name = 'main'").fetchone()
    file = Path(database).with_name(f"rescued-{sha256(content).hexdigest()[:8]}.jsonl")
    try:
        file.touch(mode=Path(database).stat().st_mode & 0o777)
        with file.open("wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
    except OSError as error:
        file.unlink(missing_ok=True)
        raise StoreError(
            f"nothing was changed: cannot write {str(file)!r}: {error.strerror}; make room, or the folder writable"
        ) from error
    return (
        f" ({shown([chunk['id'] for chunk in chunks])}); their texts, where these are sound, are in {str(file)!r}, out "
        "of which no deletion takes them: remove that file when it has served"
    )


def _parsed(written: Any) -> dict[str, Any]:
    """Metadata as they are stored; none where they cannot be read."""
    try:
        found = json.loads(written)
    except (TypeError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
