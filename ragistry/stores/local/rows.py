"""Sources and chunks as rows: written, moved, removed and read, each inside a transaction of the caller.

A source's row holds the metadata that all its chunks share, so that a move or a rename changes one row, and a
condition on them is decided once a source. Collection and source file stand in columns only.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ragistry.errors import DuplicateChunkIDError
from ragistry.types import Chunk, Document, SourceInfo
from ragistry.utils.breadcrumb import searched_text
from ragistry.utils.chunk_checks import CheckedChunks, id_problem
from ragistry.utils.ids import chunk_id
from ragistry.utils.wording import shown

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

Keys = NDArray[np.int64]
Name = tuple[str, str]
NAMES = ("collection", "source_file")
PAGE = 1_000
_WITH_SOURCE = "chunks LEFT JOIN sources ON sources.id = chunks.source"
_CHUNK = (
    "SELECT chunks.key, chunks.id, text, hash, chunks.metadata, coalesce(sources.metadata, '{}'), collection, "
    f"source_file FROM {_WITH_SOURCE}"
)
_CONTENT = "text, chunks.metadata, coalesce(sources.metadata, '{}')"


# Writing


def put_source(connection: sqlite3.Connection, name: Name, chunks: CheckedChunks, first_key: int) -> None:
    """Replace all that is stored of the source by these chunks, with keys from ``first_key`` on."""
    found = connection.execute("SELECT id FROM sources WHERE collection = ? AND source_file = ?", name).fetchone()
    if found:
        keys = connection.execute("SELECT key FROM chunks WHERE source = ?", found).fetchall()
        _drop(connection, keys)
        connection.execute("DELETE FROM sources WHERE id = ?", found)
    if chunks.ids:
        _insert_source(connection, name, chunks, first_key, whole=True)


def size_of(connection: sqlite3.Connection, name: Name) -> int:
    """The number of chunks of a source; 0 without it."""
    source = _source_row(connection, name)
    return connection.execute("SELECT chunks FROM sources WHERE id = ?", source[:1]).fetchone()[0] if source else 0


def add_chunks(connection: sqlite3.Connection, chunks: CheckedChunks, first_key: int) -> None:
    """Write chunks, each in place of the one that has its id. A source that they change counts as incomplete."""
    remove(connection, keys_of(connection, chunks.ids).values())
    places: dict[Name | None, list[int]] = {}
    for row, metadata in enumerate(chunks.metadatas):
        places.setdefault(_name_in(metadata), []).append(row)
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
    """Remove the chunks of these keys and return how many; their sources count as incomplete from now on."""
    listed = [(int(key),) for key in keys]
    if not listed:
        return 0
    chosen = json.dumps([key for (key,) in listed])
    sources = connection.execute(
        "SELECT DISTINCT source FROM chunks WHERE key IN (SELECT value FROM json_each(?)) AND source IS NOT NULL",
        (chosen,),
    ).fetchall()
    _drop(connection, listed)
    connection.executemany(
        "UPDATE sources SET whole = 0, chunks = (SELECT count(*) FROM chunks WHERE source = sources.id) WHERE id = ?",
        sources,
    )
    connection.executemany("DELETE FROM sources WHERE id = ? AND chunks = 0", sources)
    return len(listed)


def move(connection: sqlite3.Connection, name: Name, to: str) -> int:
    """Give a source to another collection and return its number of chunks. Keys, and so the indexes, stay."""
    source = _source_row(connection, name)
    if source is None:
        return 0
    rows = connection.execute("SELECT key, id, metadata FROM chunks WHERE source = ?", (source[0],)).fetchall()
    if to == name[0]:
        return len(rows)
    if _source_row(connection, (to, name[1])):
        raise DuplicateChunkIDError(
            f"collection {shown(to)} already has a source {shown(name[1])}; delete that one first, or rename the file"
        )
    common = json.loads(source[1])
    changed = []
    for key, id, metadata in rows:
        index = {**common, **json.loads(metadata)}.get("chunk_index")
        if isinstance(index, int) and id == chunk_id(*name, index):  # an id that the caller chose stays
            changed.append((chunk_id(to, name[1], index), key))
    with _taken_ids(connection, [id for id, _ in changed]):
        connection.executemany("UPDATE chunks SET id = ? WHERE key = ?", changed)
    connection.execute("UPDATE sources SET collection = ? WHERE id = ?", (to, source[0]))
    return len(rows)


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
    row = (*name, len(chunks.ids), int(whole), _json(common), _json(varying))
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
    if not all(all(key in m and _same(m[key], value) for key, value in common.items()) for m in metadatas):
        # The source no longer has in common what its row says: give it back to each chunk.
        rows = connection.execute("SELECT metadata, key FROM chunks WHERE source = ?", (id,)).fetchall()
        connection.executemany(
            "UPDATE chunks SET metadata = ? WHERE key = ?",
            [(_json({**common, **json.loads(own)}), key) for own, key in rows],
        )
        varying, common = _json(sorted({*json.loads(varying), *common})), {}
    own = [{key: value for key, value in metadata.items() if key not in common} for metadata in metadatas]
    keys = sorted({*json.loads(varying), *(key for metadata in own for key in metadata)})
    _insert_chunks(connection, id, chunks, own, first_key)
    connection.execute(
        "UPDATE sources SET whole = 0, metadata = ?, varying = ?, "
        "chunks = (SELECT count(*) FROM chunks WHERE source = sources.id) WHERE id = ?",
        (_json(common), _json(keys), id),
    )


def _insert_chunks(
    connection: sqlite3.Connection, source: int | None, chunks: CheckedChunks, own: Sequence[Any], first_key: int
) -> None:
    keys = range(first_key, first_key + len(chunks.ids))
    rows = [
        (key, id, source, text_hash(text), _json(metadata), text)
        for key, id, text, metadata in zip(keys, chunks.ids, chunks.texts, own, strict=True)
    ]
    with _taken_ids(connection, chunks.ids):
        connection.executemany("INSERT INTO chunks VALUES (?,?,?,?,?,?)", rows)
    put_vectors(connection, "vectors", keys, chunks.vectors)


def _drop(connection: sqlite3.Connection, keys: Sequence[tuple[int]]) -> None:
    connection.executemany("INSERT INTO removed (key) VALUES (?)", keys)
    for table in ("chunks", "vectors", "next_vectors"):
        connection.executemany(f"DELETE FROM {table} WHERE key = ?", keys)


class _taken_ids:  # noqa: N801, reads as a statement
    """A block in which an id that another chunk has raises `DuplicateChunkIDError`."""

    def __init__(self, connection: sqlite3.Connection, ids: Sequence[str]) -> None:
        self.connection, self.ids = connection, ids

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, sqlite3.IntegrityError):
            taken = next(iter(keys_of(self.connection, self.ids)), "")
            raise DuplicateChunkIDError(
                f"nothing was changed: chunk {taken!r} is stored under another source; delete it first"
            ) from error


def _source_row(connection: sqlite3.Connection, name: Name) -> tuple[int, str, str] | None:
    found: tuple[int, str, str] | None = connection.execute(
        "SELECT id, metadata, varying FROM sources WHERE collection = ? AND source_file = ?", name
    ).fetchone()
    return found


def _name_in(metadata: dict[str, Any]) -> Name | None:
    """The source that a chunk says it belongs to."""
    collection, source_file, index = (metadata.get(key) for key in (*NAMES, "chunk_index"))
    if isinstance(collection, str) and isinstance(source_file, str) and type(index) is int:
        return collection, source_file
    return None


def _nameless(metadata: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if key not in NAMES}


def _factored(metadatas: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What all have in common, and the rest of each."""
    common = dict(metadatas[0])
    for metadata in metadatas[1:]:
        for key in [key for key, value in common.items() if key not in metadata or not _same(value, metadata[key])]:
            del common[key]
    return common, [{key: value for key, value in metadata.items() if key not in common} for metadata in metadatas]


