"""Write, move, remove and read the rows of sources and chunks, inside a transaction of the caller."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from psycopg.errors import UniqueViolation

from ragistry.chunking.breadcrumb import searched_text
from ragistry.errors import DuplicateChunkIDError, EmbeddingMismatchError
from ragistry.stores import unsearchable
from ragistry.stores.chunk_checks import CheckedChunks, id_problem
from ragistry.stores.postgres.database import Connection, Head, Transaction, lock
from ragistry.stores.postgres.where import EscapedRows, Sql, escaped, facets, unescaped
from ragistry.stores.records import (
    NAMES,
    Keys,
    Name,
    check_stored,
    compact_json,
    moved_id,
    source_in,
    source_info,
    taken_source_error,
    text_hash,
)
from ragistry.types import Chunk, Document, SourceInfo
from ragistry.utils.metadata import RESERVED, SET_KEYS, shared_metadata
from ragistry.utils.wording import one_line

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

INFO = ("source", "source_hash", "ingested_at", "source_path", "lost", SET_KEYS)
LOST = """ AND strpos(info, '"lost":') > 0"""
_CHUNKS = "COPY chunks (key, id, source, collection, source_file, hash, metadata, facets, text) FROM STDIN"


# Writing


def put_source(write: Transaction, name: Name, chunks: CheckedChunks) -> None:
    """Replace the source by these chunks."""
    _lock_sources(write, [name])
    found, places = _source_row(write.connection, name), {one.get("source_path", "") for one in chunks.metadatas[:1]}
    if found is not None:
        _drop(write, Sql("source = %s", (found[0],)))
        write.connection.execute("DELETE FROM sources WHERE id = %s", (found[0],))
        places.add(found[1])
    unsearchable.drop(EscapedRows(write.connection), name, places)
    if chunks.ids:
        _insert(write, chunks, _insert_source(write.connection, name, chunks, whole=True))


def add_chunks(write: Transaction, chunks: CheckedChunks) -> None:
    """Write chunks; each replaces the stored chunk of its id. Sources changed by them count as incomplete."""
    places: dict[Name | None, list[int]] = {}
    for row, metadata in enumerate(chunks.metadatas):
        places.setdefault(source_in(metadata), []).append(row)
    _lock_sources(write, places)
    remove(write, keys_of(write.connection, chunks.ids).values())
    for name, rows in places.items():
        part = chunks.picked(rows)
        found = None if name is None else _source_row(write.connection, name)
        source = found and found[0]
        if name is not None and source is None:
            source = _insert_source(write.connection, name, part, whole=False)
        _insert(write, part, source)
        _recount(write.connection, [] if source is None else [source])


def remove(write: Transaction, keys: Iterable[int]) -> int:
    """Remove the chunks of these keys and return their number; their sources then count as incomplete."""
    wanted = [int(key) for key in keys]
    if not wanted:
        return 0
    rows = write.connection.execute(
        "SELECT id FROM sources WHERE id IN (SELECT source FROM chunks WHERE key = ANY(%s::bigint[])) "
        "ORDER BY id FOR UPDATE",
        (wanted,),
    ).fetchall()
    removed = _drop(write, Sql("key = ANY(%s::bigint[])", (wanted,)))
    _recount(write.connection, [id for (id,) in rows])
    return removed


def move(write: Transaction, name: Name, to: str) -> int:
    """Move a source to another collection and return its number of chunks. Keys and indexes stay valid."""
    connection = write.connection
    _lock_sources(write, [name, (to, name[1])])
    found = _source_row(connection, name)
    if found is None:
        return 0
    source, place = found
    rows = connection.execute("SELECT key, id, metadata FROM chunks WHERE source = %s", (source,)).fetchall()
    if to == name[0]:
        return len(rows)
    if _source_row(connection, (to, name[1])) is not None:
        raise taken_source_error(name, to)
    ids = [moved_id(id, json.loads(metadata), name, to) for _, id, metadata in rows]
    with _unique_ids():
        connection.execute(
            "UPDATE chunks SET collection = %s, id = moved.id "
            "FROM unnest(%s::bigint[], %s::text[]) AS moved (key, id) WHERE chunks.key = moved.key",
            (escaped(to), [row[0] for row in rows], ids),
        )
    connection.execute("UPDATE sources SET collection = %s WHERE id = %s", (escaped(to), source))
    unsearchable.move_file(EscapedRows(connection), name, place, to)
    return len(rows)


def move_collection(write: Transaction, collection: str, to: str) -> int:
    """Move every source of a collection to another one and return the number of chunks."""
    names = [(collection, info.source_file) for info in list_sources(write.connection, collection)]
    moved = sum(move(write, name, to) for name in names)
    unsearchable.move_all(EscapedRows(write.connection), collection, to)
    return moved


def put_vectors(connection: Connection, table: str, keys: Sequence[int], vectors: Vectors) -> None:
    """Write the vectors ``(n, d)`` of these chunks."""
    count, dimension = vectors.shape
    fields = [
        ("fields", ">i2"), ("key_bytes", ">i4"), ("key", ">i8"), ("vector_bytes", ">i4"), ("dimension", ">i2"),
        ("unused", ">i2"), ("vector", ">f4", (dimension,)),
    ]  # fmt: skip
    rows = np.zeros(count, dtype=fields)
    rows["fields"], rows["key_bytes"], rows["vector_bytes"] = 2, 8, 4 + 4 * dimension
    rows["key"], rows["dimension"], rows["vector"] = keys, dimension, vectors
    with connection.cursor().copy(f"COPY {table} (key, vector) FROM STDIN (FORMAT binary)") as copy:
        copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8) + rows.tobytes() + b"\xff\xff")


def _lock_sources(write: Transaction, names: Iterable[Name | None]) -> None:
    """Wait for other writers of these sources; None: of chunks without a source."""
    for name in sorted(name or ("", "") for name in names):
        lock(write.connection, "source", *name)


def _insert_source(connection: Connection, name: Name, chunks: CheckedChunks, *, whole: bool) -> int:
    shared = shared_metadata(chunks.metadatas).items()
    info = {key: chunks.metadatas[0][key] for key in INFO if key in chunks.metadatas[0]}
    info |= {key: value for key, value in shared if key not in RESERVED}
    [source] = connection.execute(
        "INSERT INTO sources (collection, source_file, chunks, whole, info) VALUES (%s, %s, %s, %s, %s) RETURNING id",
        (*map(escaped, name), len(chunks.ids), whole, compact_json(info)),
    ).fetchone() or (0,)
    return int(source)


def _insert(write: Transaction, chunks: CheckedChunks, source: int | None) -> None:
    connection = write.connection
    [keys] = connection.execute(
        "SELECT array_agg(nextval('keys')) FROM generate_series(1, %s)", (len(chunks.ids),)
    ).fetchone() or ([],)
    with _unique_ids(), connection.cursor().copy(_CHUNKS) as copy:
        for key, id, text, metadata in zip(keys, chunks.ids, chunks.texts, chunks.metadatas, strict=True):
            names = [metadata.get(name) for name in NAMES]
            columns = [escaped(name) if isinstance(name, str) else None for name in names]
            rest = {key: value for key, value in metadata.items() if key not in NAMES or not isinstance(value, str)}
            copy.write_row(
                (key, escaped(id), source, *columns, text_hash(text), compact_json(rest), facets(rest), escaped(text))
            )
    put_vectors(connection, write.head.vectors, keys, chunks.vectors)
    if not write.head.dimension:
        _record_dimension(connection, chunks.vectors.shape[1])
    write.added += keys


def _record_dimension(connection: Connection, dimension: int) -> None:
    """Record the dimension of the first vectors. Raises `EmbeddingMismatchError` if another one is recorded."""
    [recorded] = connection.execute(
        "UPDATE head SET dimension = CASE dimension WHEN 0 THEN %s ELSE dimension END RETURNING dimension", (dimension,)
    ).fetchone() or (dimension,)
    if recorded != dimension:
        raise EmbeddingMismatchError(
            f"the vectors have {dimension} numbers, those in the store have {recorded}; use the embedder that the "
            "store was filled with, or clear the store and ingest again"
        )


def _recount(connection: Connection, sources: Sequence[int]) -> None:
    """Update the counts of these sources after chunks were added or removed."""
    connection.execute("SELECT FROM sources WHERE id = ANY(%s) ORDER BY id FOR UPDATE", (sources,))
    connection.execute(
        "UPDATE sources SET whole = false, chunks = (SELECT count(*) FROM chunks WHERE source = sources.id) "
        "WHERE id = ANY(%s)",
        (sources,),
    )
    connection.execute("DELETE FROM sources WHERE id = ANY(%s) AND chunks = 0", (sources,))


def _drop(write: Transaction, which: Sql) -> int:
    rows = write.connection.execute(f"DELETE FROM chunks WHERE {which.text} RETURNING key", which.values).fetchall()
    keys = [key for (key,) in rows]
    tables = [write.head.vectors, *([write.head.next_vectors] if write.head.next_embedder else [])]
    for table in tables:
        write.connection.execute(f"DELETE FROM {table} WHERE key = ANY(%s::bigint[])", (keys,))
    write.removed += keys
    return len(keys)


class _unique_ids:  # noqa: N801, reads as a statement
    """A block that raises `DuplicateChunkIDError` if another chunk has one of the ids."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, UniqueViolation):
            raise DuplicateChunkIDError(
                "nothing was changed: a chunk is stored under another source "
                f"({one_line(error.diag.message_detail or '')}); delete it first"
            ) from error


