"""Reads from a `LocalStore`'s database, each inside a snapshot of its caller."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ragistry.stores.catalog import Catalog, Group, Selection
from ragistry.stores.writing import COLUMNS, Rows, text_hash
from ragistry.utils.chunk_checks import id_problem
from ragistry.utils.where import matches

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

Keys = NDArray[np.int64]
AT_ONCE = 10_000
FEW = 1_000
"""So many values are better given one by one than as JSON, for which SQLite needs some 30 µs more."""
_parsed = json.JSONDecoder().raw_decode
"""`json.loads` without its search for blanks around."""


class Outdated(Exception):  # noqa: N818
    """The store was written to since a catalog was read."""


def contents(
    connection: sqlite3.Connection, catalog: Catalog, keys: Iterable[int]
) -> Iterator[tuple[int, str, str, dict[str, Any]]]:
    """Of each of these keys that is stored: the key, the chunk's id, its text, its metadata.

    Raises `Outdated` where the catalog is that of another state, which outside of a snapshot may be.
    """
    for page in _pages(list(keys), FEW):
        rows = connection.execute(
            "SELECT key, id, text, own, source, (SELECT value FROM meta WHERE key = 'state') "
            f"FROM chunks WHERE key IN ({_marks(page)})",
            page,
        ).fetchall()
        if rows and int(rows[0][5]) != catalog.state:
            raise Outdated
        owns = _parsed(f"[{','.join([row[3] for row in rows])}]")[0]  # all at once takes half as long as each
        for (key, id, text, _, source, _), own in zip(rows, owns, strict=True):
            yield key, id, text, catalog.groups[source].metadata(own)


def keys_of(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, int]:
    """The key of each id that is stored; what could not be one is none."""
    found: dict[str, int] = {}
    # One by one: SQLite's JSON cuts a text where it holds a NUL, and what is left may be the id of another chunk.
    for page in _pages([id for id in ids if not id_problem(id)], FEW):
        found.update(connection.execute(f"SELECT id, key FROM chunks WHERE id IN ({_marks(page)})", page))
    return found


def ids_of(connection: sqlite3.Connection, keys: Keys) -> list[str]:
    """The ids of these keys, in the order of the keys."""
    return [
        id
        for page in _pages(keys.tolist())
        for (id,) in connection.execute(
            "SELECT id FROM chunks WHERE key IN (SELECT value FROM json_each(?)) ORDER BY key", (json.dumps(page),)
        )
    ]


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
    """The keys of chunks that meet a condition, by a column's index where it has one, else by reading."""
    sources = json.dumps([group.id for group in groups])
    indexed = _on_column(where)
    if indexed is not None:
        column, value = indexed
        rows = connection.execute(
            f"SELECT key FROM chunks WHERE {column} = ? AND source IN (SELECT value FROM json_each(?))",
            (value, sources),
        )
        yield from (key for (key,) in rows)
        return
    common = {group.id: group.common for group in groups}
    rows = connection.execute(
        "SELECT key, source, own FROM chunks WHERE source IN (SELECT value FROM json_each(?))", (sources,)
    )
    for key, source, own in rows:
        if matches(where, common[source] | json.loads(own)):
            yield key


def _on_column(where: dict[str, Any]) -> tuple[str, Any] | None:
    """The column and value of a condition that an index answers exactly: one value of its column's own kind."""
    [(key, comparison)] = where.items()
    if key not in COLUMNS or set(comparison) != {"$eq"}:
        return None
    value = comparison["$eq"]
    return (key, value) if isinstance(value, bool) == (key == "has_code") else None


def group_vectors(connection: sqlite3.Connection, groups: Sequence[Group]) -> Iterator[tuple[Group, Vectors]]:
    """Of each group its vectors, ``(chunks, d)``, in the order of their keys; read only."""
    by_id = {group.id: group for group in groups}
    for page in _pages(list(by_id), FEW):
        rows = connection.execute(f"SELECT source, data FROM vectors WHERE source IN ({_marks(page)})", page)
        for source, data in rows:
            group = by_id[source]
            yield group, np.frombuffer(data, dtype=np.float32).reshape(group.chunks, -1)


def group_rows(connection: sqlite3.Connection, group: Group) -> Rows:
    """All of a group, to be written again."""
    rows = connection.execute("SELECT id, text, own FROM chunks WHERE source = ? ORDER BY key", (group.id,)).fetchall()
    [(_, vectors)] = group_vectors(connection, [group])
    return Rows(
        [id for id, _, _ in rows], [text for _, text, _ in rows],
        [group.common | json.loads(own) for _, _, own in rows], vectors,
    )  # fmt: skip


def vectors_of_texts(connection: sqlite3.Connection, texts: Sequence[str]) -> dict[str, Vectors]:
    """The vector of every text that is stored somewhere."""
    wanted = {text_hash(text): text for text in texts}
    places: dict[str, tuple[int, int]] = {}
    for page in _pages(list(wanted)):
        rows = connection.execute(
            "SELECT c.text, c.source, c.key - s.first FROM json_each(?) AS wanted "
            "JOIN chunks AS c ON c.text_hash = wanted.value JOIN sources AS s ON s.id = c.source",
            (json.dumps(page),),
        )
        places.update({text: (source, row) for text, source, row in rows if wanted[text_hash(text)] == text})
    found: dict[str, Vectors] = {}
    by_source: dict[int, list[tuple[str, int]]] = {}
    for text, (source, row) in places.items():
        by_source.setdefault(source, []).append((text, row))
    for source, pairs in by_source.items():
        data, count = connection.execute(
            "SELECT v.data, s.chunks FROM vectors AS v JOIN sources AS s ON s.id = v.source WHERE s.id = ?", (source,)
        ).fetchone()
        matrix = np.frombuffer(data, dtype=np.float32).reshape(count, -1)
        found |= {text: matrix[row] for text, row in pairs}
    return found


def _marks(page: list[Any]) -> str:
    return ",".join("?" * len(page))


def _pages(items: list[Any], at_once: int = AT_ONCE) -> Iterator[list[Any]]:
    for start in range(0, len(items), at_once):
        yield items[start : start + at_once]
