"""Conditions on metadata in SQL, with the meaning of `utils.where.matches`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ragistry.errors import InvalidFilterError
from ragistry.stores.records import NAMES
from ragistry.types import Where
from ragistry.utils.where import normalise

if TYPE_CHECKING:
    from ragistry.stores.postgres.database import Connection

FEW = 20
"""Maximum number of values looked up in the index of facets; more are compared with each chunk."""
MOST_VALUES = 65_000
"""Maximum number of parameters of a statement."""
_ORDER = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}


class Sql(NamedTuple):
    """A condition on a row of ``chunks``; ``on_names``: only on collection and file, which sources have too."""

    text: str
    values: tuple[Any, ...] = ()
    on_names: bool = False


def escaped(text: str) -> str:
    """Escape NUL, which Postgres does not support; keeps the order of texts."""
    if "\0" in text or "\1" in text:
        text = text.replace("\1", "\1\2").replace("\0", "\1\1")
    return text


def unescaped(text: str) -> str:
    """Invert `escaped`."""
    return text.replace("\1\1", "\0").replace("\1\2", "\1") if "\1" in text else text


class EscapedRows:
    """A connection that takes ``?`` in place of a value, and texts with NUL."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def execute(self, query: str, values: Sequence[Any] = ()) -> list[list[Any]]:
        """Run a statement and return its rows."""
        cursor = self._connection.execute(query.replace("?", "%s"), _changed(values, escaped))
        return [_changed(row, unescaped) for row in cursor] if cursor.description else []

    def executemany(self, query: str, values: Iterable[Sequence[Any]]) -> None:
        """Run a statement for each of these values."""
        rows = [_changed(row, escaped) for row in values]
        self._connection.cursor().executemany(query.replace("?", "%s"), rows)


def _changed(values: Sequence[Any], change: Callable[[str], str]) -> list[Any]:
    return [change(value) if isinstance(value, str) else value for value in values]


def facets(metadata: Mapping[str, Any]) -> str:
    """Convert metadata to comparable JSON: numbers that are equal in Python are equal."""
    return json.dumps({escaped(key): _facet(value) for key, value in metadata.items()}, ensure_ascii=False)


def _facet(value: Any) -> Any:
    if isinstance(value, list):
        return [_facet(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)  # the digits of an integer are exact
    return escaped(value) if isinstance(value, str) else value


def condition(where: Where | None) -> Sql:
    """Translate a condition to SQL after normalising it; None: every chunk. Raises `InvalidFilterError`."""
    if where is None:
        return Sql("true")
    found = _condition(normalise(where))
    if len(found.values) > MOST_VALUES:
        raise InvalidFilterError(
            f"where has {len(found.values):,} values in $and and $or, the limit of Postgres is {MOST_VALUES:,}; use $in"
        )
    return found


def _condition(where: Where) -> Sql:
    [(key, value)] = where.items()
    if key in ("$and", "$or"):
        parts = [_condition(part) for part in value]
        text = (" AND " if key == "$and" else " OR ").join(f"({part.text})" for part in parts)
        values = tuple(value for part in parts for value in part.values)
        return Sql(text, values, all(part.on_names for part in parts))
    [(op, operand)] = value.items()
    return _on_name(key, op, operand) if key in NAMES else _on_facet(key, op, operand)


def _on_name(key: str, op: str, operand: Any) -> Sql:
    """Translate a condition on a text column; values that are not text are in the facets."""
    if op in ("$ne", "$nin"):
        return _negated(_on_name(key, "$eq" if op == "$ne" else "$in", operand))
    if op == "$in":
        texts = [escaped(item) for item in operand if isinstance(item, str)]
        others = [item for item in operand if not isinstance(item, str)]
        found = Sql(f"{key} = ANY(%s::text[])", (texts,), on_names=True)
        return _either(found, _on_facet(key, op, others)) if others else found
    if isinstance(operand, str) and (op == "$eq" or op in _ORDER):
        return Sql(f"{key} {_ORDER.get(op, '=')} %s", (escaped(operand),), on_names=True)
    return _on_facet(key, op, operand)


def _on_facet(key: str, op: str, operand: Any) -> Sql:
    if op in ("$ne", "$nin", "$not_contains"):
        return _negated(_on_facet(key, {"$ne": "$eq", "$nin": "$in", "$not_contains": "$contains"}[op], operand))
    if op == "$eq":
        return Sql("facets @> %s::jsonb", (facets({key: operand}),))
    if op == "$contains":
        return Sql("facets @> %s::jsonb", (facets({key: [operand]}),))
    if op == "$in":
        if len(operand) <= FEW:
            text = " OR ".join(["facets @> %s::jsonb"] * len(operand)) or "false"
            return Sql(text, tuple(facets({key: item}) for item in operand))
        values = [json.dumps(_facet(item), ensure_ascii=False) for item in operand]
        return Sql("facets -> %s::text = ANY(%s::jsonb[])", (escaped(key), values))
    kind = "string" if isinstance(operand, str) else "number"
    cast = 'COLLATE "C"' if kind == "string" else "::numeric"
    value = escaped(operand) if kind == "string" else json.dumps(_facet(operand))
    return Sql(
        f"CASE jsonb_typeof(facets -> %s::text) WHEN '{kind}' "
        f"THEN (facets ->> %s::text){cast} {_ORDER[op]} %s::{'text' if kind == 'string' else 'numeric'} ELSE false END",
        (escaped(key), escaped(key), value),
    )


def _negated(found: Sql) -> Sql:
    return found._replace(text=f"NOT coalesce({found.text}, false)")


def _either(one: Sql, other: Sql) -> Sql:
    return Sql(f"({one.text}) OR ({other.text})", (*one.values, *other.values))