def _source_row(connection: Connection, name: Name) -> tuple[int, str] | None:
    """Return the id and the path of a source."""
    found = connection.execute(
        "SELECT id, info FROM sources WHERE collection = %s AND source_file = %s", tuple(map(escaped, name))
    ).fetchone()
    return None if found is None else (int(found[0]), json.loads(found[1]).get("source_path", ""))


# Reading


def documents(connection: Connection, keys: Sequence[int]) -> dict[int, Document]:
    """Return the stored chunks of these keys, with score 0."""
    rows = connection.execute(
        "SELECT key, id, text, metadata, collection, source_file FROM chunks WHERE key = ANY(%s::bigint[])",
        (list(keys),),
    ).fetchall()
    found = {}
    for key, id, text, metadata, *names in rows:
        named = {name: unescaped(value) for name, value in zip(NAMES, names, strict=True) if value is not None}
        found[key] = Document(unescaped(text), {**json.loads(metadata), **named}, 0.0, unescaped(id))
    return found


def keys_of(connection: Connection, ids: Sequence[Any]) -> dict[str, int]:
    """Return the keys of the stored ids."""
    possible = [escaped(id) for id in ids if not id_problem(id)]
    rows = connection.execute("SELECT id, key FROM chunks WHERE id = ANY(%s::text[])", (possible,)).fetchall()
    return {unescaped(id): key for id, key in rows}


