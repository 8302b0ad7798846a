"""Conditions on metadata: one normal form, one meaning, on every store.

A condition is ``{"key": value}``, ``{"key": {"$op": value}}``, or ``{"$and" | "$or": [conditions]}``; several keys in
one mapping mean all of them. Operators: ``$eq $ne $gt $gte $lt $lte $in $nin``, and ``$contains`` and
``$not_contains`` for a value in a list such as ``tags``. A chunk that lacks the key meets ``$ne``, ``$nin`` and
``$not_contains`` and no other operator; a value that is not a list contains nothing. Values are text, integers,
floats, or truth values; True is not 1, and 1 is 1.0. Composed and decomposed Unicode are one text. A `date` or
`datetime` means the text that metadata store (`utils.metadata`).
"""

from __future__ import annotations

import operator
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date
from typing import Any, Never, overload

from ragistry.errors import InvalidFilterError
from ragistry.types import Where
from ragistry.utils.ids import composed
from ragistry.utils.metadata import date_text, plain, scalar_problem
from ragistry.utils.wording import shown

MAX_DEPTH = 32
COMPARISONS = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$contains", "$not_contains")
JOINS = ("$and", "$or")
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


class Condition(dict[str, Any]):
    """An immutable condition in its normal form, as `normalise` returns it."""

    def _refuse(self, *_: Any, **__: Any) -> Never:
        raise TypeError("a condition cannot be changed; change a copy: dict(where)")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[Condition], tuple[dict[str, Any]]]:
        return Condition, (dict(self),)


@overload
def normalise(where: Where) -> Condition:
    """Normalise a condition."""


@overload
def normalise(where: None) -> None:
    """Return None: there is no condition."""


def normalise(where: Where | None) -> Condition | None:
    """Normalise a condition: one key per mapping, explicit operators, and values of built-in types.

    A `Condition` is returned unchanged, and so is None. An empty mapping is refused: a condition also limits access,
    and an empty one by mistake must not allow everything.

    Raises:
        InvalidFilterError: ``where`` is not a condition.
    """
    return where if where is None or isinstance(where, Condition) else Condition(_normalise(where, MAX_DEPTH))


def _normalise(where: Any, depth: int) -> dict[str, Any]:
    if not isinstance(where, Mapping):
        raise InvalidFilterError(f"where must be a mapping, got {shown(where)}; write {{'page': 3}}")
    if not where:
        raise InvalidFilterError("where is empty: {}; use None to search everything")
    if depth == 0:
        raise InvalidFilterError(f"where has more than {MAX_DEPTH} levels of $and and $or; make it flatter")
    parts = [_normalise_item(key, value, depth) for key, value in where.items()]
    return parts[0] if len(parts) == 1 else {"$and": parts}


def _normalise_item(key: Any, value: Any, depth: int) -> dict[str, Any]:
    key = plain(key)
    if not isinstance(key, str):
        raise InvalidFilterError(f"a key of where must be text, got {shown(key)}")
    key = composed(key)
    if key in JOINS:
        if not _is_list(value) or not value:
            raise InvalidFilterError(f"{key} takes a list of one or more conditions, got {shown(value)}")
        parts = [_normalise(part, depth - 1) for part in value]
        return parts[0] if len(parts) == 1 else {key: parts}
    if key.startswith("$"):
        raise InvalidFilterError(
            f"{shown(key)} is not allowed here; use {' or '.join(JOINS)}, or write the operator below a key: "
            "{'page': {'$gte': 3}}"
        )
    if not isinstance(value, Mapping):
        return _of_any_form(key, "$eq", _scalar(key, "$eq", value))
    if not value:
        raise InvalidFilterError(f"the condition on {shown(key)} is empty; write {{{shown(key)}: {{'$eq': …}}}}")
    parts = [_comparison(key, plain(op), operand) for op, operand in value.items()]
    return parts[0] if len(parts) == 1 else {"$and": parts}


def _comparison(key: str, op: Any, operand: Any) -> dict[str, Any]:
    if op not in COMPARISONS:
        raise InvalidFilterError(f"unknown operator {shown(op)} on {shown(key)}; use one of {' '.join(COMPARISONS)}")
    if op in ("$in", "$nin"):
        if not _is_list(operand):
            raise InvalidFilterError(f"{op} on {shown(key)} takes a list of values, got {shown(operand)}")
        values = [_scalar(key, op, item) for item in operand]
        return {key: {op: [form for value in values for form in _forms(value)]}}
    value = _scalar(key, op, operand)
    if op in _ORDER and isinstance(value, bool):
        raise InvalidFilterError(f"{op} on {shown(key)} compares numbers or text, got {shown(operand)}")
    return _of_any_form(key, op, value)


