"""Write, move, remove and read the rows of sources and chunks, inside a transaction of the caller.

A source's row contains the metadata that all its chunks share. So a move or a rename changes one row, and a condition
on them is decided once per source. Collection and source file are stored in columns only.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ragistry.chunking.breadcrumb import searched_text
from ragistry.chunking.joined import LINE_FEEDS, whole_text
from ragistry.errors import DuplicateChunkIDError, StoreError
from ragistry.stores import unsearchable
from ragistry.stores.chunk_checks import CheckedChunks, id_problem
from ragistry.stores.records import (
    NAMES,
    Name,
    check_stored,
    compact_json,
    moved_id,
    source_in,
    source_info,
    taken_source_error,
    text_hash,
)
from ragistry.types import Chunk, Document, Place, SourceInfo
from ragistry.utils.metadata import shared_metadata
from ragistry.utils.wording import shown

if TYPE_CHECKING:
    from ragistry.protocols import Vectors
    from ragistry.stores.local.database import Head
    from ragistry.stores.records import Keys

PAGE = 1_000
_WITH_SOURCE = "chunks LEFT JOIN sources ON sources.id = chunks.source"
_CHUNK = (
    "SELECT chunks.key, chunks.id, text, hash, chunks.metadata, coalesce(sources.metadata, '{}'), collection, "
    f"source_file FROM {_WITH_SOURCE}"
)
_PLACES = ", ".join(
    f"coalesce(json_extract(chunks.metadata, '$.{key}'), json_extract(sources.metadata, '$.{key}'))"
    for key in ("start", "end", LINE_FEEDS)
)
_TEXTS = (
    f"SELECT collection, source_file, {_PLACES}, text FROM json_each(?) CROSS JOIN sources "
    "ON collection = json_extract(value, '$[0]') AND source_file = json_extract(value, '$[1]') "
    "CROSS JOIN chunks ON chunks.source = sources.id"
)
_IN_PART = """(instr(metadata, '"lost":') OR id IN (SELECT source FROM waiting JOIN chunks USING (key)))"""
_UNKNOWN = (-1, -1, "", -1)
_CONTENT = "text, chunks.metadata, coalesce(sources.metadata, '{}')"


# Writing


def count(connection: sqlite3.Connection) -> int:
    """Count all chunks."""
    return int(connection.execute("SELECT count(*) FROM chunks").fetchone()[0])


def put_source(connection: sqlite3.Connection, name: Name, chunks: CheckedChunks, first_key: int) -> None:
    """Replace the source by these chunks; their keys start at ``first_key``."""
    found, places = _source_row(connection, name), {one.get("source_path", "") for one in chunks.metadatas[:1]}
    if found:
        keys = connection.execute("SELECT key FROM chunks WHERE source = ?", found[:1]).fetchall()
        _drop(connection, keys)
        connection.execute("DELETE FROM sources WHERE id = ?", found[:1])
        places.add(json.loads(found[1]).get("source_path", ""))
    unsearchable.drop(connection, name, places)
    if chunks.ids:
        _insert_source(connection, name, chunks, first_key, whole=True)


def size_of(connection: sqlite3.Connection, name: Name) -> int:
    """Return the number of chunks of a source; 0 if it is not stored."""
    source = _source_row(connection, name)
    return connection.execute("SELECT chunks FROM sources WHERE id = ?", source[:1]).fetchone()[0] if source else 0


def add_chunks(connection: sqlite3.Connection, chunks: CheckedChunks, first_key: int) -> None:
    """Write chunks; each replaces the stored chunk of its id. Sources changed by them count as incomplete."""
    remove(connection, keys_of(connection, chunks.ids).values())
    places: dict[Name | None, list[int]] = {}
    for row, metadata in enumerate(chunks.metadatas):
        places.setdefault(source_in(metadata), []).append(row)
    for name, rows in places.items():
        part = chunks.picked(rows)
        if name is None:
            _insert_chunks(connection, None, part, part.metadatas, first_key)
        elif source := _source_row(connection, name):
            _extend_source(connection, source, part, first_key)
        else:
            _insert_source(connection, name, part, first_key, whole=False)
        first_key += len(rows)


def remove(connection: sqlite3.Connection, keys: Iterable[int]) -> int:
    """Remove the chunks of these keys and return their number; their sources then count as incomplete."""
    rows = [(int(key),) for key in keys]
    if not rows:
        return 0
    chosen = json.dumps([key for (key,) in rows])
    sources = connection.execute(
        "SELECT DISTINCT source FROM chunks WHERE key IN (SELECT value FROM json_each(?)) AND source IS NOT NULL",
        (chosen,),
    ).fetchall()
    _drop(connection, rows)
    connection.executemany(
        "UPDATE sources SET whole = 0, chunks = (SELECT count(*) FROM chunks WHERE source = sources.id) WHERE id = ?",
        sources,
    )
    connection.executemany("DELETE FROM sources WHERE id = ? AND chunks = 0", sources)
    return len(rows)


def clear(connection: sqlite3.Connection) -> None:
    """Remove everything, the embedder too."""
    for table in (
        "sources",
        "chunks",
        "vectors",
        "next_vectors",
        "waiting",
        "removed",
        "indexes",
        "unsearchable",
        "folders",
    ):
        connection.execute(f"DELETE FROM {table}")
    connection.execute(
        "UPDATE head SET generation = generation + 1, dimension = 0, embedder = NULL, next_embedder = NULL, fit = NULL"
    )


def move(connection: sqlite3.Connection, name: Name, to: str) -> int:
    """Move a source to another collection and return its number of chunks. Keys and indexes stay valid."""
    source = _source_row(connection, name)
    if source is None:
        return 0
    rows = connection.execute("SELECT key, id, metadata FROM chunks WHERE source = ?", (source[0],)).fetchall()
    if to == name[0]:
        return len(rows)
    if _source_row(connection, (to, name[1])):
        raise taken_source_error(name, to)
    common = json.loads(source[1])
    ids = [(id, moved_id(id, {**common, **json.loads(metadata)}, name, to), key) for key, id, metadata in rows]
    changed = [(new, key) for old, new, key in ids if new != old]
    with _unique_ids(connection, [id for id, _ in changed]):
        connection.executemany("UPDATE chunks SET id = ? WHERE key = ?", changed)
    connection.execute("UPDATE sources SET collection = ? WHERE id = ?", (to, source[0]))
    unsearchable.move_file(connection, name, common.get("source_path", ""), to)
    return len(rows)


def move_collection(connection: sqlite3.Connection, collection: str, to: str) -> int:
    """Move every source of a collection to another one and return the number of chunks."""
    names = [(collection, info.source_file) for info in list_sources(connection, collection)]
    moved = sum(move(connection, name, to) for name in names)
    unsearchable.move_all(connection, collection, to)
    return moved


def put_vectors(connection: sqlite3.Connection, table: str, keys: Iterable[int], vectors: Vectors) -> None:
    """Write the vectors ``(n, d)`` of these chunks."""
    blobs = (row.tobytes() for row in np.ascontiguousarray(vectors, dtype=np.float32))
    connection.executemany(
        f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)",
        ((key, blob, zlib.crc32(blob)) for key, blob in zip(keys, blobs, strict=True)),
    )


def _insert_source(
    connection: sqlite3.Connection, name: Name, chunks: CheckedChunks, first_key: int, *, whole: bool
) -> None:
    common, own = _factored([_nameless(metadata) for metadata in chunks.metadatas])
    varying = sorted({key for metadata in own for key in metadata})
    row = (*name, len(chunks.ids), int(whole), compact_json(common), compact_json(varying))
    source = connection.execute(
        "INSERT INTO sources (collection, source_file, chunks, whole, metadata, varying) VALUES (?,?,?,?,?,?)", row
    ).lastrowid
    _insert_chunks(connection, source, chunks, own, first_key)


def _extend_source(
    connection: sqlite3.Connection, source: tuple[int, str, str], chunks: CheckedChunks, first_key: int
) -> None:
    id, written, varying = source
    common = json.loads(written)
    metadatas = [_nameless(metadata) for metadata in chunks.metadatas]
    if len(shared_metadata([common, *metadatas])) < len(common):
        # Its chunks no longer share the metadata of its row: copy them to each chunk.
        rows = connection.execute("SELECT metadata, key FROM chunks WHERE source = ?", (id,)).fetchall()
        connection.executemany(
            "UPDATE chunks SET metadata = ? WHERE key = ?",
            [(compact_json({**common, **json.loads(own)}), key) for own, key in rows],
        )
        varying, common = compact_json(sorted({*json.loads(varying), *common})), {}
    own = [{key: value for key, value in metadata.items() if key not in common} for metadata in metadatas]
    keys = sorted({*json.loads(varying), *(key for metadata in own for key in metadata)})
    _insert_chunks(connection, id, chunks, own, first_key)
    connection.execute(
        "UPDATE sources SET whole = 0, metadata = ?, varying = ?, "
        "chunks = (SELECT count(*) FROM chunks WHERE source = sources.id) WHERE id = ?",
        (compact_json(common), compact_json(keys), id),
    )


def _insert_chunks(
    connection: sqlite3.Connection, source: int | None, chunks: CheckedChunks, own: Sequence[Any], first_key: int
) -> None:
    keys = range(first_key, first_key + len(chunks.ids))
    rows = [
        (key, id, source, text_hash(text), compact_json(metadata), text)
        for key, id, text, metadata in zip(keys, chunks.ids, chunks.texts, own, strict=True)
    ]
    with _unique_ids(connection, chunks.ids):
        connection.executemany("INSERT INTO chunks VALUES (?,?,?,?,?,?)", rows)
    has_vector: NDArray[np.bool_] = np.any(chunks.vectors, axis=1)
    put_vectors(connection, "vectors", compress(keys, has_vector), chunks.vectors[has_vector])
    connection.executemany("INSERT INTO waiting VALUES (?, 0)", ((key,) for key in compress(keys, ~has_vector)))


def waiting(connection: sqlite3.Connection, after: int, limit: int) -> list[tuple[int, Document]]:
    """Return the first chunks above this key that wait for their vectors."""
    found = connection.execute("SELECT key FROM waiting WHERE key > ? ORDER BY key LIMIT ?", (after, limit))
    return sorted(documents(connection, [key for (key,) in found]).items())


def keys_in(connection: sqlite3.Connection, table: str, keys: Sequence[int]) -> set[int]:
    """Return those of these keys of chunks that a table has."""
    chosen = json.dumps(keys)
    found = connection.execute(f"SELECT key FROM {table} WHERE key IN (SELECT value FROM json_each(?))", (chosen,))
    return {key for (key,) in found}


def count_waiting(connection: sqlite3.Connection, keys: Keys | None) -> int:
    """Count the chunks, among ascending keys or all, that wait for their vectors."""
    if keys is None or not len(keys):
        return int(connection.execute("SELECT count(*) FROM waiting").fetchone()[0]) if keys is None else 0
    ends = (int(keys[0]), int(keys[-1]))
    found = connection.execute("SELECT key FROM waiting WHERE key BETWEEN ? AND ?", ends)
    return int(np.isin(np.fromiter((key for (key,) in found), np.int64), keys).sum())


def _drop(connection: sqlite3.Connection, keys: Sequence[tuple[int]]) -> None:
    connection.executemany("INSERT INTO removed (key) VALUES (?)", keys)
    for table in ("chunks", "vectors", "next_vectors", "waiting"):
        connection.executemany(f"DELETE FROM {table} WHERE key = ?", keys)


class _unique_ids:  # noqa: N801, reads as a statement
    """A block that raises `DuplicateChunkIDError` if another chunk has one of the ids."""

    def __init__(self, connection: sqlite3.Connection, ids: Sequence[str]) -> None:
        self.connection, self.ids = connection, ids

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, sqlite3.IntegrityError):
            existing = next(iter(keys_of(self.connection, self.ids)), "")
            raise DuplicateChunkIDError(
                f"nothing was changed: chunk {existing!r} is stored under another source; delete it first"
            ) from error


def _source_row(connection: sqlite3.Connection, name: Name) -> tuple[int, str, str] | None:
    found: tuple[int, str, str] | None = connection.execute(
        "SELECT id, metadata, varying FROM sources WHERE collection = ? AND source_file = ?", name
    ).fetchone()
    return found


def _nameless(metadata: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if key not in NAMES}


def _factored(metadatas: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Split metadata into the part that all share, and the rest of each."""
    common = shared_metadata(metadatas)
    return common, [{key: value for key, value in metadata.items() if key not in common} for metadata in metadatas]