def ids_of(connection: Connection, keys: Sequence[int]) -> dict[int, str]:
    """Return the ids of the stored keys."""
    rows = connection.execute("SELECT key, id FROM chunks WHERE key = ANY(%s::bigint[])", (list(keys),)).fetchall()
    return {key: unescaped(id) for key, id in rows}


def selected_keys(connection: Connection, which: Sql) -> Keys:
    """Return the keys of the chunks that meet a condition, ascending."""
    rows = connection.execute(f"SELECT key FROM chunks WHERE {which.text} ORDER BY key", which.values)
    return np.fromiter(chain.from_iterable(rows), dtype=np.int64)


def vectors_of(connection: Connection, table: str, keys: Sequence[int]) -> tuple[Keys, Vectors]:
    """Return the keys that have a vector, and their vectors ``(n, d)``, in any order."""
    cursor = connection.cursor(binary=True)
    rows = cursor.execute(f"SELECT key, vector FROM {table} WHERE key = ANY(%s::bigint[])", (list(keys),)).fetchall()
    found = np.array([key for key, _ in rows], dtype=np.int64)
    if not rows:
        return found, np.empty((0, 0), dtype=np.float32)
    return found, np.stack([_vector(raw) for _, raw in rows])


def vectors_by_id(connection: Connection, ids: Sequence[str], head: Head, place: str) -> Vectors:
    """Return the vectors ``(n, d)`` of these ids. Raises `StoreError` if one is not stored in ``place``."""
    keys = keys_of(connection, ids)
    check_stored(place, ids, keys)
    found, matrix = vectors_of(connection, head.vectors, list(keys.values()))
    row_of = {key: row for row, key in enumerate(found.tolist())}
    return matrix[[row_of[keys[id]] for id in ids]].reshape(len(ids), head.dimension)


def _vector(raw: bytes) -> Vectors:
    """Parse pgvector's binary form, two numbers of 16 bits and then floats, to ``(d,)``."""
    return np.frombuffer(raw, dtype=">f4", offset=4).astype(np.float32)


def vectors_of_equals(connection: Connection, table: str, chunks: Sequence[Chunk]) -> dict[str, Vectors]:
    """Return the vectors ``(d,)`` of stored chunks equal to one of these, by `searched_text`."""
    wanted = {searched_text(*chunk) for chunk in chunks}
    hashes = list({text_hash(chunk.text) for chunk in chunks})
    cursor = connection.cursor(binary=True)
    cursor.execute(
        f"SELECT text, metadata, vector FROM chunks JOIN {table} USING (key) WHERE hash = ANY(%s::bytea[])", (hashes,)
    )
    found = {searched_text(unescaped(text), json.loads(metadata)): raw for text, metadata, raw in cursor}
    return {text: _vector(raw) for text, raw in found.items() if text in wanted}


def chunks_where(connection: Connection, which: Sql, limit: int | None = None) -> Iterator[tuple[int, Chunk]]:
    """Yield the first chunks by key that meet the condition, without collections, read when needed."""
    with connection.cursor("chunks") as cursor:
        cursor.itersize = 1_000
        cursor.execute(
            f"SELECT key, text, metadata, source_file FROM chunks WHERE {which.text} ORDER BY key LIMIT %s",
            (*which.values, limit),
        )
        for key, text, metadata, name in cursor:
            yield key, Chunk(unescaped(text), {"source_file": unescaped(name or ""), **json.loads(metadata)})


def list_sources(connection: Connection, collection: str | None, *, in_part: bool = False) -> list[SourceInfo]:
    """List the sources, ordered by collection and name; see `source_info`. ``in_part``: only those that lost text."""
    rows = connection.execute(
        "SELECT collection, source_file, chunks, whole, info FROM sources WHERE (%(name)s::text IS NULL "
        f"OR collection = %(name)s){LOST * in_part} ORDER BY collection, source_file",
        {"name": escaped(collection) if collection else None},
    ).fetchall()
    return [
        source_info((unescaped(row[0]), unescaped(row[1])), row[2], json.loads(row[4]), is_whole=row[3]) for row in rows
    ]
