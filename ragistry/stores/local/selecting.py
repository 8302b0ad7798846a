"""Select the chunks that meet a condition, by their sources as far as possible, else one by one.

SQL only preselects; `utils.where.matches` decides, so that a condition has the same meaning everywhere.
"""

from __future__ import annotations

import json
import sqlite3
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ragistry.stores.records import NAMES, Keys
from ragistry.types import Where
from ragistry.utils.where import matches, settle

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

MEMORY = 256_000_000
"""Maximum size in bytes of cached keys and vectors."""
LONGEST_SQL = 100
"""Maximum number of values in a statement; longer conditions are evaluated without SQL."""


@dataclass(slots=True)
class Selection:
    """The keys that meet a condition, ascending; and, once read, those with a vector, and the vectors."""

    keys: Keys
    matrix: tuple[Keys, Vectors] | None = None

    @property
    def size(self) -> int:
        """Size in memory in bytes."""
        return self.keys.nbytes + (0 if self.matrix is None else self.matrix[1].nbytes)


class Selections:
    """A cache of the last selections, because selecting chunks may take longer than searching them. Thread-safe."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, str], Selection] = OrderedDict()
        self._lock = Lock()

    def of(self, connection: sqlite3.Connection, version: int, where: Where) -> Selection:
        """Return the selection of a condition in its normal form, in this version of the store."""
        name = version, repr(where)
        selection = self._kept.get(name)
        if selection is None:
            selection = Selection(selected_keys(connection, where))
            with self._lock:
                if self._kept and next(reversed(self._kept))[0] < version:
                    self._kept.clear()
                self._kept[name] = selection
                while len(self._kept) > 1 and sum(each.size for each in self._kept.values()) > MEMORY:
                    self._kept.popitem(last=False)
        return selection


class Sql(NamedTuple):
    """A condition in SQL that selects all matching rows; if ``exact``, no others."""

    text: str
    values: tuple[Any, ...] = ()
    exact: bool = False


ANY = Sql("1")


def selected_keys(connection: sqlite3.Connection, where: Where | None) -> Keys:
    """Return the keys of the chunks that meet a condition in its normal form, ascending; None: all chunks."""
    if where is None:
        return _keys(connection.execute("SELECT key FROM chunks ORDER BY key"))
    names = _on_names(where)
    parts = [_loose(connection, where)]
    if names.exact:
        parts.append(
            _keys(
                connection.execute(
                    f"SELECT key FROM chunks WHERE source IN (SELECT id FROM sources WHERE {names.text})", names.values
                )
            )
        )
    else:
        parts += _by_source(connection, where, names)
    keys = np.concatenate(parts)
    keys.sort()
    return keys


def _by_source(connection: sqlite3.Connection, where: Where, names: Sql) -> Iterator[Keys]:
    """Yield all chunks of sources that fully meet the condition, and the matching chunks of other sources."""
    rows = connection.execute(
        f"SELECT id, metadata, varying, collection, source_file FROM sources WHERE {names.text}", names.values
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
    yield _keys(connection.execute(f"SELECT key FROM chunks WHERE source IN {_VALUES}", (json.dumps(whole),)))
    for left, sources in partial.items():
        condition = json.loads(left)  # restricted to metadata that differ among the chunks of a source
        text = _on_text(condition)
        rows = connection.execute(
            f"SELECT key, metadata FROM chunks WHERE source IN {_VALUES} AND ({text.text})",
            (json.dumps(sources), *text.values),
        ).fetchall()
        yield _meeting(condition, rows)


def _loose(connection: sqlite3.Connection, where: Where) -> Keys:
    """Return the matching chunks without a source."""
    text = _on_text(where)
    rows = connection.execute(
        f"SELECT key, metadata FROM chunks WHERE source IS NULL AND ({text.text})", text.values
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


def _on_text(where: Where) -> Sql:
    """Translate a condition for the stored metadata of a chunk: they must contain a required text."""
    [(key, value)] = where.items()
    if key in ("$and", "$or"):
        return _joined(key, [_on_text(part) for part in value])
    [(op, operand)] = value.items()
    values = operand if isinstance(operand, list) else [operand]
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