# Reading


def documents(connection: sqlite3.Connection, keys: Sequence[int]) -> dict[int, Document]:
    """Return the stored chunks of these keys, with score 0."""
    found: dict[int, Document] = {}
    for start in range(0, len(keys), PAGE):
        page = keys[start : start + PAGE]
        rows = connection.execute(f"{_CHUNK} WHERE chunks.key IN ({','.join('?' * len(page))})", page).fetchall()
        # Parsing them together takes half the time.
        parts = iter(json.loads(f"[{','.join([f'{row[5]},{row[4]}' for row in rows])}]"))
        for key, id, text, hash, _, _, collection, source_file in rows:
            if text_hash(text) != hash:
                raise sqlite3.DatabaseError(f"the text of chunk {id!r} is not what was written")
            metadata = {**next(parts), **next(parts)}
            if collection is not None:
                metadata["collection"], metadata["source_file"] = collection, source_file
            found[key] = Document(text, metadata, 0.0, id)
    return found


def texts_of(connection: sqlite3.Connection, names: Sequence[Name]) -> dict[Name, str]:
    """Return the whole texts of the sources whose chunks all have an offset."""
    chunks: dict[Name, list[tuple[int, int, str, int]]] = {}
    rows = connection.execute(_TEXTS, (json.dumps(names),))
    for collection, source_file, start, end, feeds, text in rows:
        known = type(start) is type(feeds) is int and end == start + len(text)
        chunks.setdefault((collection, source_file), []).append((start, end, text, feeds) if known else _UNKNOWN)
    return {
        name: whole_text((text, start, feeds) for start, _, text, feeds in sorted(found))
        for name, found in chunks.items()
        if _UNKNOWN not in found
    }