def _of_any_form(key: str, op: str, value: Any) -> dict[str, Any]:
    """Return a comparison with every form of a text; lists are stored in the composed form."""
    if op in ("$eq", "$ne") and len(forms := _forms(value)) > 1:
        return {key: {"$in" if op == "$eq" else "$nin": forms}}
    return {key: {op: composed(value) if op in ("$contains", "$not_contains") and isinstance(value, str) else value}}


def _forms(value: Any) -> list[Any]:
    if not isinstance(value, str) or value.isascii():
        return [value]
    return list(dict.fromkeys([value, *(unicodedata.normalize(form, value) for form in ("NFC", "NFD"))]))


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes | bytearray)


def _scalar(key: str, op: str, value: Any) -> Any:
    value = (isinstance(value, date) and date_text(value)) or plain(value)
    if not isinstance(value, str | int | float | bool):
        raise InvalidFilterError(f"{op} on {shown(key)} takes text, a number or a truth value, got {shown(value)}")
    problem = scalar_problem(value)
    if problem:
        raise InvalidFilterError(f"the value of {op} on {shown(key)} {problem}")
    return value


def both(first: Condition, second: Condition) -> Condition:
    """Join two conditions by ``$and``."""
    return Condition({"$and": [first, second]})


def keys_of(where: Where) -> set[str]:
    """Return the metadata keys that a condition in its normal form is about."""
    [(key, value)] = where.items()
    return set[str]().union(*map(keys_of, value)) if key in JOINS else {key}


def matches(where: Where, metadata: Mapping[str, Any]) -> bool:
    """Return whether metadata meet a condition in its normal form."""
    [(key, value)] = where.items()
    if key == "$and":
        return all(matches(part, metadata) for part in value)
    if key == "$or":
        return any(matches(part, metadata) for part in value)
    [(op, operand)] = value.items()
    return _compare(op, metadata.get(key), operand)


def _compare(op: str, stored: Any, operand: Any) -> bool:
    if op == "$eq":
        if isinstance(operand, str):
            return bool(stored == operand)
        return _equal(stored, operand)
    if op == "$ne":
        return not _equal(stored, operand)
    if op in ("$in", "$nin"):
        return _is_among(stored, operand) is (op == "$in")
    if op in ("$contains", "$not_contains"):
        contains = isinstance(stored, list | tuple) and any(_equal(item, operand) for item in stored)
        return contains is (op == "$contains")
    return _comparable(stored, operand) and _ORDER[op](stored, operand)


def _equal(stored: Any, operand: Any) -> bool:
    return _kind(stored) is _kind(operand) and bool(stored == operand)


def _is_among(stored: Any, values: Sequence[Any]) -> bool:
    if isinstance(stored, str):  # equals only text; the fastest way for many values
        return stored in values
    return any(_equal(stored, value) for value in values)


def _comparable(stored: Any, operand: Any) -> bool:
    return _kind(stored) is _kind(operand) and _kind(stored) in (str, float)


def _kind(value: Any) -> type:
    if isinstance(value, bool):
        return bool
    return float if isinstance(value, int | float) else type(value)


def settle(where: Where, known: Mapping[str, Any], varying: Collection[str]) -> bool | dict[str, Any]:
    """Decide a condition for all chunks of a source as far as possible.

    Args:
        where: The condition in its normal form.
        known: Metadata shared by all chunks.
        varying: Keys that may differ; no chunk has any other key.

    Returns:
        True or False if ``known`` decides the condition for every chunk, else the remaining condition.
    """
    [(key, value)] = where.items()
    if key not in ("$and", "$or"):
        return dict(where) if key in varying else matches(where, known)
    decisive = key == "$or"  # one True decides $or, one False decides $and
    left = []
    for part in value:
        verdict = settle(part, known, varying)
        if verdict is decisive:
            return decisive
        if not isinstance(verdict, bool):
            left.append(verdict)
    if not left:
        return not decisive
    return left[0] if len(left) == 1 else {key: left}
