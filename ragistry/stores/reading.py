"""Reads from a `LocalStore`'s database, each inside a snapshot of its caller."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ragistry.stores.catalog import Group, Selection
from ragistry.stores.writing import COLUMNS, Rows, text_hash
from ragistry.utils.where import matches

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

Keys = NDArray[np.int64]
AT_ONCE = 10_000
_parsed = json.JSONDecoder().raw_decode
"""`json.loads` without its search for blanks around: half the time, and twice a document."""


def contents(connection: sqlite3.Connection, keys: Iterable[int]) -> Iterator[tuple[int, str, str, dict[str, Any]]]:
    """Of each of these keys that is stored: the key, the chunk's id, its text, its metadata."""
    for page in _pages(list(keys)):
        rows = connection.execute(
            "SELECT c.key, c.id, c.text, c.own, s.common FROM json_each(?) AS wanted "
            "JOIN chunks AS c ON c.key = wanted.value JOIN sources AS s ON s.id = c.source",
            (json.dumps(page),),
        )
        shared: dict[str, dict[str, Any]] = {}
        for key, id, text, own, common in rows:
            metadata = shared.get(common)
            if metadata is None:
                metadata = _parsed(common)[0]
                if "[" not in common:  # a list would be the same one in several documents
                    shared[common] = metadata
            yield key, id, text, metadata | _parsed(own)[0]


def keys_of(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, int]:
    """The key of each id that is stored; what is no text is no id."""
    found: dict[str, int] = {}
    for page in _pages([id for id in ids if isinstance(id, str)]):
        rows = connection.execute(
            "SELECT c.id, c.key FROM json_each(?) AS wanted JOIN chunks AS c ON c.id = wanted.value",
            (json.dumps(page),),
        )
        found.update(rows)
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
    for page in _pages(list(by_id)):
        rows = connection.execute(
            "SELECT source, data FROM vectors WHERE source IN (SELECT value FROM json_each(?))", (json.dumps(page),)
        )
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


def _pages(items: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(items), AT_ONCE):
        yield items[start : start + AT_ONCE]