def places(connection: sqlite3.Connection, keys: Sequence[int]) -> dict[int, Place]:
    """Return ids and sources of the stored chunks of these keys."""
    rows = connection.execute(
        "SELECT chunks.key, chunks.id, collection, source_file, "
        "coalesce(json_extract(chunks.metadata, '$.chunk_index'), json_extract(sources.metadata, '$.chunk_index')) "
        f"FROM {_WITH_SOURCE} "
        "WHERE chunks.key IN (SELECT value FROM json_each(?))",
        (json.dumps(keys),),
    )
    return {key: Place(*place) for key, *place in rows}


def keys_of(connection: sqlite3.Connection, ids: Sequence[Any]) -> dict[str, int]:
    """Return the keys of the stored ids."""
    possible = [id for id in ids if not id_problem(id)]
    found: dict[str, int] = {}
    for start in range(0, len(possible), PAGE):
        page = possible[start : start + PAGE]
        found.update(connection.execute(f"SELECT id, key FROM chunks WHERE id IN ({_marks(page)})", page))
    return found


def ids_of(connection: sqlite3.Connection, keys: Sequence[int]) -> dict[int, str]:
    """Return the ids of the stored keys."""
    chosen = json.dumps(keys)
    return dict(
        connection.execute("SELECT key, id FROM chunks WHERE key IN (SELECT value FROM json_each(?))", (chosen,))
    )


