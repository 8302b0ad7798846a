"""Select the chunks that meet a condition, by their sources as far as possible, else one by one.

SQL only preselects; `utils.where.matches` decides, so that a condition has the same meaning everywhere.
"""

from __future__ import annotations

import json
import sqlite3
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ragistry.stores.local.database import read_head
from ragistry.stores.records import NAMES, Keys, compact_json
from ragistry.types import Where
from ragistry.utils.where import matches, settle

if TYPE_CHECKING:
    from ragistry.protocols import Vectors
    from ragistry.stores.local.database import Head

MEMORY = 256_000_000
"""Maximum size in bytes of cached keys and vectors."""
CHANGES = 10_000
"""Number of writes that selections can follow."""
LONGEST_SQL = 100
"""Maximum number of values in a statement; longer conditions are evaluated without SQL."""


@dataclass(slots=True)
class Selection:
    """The keys that meet a condition, ascending.

    ``matrix``: once read, the keys that have a vector, the vectors, and the keys whose vectors have not been read yet.
    """

    keys: Keys
    matrix: tuple[Keys, Vectors, Keys] | None = None

    @property
    def size(self) -> int:
        """Size in memory in bytes."""
        return self.keys.nbytes + (0 if self.matrix is None else self.matrix[1].nbytes)


class Change(NamedTuple):
    """A write of this store object that added or removed chunks.

    ``before``, ``after``: the counters before and after it. ``removed``: keys of the removed chunks.
    """

    before: Head
    after: Head
    removed: Keys

    @classmethod
    def since(cls, connection: sqlite3.Connection, before: Head) -> Change:
        """Return what a transaction has written."""
        removed = connection.execute("SELECT key FROM removed WHERE number > ?", (before.removed,)).fetchall()
        return cls(before, read_head(connection), np.array(removed, dtype=np.int64).reshape(-1))