def _same(one: Any, other: Any) -> bool:
    """Equal and of one type: 1 is neither True nor 1.0, and 0.0 is not -0.0."""
    if type(one) is not type(other) or one != other:
        return False
    return not isinstance(one, list | float) or repr(one) == repr(other)


def text_hash(text: str) -> bytes:
    """Of the text, to find equal texts and damaged ones."""
    return blake2b(text.encode(), digest_size=16).digest()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# Reading


def documents(connection: sqlite3.Connection, keys: Sequence[int]) -> dict[int, Document]:
    """The chunks of these keys that are stored, with score 0."""
    found: dict[int, Document] = {}
    for start in range(0, len(keys), PAGE):
        page = keys[start : start + PAGE]
        marks = ",".join("?" * len(page))
        rows = connection.execute(f"{_CHUNK} WHERE chunks.key IN ({marks})", page).fetchall()
        # Parsed all at once, which takes half the time.
        parts = iter(json.loads(f"[{','.join([f'{row[5]},{row[4]}' for row in rows])}]"))
        for key, id, text, hash, _, _, collection, source_file in rows:
            if text_hash(text) != hash:
                raise sqlite3.DatabaseError(f"the text of chunk {id!r} is not what was written")
            metadata = {**next(parts), **next(parts)}
            if collection is not None:
                metadata["collection"], metadata["source_file"] = collection, source_file
            found[key] = Document(text, metadata, 0.0, id)
    return found