def vectors_of(connection: sqlite3.Connection, keys: Sequence[int]) -> Iterator[tuple[int, Vectors]]:
    """Yield the keys that have a vector, with their vectors ``(d,)``."""
    chosen = json.dumps(keys)
    return checked_vectors(
        connection.execute("SELECT * FROM vectors WHERE key IN (SELECT value FROM json_each(?))", (chosen,))
    )


def vectors_by_id(connection: sqlite3.Connection, ids: Sequence[str], head: Head, place: str) -> Vectors:
    """Return the vectors of chunks, ``(n, d)``, and zeros for those that wait for theirs.

    Raises `StoreError` if a chunk is not stored, or lost its vector.
    """
    keys = keys_of(connection, ids)
    check_stored(place, ids, keys)
    found = dict(vectors_of(connection, list(keys.values())))
    if head.waiting:
        waiting = keys_in(connection, "waiting", list(keys.values()))
        found |= dict.fromkeys(waiting, np.zeros(head.dimension, dtype=np.float32))
    if lost := [id for id in ids if keys[id] not in found]:
        raise StoreError(
            f"{place}: {len(lost)} chunks lost their vectors in a damaged file: {shown(lost[:3])}; "
            "run `ragistry reembed`"
        )
    return np.array([found[keys[id]] for id in ids], dtype=np.float32).reshape(len(ids), head.dimension)