class Selections:
    """A cache of the last selections, because selecting chunks may take longer than searching them. Thread-safe.

    After writes of the same store object, a selection is completed from the chunks that were added and removed. After
    other writes, such as moves and those of other processes, the chunks are selected anew.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[Head, Selection]] = OrderedDict()
        self._changes: OrderedDict[int, Change] = OrderedDict()
        self._lock = Lock()

    def follow(self, change: Change) -> None:
        """Record a write."""
        if change.after.version == change.before.version:  # nothing was written
            return
        with self._lock:
            self._changes[change.after.version] = change
            if len(self._changes) > CHANGES:
                self._changes.popitem(last=False)

    def of(self, connection: sqlite3.Connection, head: Head, where: Where) -> Selection:
        """Return the selection of a condition in its normal form, in this snapshot of the store."""
        name = repr(where)
        before, known = self._known.get(name, (None, None))
        if before is not None and known is not None and before.version == head.version:
            return known
        removed = None if before is None else self._removed(before.version, head.version)
        if before is None or known is None or removed is None:
            selection = Selection(selected_keys(connection, where))
        else:
            selection = _completed(known, removed, selected_keys(connection, where, first=before.next_key))
        with self._lock:
            if before is None or before.version < head.version:
                self._known[name] = head, selection
                self._known.move_to_end(name)
                while len(self._known) > 1 and sum(each.size for _, each in self._known.values()) > MEMORY:
                    self._known.popitem(last=False)
        return selection

    def _removed(self, version: int, after: int) -> Keys | None:
        """Return the keys removed between two versions; None if other writes were between them."""
        removed = [np.empty(0, dtype=np.int64)]
        with self._lock:
            while after != version:
                change = self._changes.get(after)
                if change is None:
                    return None
                removed.append(change.removed)
                after = change.before.version
        return np.concatenate(removed)


def _completed(known: Selection, removed: Keys, added: Keys) -> Selection:
    """Return a selection without removed keys and with added ones, which are larger than the known ones."""
    keys, matrix = known.keys, known.matrix
    if len(removed):
        keys = keys[~np.isin(keys, removed)]
    if matrix is not None:
        found, vectors, unread = matrix
        if len(stay := np.flatnonzero(~np.isin(found, removed))) < len(found):
            found, vectors = found[stay], vectors[stay]
        matrix = found, vectors, np.concatenate([unread[~np.isin(unread, removed)], added])
    return Selection(np.concatenate([keys, added]) if len(added) else keys, matrix)


class Sql(NamedTuple):
    """A condition in SQL that selects all matching rows; if ``exact``, no others."""

    text: str
    values: tuple[Any, ...] = ()
    exact: bool = False


ANY = Sql("1")
_RANGES = {
    "$eq": (True, True),
    "$gt": (True, False),
    "$gte": (True, False),
    "$lt": (False, True),
    "$lte": (False, True),
}
"""Operators on numbers, and whether their operand limits the numbers below and above."""
SLACK = 1e-9
"""Relative width added to a range, because SQLite may round a number in JSON otherwise than Python does."""


def selected_keys(connection: sqlite3.Connection, where: Where | None, *, first: int = 0) -> Keys:
    """Return the keys of the chunks that meet a condition in its normal form, ascending; None: all chunks.

    ``first``: select only chunks from this key on.
    """
    if where is None:
        return _keys(connection.execute("SELECT key FROM chunks ORDER BY key"))
    newer = f" AND key >= {first}" if first else ""
    source = "+source" if first else "source"  # with a plus, SQLite looks up keys in place of sources
    names = _on_names(where)
    parts = [_loose(connection, where, source, newer)]
    if names.exact:
        chosen = f"SELECT key FROM chunks WHERE {source} IN (SELECT id FROM sources WHERE {names.text}){newer}"
        parts.append(_keys(connection.execute(chosen, names.values)))
    else:
        parts += _by_source(connection, where, _on_sources(where), source, newer)
    keys = np.concatenate(parts)
    keys.sort()
    return keys


def _by_source(connection: sqlite3.Connection, where: Where, possible: Sql, source: str, newer: str) -> Iterator[Keys]:
    """Yield all chunks of sources that fully meet the condition, and the matching chunks of other sources."""
    within = f" AND id IN (SELECT source FROM chunks WHERE source IS NOT NULL{newer})" if newer else ""
    rows = connection.execute(
        f"SELECT id, metadata, varying, collection, source_file FROM sources WHERE ({possible.text}){within}",
        possible.values,
    ).fetchall()
    parsed = iter(json.loads(f"[{','.join([f'{row[1]},{row[2]}' for row in rows])}]"))
    whole: list[int] = []
    partial: dict[str, list[int]] = {}
    for id, _, _, collection, source_file in rows:
        known = {**next(parsed), "collection": collection, "source_file": source_file}
        verdict = settle(where, known, next(parsed))
        if verdict is True:
            whole.append(id)
        elif verdict is not False:
            partial.setdefault(json.dumps(verdict), []).append(id)
    every = f"SELECT key FROM chunks WHERE {source} IN {_VALUES}{newer}"
    yield _keys(connection.execute(every, (json.dumps(whole),)))
    for left, sources in partial.items():
        condition = json.loads(left)  # restricted to metadata that differ among the chunks of a source
        text = _on_text(condition)
        rows = connection.execute(
            f"SELECT key, metadata FROM chunks WHERE {source} IN {_VALUES} AND ({text.text}){newer}",
            (json.dumps(sources), *text.values),
        ).fetchall()
        yield _meeting(condition, rows)


def _loose(connection: sqlite3.Connection, where: Where, source: str, newer: str) -> Keys:
    """Return the matching chunks without a source."""
    text = _on_text(where)
    rows = connection.execute(
        f"SELECT key, metadata FROM chunks WHERE {source} IS NULL AND ({text.text}){newer}", text.values
    ).fetchall()
    return _meeting(where, rows)


def _meeting(where: Where, rows: Sequence[tuple[int, str]]) -> Keys:
    """Return the keys of the rows whose metadata meet the condition."""
    metadatas = json.loads(f"[{','.join([metadata for _, metadata in rows])}]")
    found = (key for (key, _), metadata in zip(rows, metadatas, strict=True) if matches(where, metadata))
    return np.fromiter(found, dtype=np.int64)


_VALUES = "(SELECT value FROM json_each(?))"


def _on_names(where: Where) -> Sql:
    """Translate the parts of a condition about collection and file, for sources."""
    [(key, value)] = where.items()
    if key in ("$and", "$or"):
        parts = [_on_names(part) for part in value]
        return _joined(key, parts)
    [(op, operand)] = value.items()
    if key not in NAMES or op not in ("$eq", "$ne", "$in", "$nin"):
        return ANY
    # Names are text; SQLite would match the number 3 with '3'.
    values = tuple(one for one in (operand if isinstance(operand, list) else [operand]) if isinstance(one, str))
    if len(values) > LONGEST_SQL:
        if any("\0" in value for value in values):  # SQLite's JSON cuts a text at a NUL
            return ANY
        return Sql(f"{key} {'NOT ' * (op == '$nin')}IN {_VALUES}", (json.dumps(values),), exact=True)
    return Sql(f"{key} {'NOT ' * (op in ('$ne', '$nin'))}IN ({','.join('?' * len(values))})", values, exact=True)


def _on_sources(where: Where) -> Sql:
    """Translate a condition for sources: their own metadata may meet it, or those of their chunks may."""
    [(key, value)] = where.items()
    if key in ("$and", "$or"):
        return _joined(key, [_on_sources(part) for part in value])
    if key in NAMES:
        return _on_names(where)
    own = _on_text(where)
    return own if own is ANY else Sql(f"{own.text} OR instr(varying, ?)", (*own.values, compact_json(key)))


def _on_text(where: Where) -> Sql:
    """Translate a condition for stored metadata: they must contain a required text, or a number in a range."""
    [(key, value)] = where.items()
    if key in ("$and", "$or"):
        return _joined(key, [_on_text(part) for part in value])
    [(op, operand)] = value.items()
    values = operand if isinstance(operand, list) else [operand]
    if op in _RANGES and type(operand) in (int, float) and abs(operand) < 1e300 and '"' not in key and "\\" not in key:
        low, high = _RANGES[op]
        slack = abs(operand) * SLACK
        limits = (operand - slack if low else -inf, operand + slack if high else inf)
        return Sql("json_extract(metadata, ?) BETWEEN ? AND ?", (f'$."{key}"', *map(float, limits)))
    if (
        op not in ("$eq", "$in", "$contains")
        or len(values) > LONGEST_SQL
        or not all(isinstance(v, str) for v in values)
    ):
        return ANY
    written = tuple(json.dumps(one, ensure_ascii=False) for one in values)
    return Sql(" OR ".join(["instr(metadata, ?)"] * len(written)) or "0", written)


def _joined(key: str, parts: Sequence[Sql]) -> Sql:
    exact = all(part.exact for part in parts)
    telling = [part for part in parts if part is not ANY]
    if not telling or (key == "$or" and len(telling) < len(parts)):
        return ANY
    values = tuple(value for part in telling for value in part.values)
    text = (" AND " if key == "$and" else " OR ").join(f"({part.text})" for part in telling)
    if len(values) > LONGEST_SQL or text.count("(") > 3 * LONGEST_SQL:
        return ANY
    return Sql(text, values, exact)


def _keys(cursor: sqlite3.Cursor) -> Keys:
    return np.array(cursor.fetchall(), dtype=np.int64).reshape(-1)
