"""Our conditions on metadata in ChromaDB's words.

ChromaDB knows no order of text, no empty list and no list of several kinds, tells 1 from 1.0 inside lists, and cuts
1.5 to 1 where a whole number is stored. What cannot be said to it is left open: the translation then lets more
through, and `exact` says that the rest is ours to check.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from ragistry.utils.metadata import MAX_INTEGER, key_problem

MAX_PARTS = 250
"""Comparisons in one condition; SQLite's limit on nesting breaks somewhere above 500."""
MAX_VALUES = 4_000
"""Values in all ``$in`` and ``$nin``; its limit on variables breaks above 16,000."""


class Native(NamedTuple):
    """A condition for ChromaDB; True: every row, False: none. ``exact``: it lets nothing else through."""

    condition: dict[str, Any] | bool
    exact: bool


def native(where: Mapping[str, Any]) -> Native:
    """Translate a condition in its normal form (`utils.where.normalise`)."""
    parts, values = _size(where)
    if parts > MAX_PARTS or values > MAX_VALUES:
        return Native(True, False)
    [(key, value)] = where.items()
    if key in ("$and", "$or"):
        return _joined(key, [native(part) for part in value])
    [(op, operand)] = value.items()
    if key_problem(key):  # cannot be stored, so no row has it
        return Native(op in ("$ne", "$nin", "$not_contains"), True)
    return _comparison(key, op, operand)


def _size(where: Mapping[str, Any]) -> tuple[int, int]:
    [(key, value)] = where.items()
    if key in ("$and", "$or"):
        sizes = [_size(part) for part in value]
        return sum(parts for parts, _ in sizes), sum(values for _, values in sizes)
    [operand] = value.values()
    return (8, 2 * len(operand)) if isinstance(operand, list) else (2, 1)


def _joined(op: str, parts: list[Native]) -> Native:
    """``$and`` or ``$or`` of at least two conditions, with those left out that decide nothing."""
    exact = all(part.exact for part in parts)
    decides = op == "$or"
    if any(part.condition is decides for part in parts):
        return Native(decides, exact)
    open_parts = [part.condition for part in parts if not isinstance(part.condition, bool)]
    if not open_parts:
        return Native(not decides, exact)
    return Native(open_parts[0] if len(open_parts) == 1 else {op: open_parts}, exact)


def _comparison(key: str, op: str, operand: Any) -> Native:
    if op == "$contains":
        return Native(_join("$or", [{key: {op: value}} for value in _same_numbers(operand)]), True)
    if op == "$not_contains":
        return Native(_join("$and", [{key: {op: value}} for value in _same_numbers(operand)]), True)
    values = operand if isinstance(operand, list) else [operand]
    ordered = op in ("$gt", "$gte", "$lt", "$lte")
    if any(_is_inexact(value) or (ordered and isinstance(value, str)) for value in values):
        return Native(True, False)
    if ordered:
        return Native(_in_order(key, op, operand), True)
    positive = op in ("$eq", "$in")
    return Native(_among(key, values) if positive else _not_among(key, values), True)


def _is_inexact(value: Any) -> bool:
    """Whether ChromaDB would change the number on its way from one kind to the other."""
    if isinstance(value, float):
        return abs(value) >= MAX_INTEGER
    return isinstance(value, int) and int(float(value)) != value


def _among(key: str, values: list[Any]) -> dict[str, Any] | bool:
    """The value is one of these. ChromaDB cuts 1.5 to 1 where it compares it with a whole number."""
    parts = [
        _join("$and", [_is_one(key, group), *(_is_none(key, cut) for cut in [_cut(group)] if cut)])
        for group in _by_kind(values)
    ]
    return _join("$or", parts) if parts else False


def _not_among(key: str, values: list[Any]) -> dict[str, Any] | bool:
    parts = [
        _join("$or", [_is_none(key, group), *(_is_one(key, cut) for cut in [_cut(group)] if cut)])
        for group in _by_kind(values)
    ]
    return _join("$and", parts) if parts else True


def _is_one(key: str, values: list[Any]) -> dict[str, Any]:
    return {key: {"$eq": values[0]} if len(values) == 1 else {"$in": values}}


def _is_none(key: str, values: list[Any]) -> dict[str, Any]:
    return {key: {"$ne": values[0]} if len(values) == 1 else {"$nin": values}}


def _by_kind(values: list[Any]) -> list[list[Any]]:
    """The values in lists of one kind, broken numbers apart from whole ones."""
    groups: dict[Any, list[Any]] = {}
    for value in values:
        groups.setdefault((type(value), _is_broken(value)), []).append(value)
    return list(groups.values())


def _cut(values: list[Any]) -> list[int]:
    """The whole numbers that ChromaDB takes for broken ones."""
    return [int(value) for value in values] if _is_broken(values[0]) else []


def _is_broken(value: Any) -> bool:
    return isinstance(value, float) and not value.is_integer()


def _in_order(key: str, op: str, bound: float) -> dict[str, Any]:
    """Above or below a number; whole numbers are compared with the next whole one."""
    if _is_broken(bound) and op in ("$gte", "$lte"):
        op, bound = op[:-1], math.nextafter(bound, -math.inf if op == "$gte" else math.inf)
    if not _is_broken(bound):
        return {key: {op: bound}}
    whole = {"$gte": math.ceil(bound)} if op == "$gt" else {"$lte": math.floor(bound)}
    return {"$or": [{key: {op: bound}}, {key: whole}]}


def _join(op: str, conditions: list[Any]) -> dict[str, Any]:
    return conditions[0] if len(conditions) == 1 else {op: conditions}


def _same_numbers(value: Any) -> list[Any]:
    """The value, and the same number as the other kind of number."""
    if isinstance(value, bool | str):
        return [value]
    if isinstance(value, int):
        return [value, float(value)] if int(float(value)) == value else [value]
    whole = value.is_integer() and -MAX_INTEGER <= value < MAX_INTEGER
    return [value, int(value)] if whole else [value]
