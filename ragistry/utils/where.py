"""Conditions on metadata: one normal form, one meaning, on every store.

A condition is ``{"key": value}``, ``{"key": {"$op": value}}``, or ``{"$and" | "$or": [conditions]}``; several keys in
one mapping mean all of them. Operators: ``$eq $ne $gt $gte $lt $lte $in $nin``, and ``$contains`` for a value
in a list such as ``tags``. A chunk that lacks the key meets ``$ne`` and ``$nin`` and no other operator. Values are
text, whole or broken numbers, or truth values; True is not 1, and 1 is 1.0.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ragistry.errors import InvalidFilterError
from ragistry.types import Where
from ragistry.utils.metadata import scalar_problem

MAX_DEPTH = 32
COMPARISONS = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$contains")
JOINS = ("$and", "$or")
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def normalise(where: Where) -> dict[str, Any]:
    """The same condition with one key in every mapping and every operator written out.

    Raises `InvalidFilterError` for whatever is not a condition. An empty mapping is refused: where a condition
    limits access, a caller that built none by mistake must not see everything.
    """
    return _normalise(where, MAX_DEPTH)


def _normalise(where: Any, depth: int) -> dict[str, Any]:
    if not isinstance(where, Mapping):
        raise InvalidFilterError(f"where must be a mapping, got {where!r}; write {{'page': 3}}")
    if not where:
        raise InvalidFilterError("where is empty: {}; leave it out (None) to search everything")
    if depth == 0:
        raise InvalidFilterError(f"where has more than {MAX_DEPTH} levels of $and and $or; make it flatter")
    parts = [_normalise_item(key, value, depth) for key, value in where.items()]
    return parts[0] if len(parts) == 1 else {"$and": parts}


def _normalise_item(key: Any, value: Any, depth: int) -> dict[str, Any]:
    if not isinstance(key, str):
        raise InvalidFilterError(f"a key of where must be text, got {key!r}")
    if key in JOINS:
        if not isinstance(value, Sequence) or isinstance(value, str) or not value:
            raise InvalidFilterError(f"{key} takes a list of one or more conditions, got {value!r}")
        parts = [_normalise(part, depth - 1) for part in value]
        return parts[0] if len(parts) == 1 else {key: parts}
    if key.startswith("$"):
        raise InvalidFilterError(
            f"{key!r} cannot stand here; joins are {' '.join(JOINS)}, "
            "and an operator goes below a key: {'page': {'$gte': 3}}"
        )
    if not isinstance(value, Mapping):
        return {key: {"$eq": _scalar(key, "$eq", value)}}
    if not value:
        raise InvalidFilterError(f"the condition on {key!r} is empty; write {{{key!r}: {{'$eq': …}}}}")
    parts = [{key: {op: _operand(key, op, operand)}} for op, operand in value.items()]
    return parts[0] if len(parts) == 1 else {"$and": parts}


def _operand(key: str, op: Any, operand: Any) -> Any:
    if op not in COMPARISONS:
        raise InvalidFilterError(f"unknown operator {op!r} on {key!r}; there are {' '.join(COMPARISONS)}")
    if op in ("$in", "$nin"):
        if not isinstance(operand, Sequence | set | frozenset) or isinstance(operand, str):
            raise InvalidFilterError(f"{op} on {key!r} takes a list of values, got {operand!r}")
        return [_scalar(key, op, item) for item in operand]
    value = _scalar(key, op, operand)
    if op in _ORDER and isinstance(value, bool):
        raise InvalidFilterError(f"{op} on {key!r} compares numbers or text, got {operand!r}")
    return value


def _scalar(key: str, op: str, value: Any) -> Any:
    if not isinstance(value, str | int | float | bool):
        raise InvalidFilterError(f"{op} on {key!r} takes text, a number or a truth value, got {value!r:.200}")
    problem = scalar_problem(value)
    if problem:
        raise InvalidFilterError(f"the value of {op} on {key!r} {problem}")
    return value


def matches(where: Where, metadata: Mapping[str, Any]) -> bool:
    """Whether the metadata meet a condition in its normal form."""
    [(key, value)] = where.items()
    if key == "$and":
        return all(matches(part, metadata) for part in value)
    if key == "$or":
        return any(matches(part, metadata) for part in value)
    [(op, operand)] = value.items()
    return _compare(op, metadata.get(key), operand)


def _compare(op: str, stored: Any, operand: Any) -> bool:
    if op == "$eq":
        return _equal(stored, operand)
    if op == "$ne":
        return not _equal(stored, operand)
    if op == "$in":
        return any(_equal(stored, item) for item in operand)
    if op == "$nin":
        return not any(_equal(stored, item) for item in operand)
    if op == "$contains":
        return isinstance(stored, list | tuple) and any(_equal(item, operand) for item in stored)
    return _comparable(stored, operand) and _ORDER[op](stored, operand)


def _equal(stored: Any, operand: Any) -> bool:
    return _kind(stored) is _kind(operand) and bool(stored == operand)


def _comparable(stored: Any, operand: Any) -> bool:
    return _kind(stored) is _kind(operand) and _kind(stored) in (str, float)


def _kind(value: Any) -> type:
    if isinstance(value, bool):
        return bool
    return float if isinstance(value, int | float) else type(value)