def keys_of(connection: sqlite3.Connection, ids: Sequence[Any]) -> dict[str, int]:
    """The key of each id that is stored."""
    possible = [id for id in ids if not id_problem(id)]
    found: dict[str, int] = {}
    for start in range(0, len(possible), PAGE):
        page = possible[start : start + PAGE]
        found.update(connection.execute(f"SELECT id, key FROM chunks WHERE id IN ({_marks(page)})", page))
    return found


def ids_of(connection: sqlite3.Connection, keys: Sequence[int]) -> dict[int, str]:
    """The id of each key that is stored."""
    chosen = json.dumps(keys)
    return dict(
        connection.execute("SELECT key, id FROM chunks WHERE key IN (SELECT value FROM json_each(?))", (chosen,))
    )


def vectors_of(connection: sqlite3.Connection, keys: Sequence[int]) -> Iterator[tuple[int, Vectors]]:
    """Each of these keys that has a vector, with the vector ``(d,)``."""
    chosen = json.dumps(keys)
    return checked_vectors(
        connection.execute("SELECT * FROM vectors WHERE key IN (SELECT value FROM json_each(?))", (chosen,))
    )


def vectors_from(connection: sqlite3.Connection, first: int) -> Iterator[tuple[int, Vectors]]:
    """The keys from ``first`` on that have a vector, ascending, with their vectors ``(d,)``."""
    return checked_vectors(connection.execute("SELECT * FROM vectors WHERE key >= ? ORDER BY key", (first,)))


def checked_vectors(rows: Iterable[tuple[int, bytes, int]]) -> Iterator[tuple[int, Vectors]]:
    """Keys and vectors ``(d,)`` of rows of a table of vectors. Raises `sqlite3.DatabaseError` for a damaged one."""
    for key, blob, crc in rows:
        if zlib.crc32(blob) != crc:
            raise sqlite3.DatabaseError(f"the vector of chunk number {key} is not what was written")
        yield key, np.frombuffer(blob, dtype=np.float32)


def vectors_of_equals(connection: sqlite3.Connection, chunks: Sequence[Chunk]) -> dict[str, Vectors]:
    """By `searched_text`, the vector ``(d,)`` of each of these chunks whose equal some source has."""
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
    """The first chunks by key that meet the SQL condition, without their names; ``limit`` -1: all."""
    rows = connection.execute(
        f"SELECT chunks.key, {_CONTENT} FROM {_WITH_SOURCE} WHERE {condition} ORDER BY chunks.key LIMIT ?",
        (*values, limit),
    )
    return ((row[0], _chunk(*row[1:])) for row in rows)


def _chunk(text: str, own: str, shared: str) -> Chunk:
    return Chunk(text, {**json.loads(shared), **json.loads(own)})


def listed_sources(connection: sqlite3.Connection, collection: str | None) -> list[SourceInfo]:
    """Every source by collection and name; one that is incomplete has no hash, so that it is ingested again."""
    found = connection.execute(
        "SELECT collection, source_file, chunks, whole, metadata FROM sources "
        f"{'WHERE collection = ?' if collection else ''} ORDER BY collection, source_file",
        (collection,) if collection else (),
    ).fetchall()
    metadatas = json.loads(f"[{','.join([row[4] for row in found])}]")
    return [
        SourceInfo(
            row[0],
            row[1],
            row[2],
            metadata.get("source", ""),
            metadata.get("source_hash", "") if row[3] else "",
            metadata.get("ingested_at", 0.0),
            metadata.get("source_path", ""),
            metadata.get("lost", ""),
        )
        for row, metadata in zip(found, metadatas, strict=True)
    ]


def _marks(values: Sequence[Any]) -> str:
    return ",".join("?" * len(values))