def vectors_from(connection: sqlite3.Connection, first: int, end: int) -> Iterator[tuple[int, Vectors]]:
    """Yield the keys from ``first`` to before ``end`` that have a vector, ascending, with their vectors ``(d,)``."""
    query = "SELECT * FROM vectors WHERE key >= ? AND key < ? ORDER BY key"
    return checked_vectors(connection.execute(query, (first, end)))


def checked_vectors(rows: Iterable[tuple[int, bytes, int]]) -> Iterator[tuple[int, Vectors]]:
    """Yield keys and vectors ``(d,)`` of table rows. Raises `sqlite3.DatabaseError` for a damaged one."""
    for key, blob, crc in rows:
        if zlib.crc32(blob) != crc:
            raise sqlite3.DatabaseError(f"the vector of chunk number {key} is not what was written")
        yield key, np.frombuffer(blob, dtype=np.float32)


def vectors_of_equals(connection: sqlite3.Connection, chunks: Sequence[Chunk]) -> dict[str, Vectors]:
    """Return the vectors ``(d,)`` of stored chunks equal to one of these, by `searched_text`."""
    wanted = {searched_text(*chunk) for chunk in chunks}
    hashes = list({text_hash(chunk.text) for chunk in chunks})
    found: dict[str, Vectors] = {}
    for start in range(0, len(hashes), PAGE):
        page = hashes[start : start + PAGE]
        rows = connection.execute(
            f"SELECT {_CONTENT}, vectors.key, vector, crc FROM {_WITH_SOURCE} JOIN vectors USING (key) "
            f"WHERE hash IN ({_marks(page)})",
            page,
        ).fetchall()
        vectors = checked_vectors(row[3:] for row in rows)
        for row, (_, vector) in zip(rows, vectors, strict=True):
            if (searched := searched_text(*_chunk(*row[:3]))) in wanted:
                found[searched] = vector
    return found


def chunks_where(
    connection: sqlite3.Connection, condition: str, *values: Any, limit: int = -1
) -> Iterator[tuple[int, Chunk]]:
    """Return the first chunks by key that meet the SQL condition, without collections; ``limit`` -1: all."""
    rows = connection.execute(
        f"SELECT chunks.key, source_file, {_CONTENT} FROM {_WITH_SOURCE} WHERE {condition} ORDER BY chunks.key LIMIT ?",
        (*values, limit),
    )
    return ((key, _chunk(*content, names={"source_file": name})) for key, name, *content in rows)


def _chunk(text: str, own: str, shared: str, *, names: Mapping[str, Any] = MappingProxyType({})) -> Chunk:
    first, second = json.loads(f"[{shared},{own}]")
    return Chunk(text, {**names, **first, **second})


def list_sources(connection: sqlite3.Connection, collection: str | None, *, in_part: bool = False) -> list[SourceInfo]:
    """List the sources, ordered by collection and name; see `source_info`.

    ``in_part``: only those that lost text, or whose chunks wait for vectors.
    """
    found = connection.execute(
        f"SELECT collection, source_file, chunks, whole, metadata, id FROM sources WHERE {_IN_PART if in_part else 1} "
        f"{'AND collection = ?' if collection else ''} ORDER BY collection, source_file",
        (collection,) if collection else (),
    ).fetchall()
    metadatas = json.loads(f"[{','.join([row[4] for row in found])}]")
    waits = dict(
        connection.execute("SELECT source, count(*) FROM waiting JOIN chunks USING (key) GROUP BY source").fetchall()
    )
    return [
        source_info((row[0], row[1]), row[2], metadata, is_whole=bool(row[3]), waiting=waits.get(row[5], 0))
        for row, metadata in zip(found, metadatas, strict=True)
    ]


def _marks(values: Sequence[Any]) -> str:
    return ",".join("?" * len(values))
