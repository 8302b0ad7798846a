"""Translate conditions on metadata for ChromaDB.

ChromaDB cannot order text, refuses empty lists and lists of mixed types, distinguishes 1 and 1.0 in lists, and
truncates 1.5 to 1 when it compares it with an integer. A condition that it cannot express is translated to a wider one;
``exact`` is then False, and the caller checks the rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from ragistry.utils.metadata import MAX_INTEGER, key_problem

MAX_PARTS = 250
"""Maximum number of comparisons in a condition; above about 500, SQLite's nesting limit is reached."""
MAX_VALUES = 4_000
"""Maximum number of values in all ``$in`` and ``$nin``; above 16,000, SQLite's limit of variables is reached."""


class Native(NamedTuple):
    """A condition for ChromaDB; True: every row, False: none. ``exact``: it matches no other rows."""

    condition: dict[str, Any] | bool
    exact: bool


EVERYTHING = Native(True, False)


def native(where: Mapping[str, Any]) -> Native:
    """Translate a condition in its normal form (`utils.where.normalise`)."""
    parts, values = _size(where)
    if parts > MAX_PARTS or values > MAX_VALUES:
        return EVERYTHING
    [(key, value)] = where.items()
    if key in ("$and", "$or"):
        return _joined(key, [native(part) for part in value])
    [(op, operand)] = value.items()
    if key_problem(key):  # no row has such a key, because it cannot be stored
        return Native(op in ("$ne", "$nin", "$not_contains"), True)
    return _comparison(key, op, operand)


def _size(where: Mapping[str, Any]) -> tuple[int, int]:
    """Count the comparisons of the condition in ChromaDB, and their values."""
    [(key, value)] = where.items()
    if key in ("$and", "$or"):
        sizes = [_size(part) for part in value]
        return sum(parts for parts, _ in sizes), sum(values for _, values in sizes)
    [operand] = value.values()
    return (8, 2 * len(operand)) if isinstance(operand, list) else (2, 1)


def _joined(op: str, parts: list[Native]) -> Native:
    """Join at least two conditions with ``$and`` or ``$or``, without redundant parts."""
    exact = all(part.exact for part in parts)
    decides = op == "$or"
    if any(part.condition is decides for part in parts):
        return Native(decides, exact)
    rest = [part.condition for part in parts if not isinstance(part.condition, bool)]
    return Native(_join(op, rest) if rest else not decides, exact)


def _comparison(key: str, op: str, operand: Any) -> Native:
    if op in ("$contains", "$not_contains"):
        join = "$or" if op == "$contains" else "$and"
        return Native(_join(join, [{key: {op: value}} for value in _same_numbers(operand)]), True)
    values = operand if isinstance(operand, list) else [operand]
    if any(_loses_digits(value) for value in values):
        return EVERYTHING
    if op in ("$gt", "$gte", "$lt", "$lte"):
        if isinstance(operand, str):
            return EVERYTHING
        if _is_fraction(operand):  # wider: from the whole number below, or up to the one above
            return Native({key: {"$gte": math.floor(operand)} if "g" in op else {"$lte": math.ceil(operand)}}, False)
        return Native({key: {op: operand}}, True)
    if op in ("$eq", "$in"):
        parts = [_among(key, group, "$in", "$nin", "$and") for group in _by_kind(values)]
        return Native(_join("$or", parts) if parts else False, True)
    parts = [_among(key, group, "$nin", "$in", "$or") for group in _by_kind(values)]
    return Native(_join("$and", parts) if parts else True, True)


def _among(key: str, group: list[Any], op: str, opposite: str, join: str) -> dict[str, Any]:
    """Build a condition with ``$in`` or ``$nin``. ChromaDB truncates fractions to integers, and matches these too."""
    cut = [{key: {opposite: [int(value) for value in group]}}] if _is_fraction(group[0]) else []
    return _join(join, [{key: {op: group}}, *cut])


def _is_fraction(value: Any) -> bool:
    return isinstance(value, float) and not value.is_integer()


def _loses_digits(value: Any) -> bool:
    """Return whether ChromaDB changes the number when it converts between integer and float."""
    if isinstance(value, float):
        return abs(value) >= MAX_INTEGER
    return isinstance(value, int) and int(float(value)) != value


def _by_kind(values: list[Any]) -> list[list[Any]]:
    """Split the values into lists of one type, with fractions and integers separated."""
    groups: dict[tuple[type, bool], list[Any]] = {}
    for value in values:
        groups.setdefault((type(value), _is_fraction(value)), []).append(value)
    return list(groups.values())


def _same_numbers(value: Any) -> list[Any]:
    """Return the value, and for a number also the equal one of the other type."""
    if isinstance(value, bool | str):
        return [value]
    if isinstance(value, int):
        return [value, float(value)] if int(float(value)) == value else [value]
    whole = value.is_integer() and -MAX_INTEGER <= value < MAX_INTEGER
    return [value, int(value)] if whole else [value]


def _join(op: str, conditions: list[Any]) -> dict[str, Any]:
    return conditions[0] if len(conditions) == 1 else {op: conditions}
