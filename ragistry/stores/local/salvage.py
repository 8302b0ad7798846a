"""Verify ``store.db``, and copy every readable row of a damaged file to a new one.

SQLite detects most damaged pages when it reads them; checksums detect the rest in texts and vectors. Rows are read by
ranges of keys; a range that fails is halved, so that only the rows on a destroyed page are lost. A source is stored in
its table and in an index, and can be read from either.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import time_ns
from typing import Any

from ragistry.errors import StoreError
from ragistry.stores.chunk_checks import id_problem
from ragistry.stores.local.database import (
    ERRORS,
    FILE,
    WRITABLE,
    Head,
    create,
    open_alone,
    read_head,
    reading_mode,
    remove,
    translated,
)
from ragistry.stores.local.index import DerivedIndex
from ragistry.stores.local.migrations import check_format
from ragistry.stores.local.room import Room
from ragistry.stores.records import text_hash
from ragistry.types import Repair
from ragistry.utils.disk import remedy
from ragistry.utils.wording import one_line, shown

KEPT = f"{FILE}.damaged-"
AT_ONCE = 2_000
PROBES = 16
SOURCES = "SELECT id, collection, source_file, chunks, whole, metadata, varying FROM sources"
MOST_FAULTS = 20
REMEDY = (
    "these chunks are still found by their words; run `ragistry repair`, then ingest again or run `ragistry reembed`"
)


def faults(path: Path) -> Iterator[str]:
    """Read the whole file and yield its faults, one line each."""
    try:
        with closing(_to_read(path)) as connection:
            check_format(connection, path)
            for (line,) in connection.execute(f"PRAGMA integrity_check({MOST_FAULTS})"):
                if line != "ok":
                    yield f"{FILE}: {one_line(line)}"
    except ERRORS as error:
        yield f"{FILE}: {one_line(str(error))}"
    with suppress(*ERRORS), closing(_to_read(path)) as connection:
        connection.execute("BEGIN")  # one snapshot: a source replaced meanwhile has not lost chunks
        found = _Found.read(connection)
        for line in found.losses(Counter(found.source_of.values())):
            yield f"{FILE}: {line}"


def salvage(path: Path) -> Repair:
    """Replace a damaged file by a new one with every readable row; the old one is kept next to it.

    The caller must hold the write lock and have no open connection. Raises `StoreError` without disk space.
    """
    new = path.with_name(f"{FILE}.new")
    with translated(new):
        remove(new)
        create(new)
        try:
            with closing(_opened(path)) as old:
                old.execute("SELECT count(*) FROM sqlite_master")
                found = _Found.read(old)
                with closing(sqlite3.connect(new, isolation_level=None)) as target:
                    target.execute("BEGIN")
                    lines, again = found.copy(old, target)
                    lines += _copy_unsearchable(old, target)
                    target.execute("COMMIT")
                    target.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                with suppress(*ERRORS):
                    old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except ERRORS as error:  # not even the list of tables can be read
            lines, again = [f"everything: {one_line(str(error))}"], []
            remove(new)
            create(new)
    kept = _replace(path, new)
    return Repair((f"{FILE}: every readable row is in a new file",), tuple(lines), tuple(again), str(kept))


def _copy_unsearchable(old: sqlite3.Connection, new: sqlite3.Connection) -> list[str]:
    """Copy the files that are not searchable, and the folders; return what is lost."""
    lines = []
    for table in ("unsearchable", "folders"):
        try:
            for row in old.execute(f"SELECT * FROM {table}"):
                new.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(row))})", row)
        except ERRORS as error:
            lines.append(f"a part of the table {table!r}: {one_line(str(error))}; the next ingest writes it again")
    return lines


def rebuilt_indexes(indexes: Iterable[DerivedIndex[Any]], *, is_broken: bool) -> list[str]:
    """Rebuild the indexes that have a problem, or all if the database was broken; return a line for each."""
    lines = []
    for index in indexes:
        if problem := "built from the repaired database" if is_broken else index.problem():
            index.discard()
            index.bring_up()
            lines.append(f"index {index.name!r}: {problem}")
    return lines


def discard_kept(folder: Path) -> list[str]:
    """Remove the damaged files kept by `salvage`, and return their names."""
    files = sorted(folder.glob(f"{KEPT}*"))
    for file in files:
        file.unlink()
    return [file.name for file in files]


@dataclass(slots=True)
class _Found:
    """The readable content of a file, without texts and vectors.

    ``source_of``: the source of each valid chunk; ``lacking``: keys of those without a valid vector; ``lost``: those of
    them that do not wait for it; ``expected``: the source of each chunk in an index, None if that cannot be read.
    """

    head: Head | None
    sources: dict[int, tuple[Any, ...]]
    source_of: dict[int, int | None]
    expected: dict[int, int | None] | None
    lacking: set[int] = field(default_factory=set)
    lost: set[int] = field(default_factory=set)

    @classmethod
    def read(cls, connection: sqlite3.Connection) -> _Found:
        head = None
        with suppress(*ERRORS):
            head = read_head(connection)
        expected = None
        with suppress(*ERRORS):
            expected = dict(connection.execute("SELECT key, source FROM chunks INDEXED BY chunks_by_source"))
        found = cls(head, _sources(connection), {}, expected)
        for key, id, source, hash, metadata, text in _rows(connection, "chunks"):
            if _is_sound(id, metadata, text, hash):
                found.source_of[key] = source
        vectors = {key for key, blob, crc in _rows(connection, "vectors") if _crc(blob) == crc}
        found.lacking = found.source_of.keys() - vectors
        found.lost = found.lacking - {key for key, _ in _rows(connection, "waiting")}
        return found

    def losses(self, kept: Counter[int | None]) -> list[str]:
        """List the losses, one line per source. ``kept``: number of chunks by source."""
        lines = [] if self.head else ["the name of the embedder and the counters of the store"]
        without = Counter(self.source_of[key] for key in self.lost)
        for id, (_, collection, source_file, chunks, *_) in sorted(self.sources.items(), key=lambda item: item[1][1:3]):
            name = f"source {shown(source_file)} of collection {shown(collection)}"
            if kept[id] < chunks:
                lines.append(f"{name}: {chunks - kept[id]:,} of {chunks:,} chunks")
            if without[id]:
                lines.append(f"{name}: {without[id]:,} vectors; {REMEDY}")
        orphans = sum(count for id, count in kept.items() if id is not None and id not in self.sources)
        if orphans:
            lines.append(f"the source of {orphans:,} chunks, which are kept without one")
        if self.expected is not None:
            known = self.sources.keys()
            loose = {key for key, source in self.expected.items() if source not in known} - self.source_of.keys()
            if loose:
                lines.append(f"{len(loose):,} chunks that belong to no source")
        if without[None]:
            lines.append(f"{without[None]:,} vectors of chunks that belong to no source; {REMEDY}")
        return lines

    def copy(self, old: sqlite3.Connection, new: sqlite3.Connection) -> tuple[list[str], list[tuple[str, str]]]:
        """Write every valid row; return the losses, and the sources to ingest again."""
        kept: Counter[int | None] = Counter()
        for key, id, source, hash, metadata, text in _rows(old, "chunks"):
            if key in self.source_of and _is_sound(id, metadata, text, hash):
                known = source if source in self.sources else None
                cursor = new.execute(
                    "INSERT OR IGNORE INTO chunks VALUES (?,?,?,?,?,?)", (key, id, known, hash, metadata, text)
                )
                kept[source] += cursor.rowcount
        dimension = 0
        for key, blob, crc in _rows(old, "vectors"):
            if key in self.source_of and _crc(blob) == crc:
                dimension = len(blob) // 4
                new.execute("INSERT OR IGNORE INTO vectors VALUES (?,?,?)", (key, blob, crc))
        new.executemany("INSERT INTO waiting VALUES (?, 0)", ((key,) for key in self.lacking))
        again = []
        for id, (_, collection, source_file, chunks, whole, metadata, varying) in self.sources.items():
            is_whole = bool(whole) and kept[id] == chunks
            if kept[id]:
                row = (id, collection, source_file, kept[id], int(is_whole), metadata, varying)
                new.execute("INSERT OR IGNORE INTO sources VALUES (?,?,?,?,?,?,?)", row)
            if kept[id] < chunks:
                again.append((collection, source_file))
        head = self.head or Head(time_ns(), 0, 0, 0, None, None, None, 0)
        next_key = max([head.next_key, *(key + 1 for key in self.source_of)])
        new.execute(
            "UPDATE head SET version = ?, next_key = ?, generation = ?, dimension = ?, embedder = ?",
            (head.version + 1, next_key, head.generation + 1, head.dimension or dimension, head.embedder),
        )
        return self.losses(kept), sorted(again)


def _rows(connection: sqlite3.Connection, table: str) -> Iterator[tuple[Any, ...]]:
    """Yield the readable rows of a table, by key."""
    # with a limit, SQLite does not look for the end of the range on a damaged page
    query = f"SELECT * FROM {table} WHERE key BETWEEN ? AND ? ORDER BY key LIMIT ?"
    end = _end(connection)
    ranges = [(low, min(low + AT_ONCE, end) - 1) for low in reversed(range(0, end, AT_ONCE))]
    if all(_fails(connection, table, end * part // PROBES) for part in range(PROBES + 1)):
        return  # the root page of the table is lost
    while ranges:
        low, high = ranges.pop()
        try:
            rows = connection.execute(query, (low, high, high - low + 1)).fetchall()
        except ERRORS:
            if low < high:
                middle = (low + high) // 2
                ranges += [(middle + 1, high), (low, middle)]
        else:
            yield from rows


def _end(connection: sqlite3.Connection) -> int:
    """Return a number above every key."""
    found = [0]
    for query in (
        "SELECT next_key FROM head",
        *(f"SELECT max(key) + 1 FROM {table}" for table in ("chunks", "vectors")),
        "SELECT max(key) + 1 FROM chunks INDEXED BY chunks_by_source",
    ):
        with suppress(*ERRORS, TypeError):
            found.append(int(connection.execute(query).fetchone()[0] or 0))
    return max(found)


def _fails(connection: sqlite3.Connection, table: str, key: int) -> bool:
    try:
        connection.execute(f"SELECT key FROM {table} WHERE key = ?", (key,)).fetchall()
    except ERRORS:
        return True
    return False


def _sources(connection: sqlite3.Connection) -> dict[int, tuple[Any, ...]]:
    """Read every source from its table or the index; of a damaged index, the part before and after the fault."""
    found: dict[int, tuple[Any, ...]] = {}
    names = "collection {0}, source_file {0}"
    orders = ["NOT INDEXED ORDER BY id", "NOT INDEXED ORDER BY id DESC"]
    orders += [f"INDEXED BY sources_copy ORDER BY {names.format(way)}" for way in ("ASC", "DESC")]
    for order in orders:
        with suppress(*ERRORS):
            for row in connection.execute(f"{SOURCES} {order}"):
                if _is_source(row):
                    found.setdefault(row[0], row)
    return found


def _is_source(row: tuple[Any, ...]) -> bool:
    _, collection, source_file, chunks, _, metadata, varying = row
    return (
        isinstance(collection, str) and isinstance(source_file, str) and isinstance(chunks, int)
        and isinstance(_parsed(metadata), dict) and isinstance(_parsed(varying), list)
    )  # fmt: skip


def _is_sound(id: Any, metadata: Any, text: Any, hash: Any) -> bool:
    return (
        not id_problem(id) and isinstance(_parsed(metadata), dict) and isinstance(text, str) and text_hash(text) == hash
    )


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None


def _crc(blob: Any) -> int:
    return zlib.crc32(blob) if isinstance(blob, bytes) else -1


def _opened(path: Path, mode: str = "mode=rw") -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True, isolation_level=None)


def _to_read(path: Path) -> sqlite3.Connection:
    alone = open_alone(path) if reading_mode(path) == WRITABLE and Room(path).is_short() else None
    return alone or _opened(path, reading_mode(path))


def _replace(path: Path, new: Path) -> Path:
    """Replace the old file by the new one, and keep it under another name; at every moment, one of them exists."""
    number = 1
    while (kept := path.with_name(f"{KEPT}{number}")).exists():
        number += 1
    try:
        kept.hardlink_to(path)
        for end in ("-wal", "-shm"):
            sidecar = path.with_name(f"{path.name}{end}")
            if sidecar.exists():  # else SQLite would apply it to the new file
                sidecar.rename(kept.with_name(f"{kept.name}{end}"))
        new.replace(path)
    except OSError as error:
        raise StoreError(f"{str(path)!r} cannot be replaced: {error.strerror}; {remedy(error)}") from error
    return kept
