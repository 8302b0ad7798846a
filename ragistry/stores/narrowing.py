"""A condition on metadata in SQL: what its columns and their indexes answer, and what the text of the rest rules out.

It meets the rows of chunks whose sources differ in the keys in question. A column holds the values of its own kind
only, and NULL for any other and for none: numbers and text of ``page`` and ``section``, truth values of ``has_code``.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from ragistry.stores.writing import COLUMNS

LONGEST = 5_000
"""Characters of SQL, which keep it below SQLite's limits: 1,000 parts in each other, 32,766 values."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ORDER = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_OF_COLUMNS = ("$eq", "$in", "$ne", "$nin", *_ORDER)


class Narrowing(NamedTuple):
    """SQL that is true of every chunk that meets a condition; where it is ``exact``, of no other.

    ``column``: the one whose index answers the condition alone, so that no row need be looked at.
    """

    sql: str
    values: tuple[Any, ...] = ()
    exact: bool = False
    column: str = ""


EVERY = Narrowing("1")


def narrowed(where: dict[str, Any]) -> Narrowing:
    """The SQL for a condition in its normal form."""
    found = _narrowed(where)
    return found if len(found.sql) <= LONGEST else EVERY


def _narrowed(where: dict[str, Any]) -> Narrowing:
    [(key, value)] = where.items()
    if key in ("$and", "$or"):
        return _joined(key, [_narrowed(part) for part in value])
    [(op, operand)] = value.items()
    operands = operand if isinstance(operand, list) else [operand]
    # Truth values are stored as numbers: where another kind stands, the column could not tell the two.
    if key in COLUMNS and op in _OF_COLUMNS and all(isinstance(one, bool) == (key == "has_code") for one in operands):
        return _on_column(key, op, operands)
    if op in ("$contains", "$not_contains") and _is_told_by_quotes(operand) and _PLAIN.fullmatch(key):
        found = _in_list(key, operand)
        return found if op == "$contains" else found._replace(sql=f"({found.sql}) IS NOT 1")
    if op in ("$eq", "$in", "$contains") and all(isinstance(one, str) for one in operands):
        return _in_writing(operands)
    return EVERY


def _joined(join: str, parts: list[Narrowing]) -> Narrowing:
    telling = [part for part in parts if part != EVERY]
    if not telling or (join == "$or" and telling != parts):
        return EVERY
    sql = (" AND " if join == "$and" else " OR ").join(part.sql for part in telling)
    values = tuple(value for part in telling for value in part.values)
    exact = all(part.exact for part in parts)
    columns = {part.column for part in parts} if exact and join == "$and" else set()
    return Narrowing(f"({sql})", values, exact, columns.pop() if len(columns) == 1 else "")


def _on_column(key: str, op: str, operands: list[Any]) -> Narrowing:
    marks = ",".join("?" * len(operands))
    if op in _ORDER:  # in SQLite, a number is less than any text, and text is ordered by its bytes, as by code points
        kind = f"{key} >= ''" if isinstance(operands[0], str) else f"{key} < ''"
        sql = f"({key} {_ORDER[op]} ? AND {kind})"
    elif op in ("$eq", "$in"):
        sql = f"{key} IN ({marks})"
    else:
        sql = f"({key} IS NULL OR {key} NOT IN ({marks}))"
    return Narrowing(sql, tuple(operands), exact=True, column="" if op in ("$ne", "$nin") else key)


def _is_told_by_quotes(operand: Any) -> bool:
    """What follows a quotation mark in a list is a comma, a bracket, or the text that it begins."""
    return isinstance(operand, str) and operand[:1] not in ("", ",", "]")


def _in_list(key: str, operand: str) -> Narrowing:
    """The text stands in the list, as it is written in JSON: after a quotation mark that is no end of another."""
    path, written = f"$.{key}", json.dumps(operand, ensure_ascii=False)
    inside = "instr(json_extract(own, ?), ?)"
    sql = f"CASE WHEN instr(own, ?) THEN json_type(own, ?) = 'array' AND ({inside} OR {inside}) ELSE 0 END"
    return Narrowing(sql, (written, path, path, f"[{written}", path, f",{written}"), exact=True)


def _in_writing(operands: list[str]) -> Narrowing:
    """Text stands in a chunk's own metadata, or in one of their lists, as it is written in JSON."""
    sql = " OR ".join(["instr(own, ?)"] * len(operands)) or "0"
    return Narrowing(f"({sql})", tuple(json.dumps(one, ensure_ascii=False) for one in operands))
