"""Cursors to continue an answer that was cut.

A cursor says only where the same call goes on. The call itself runs again, with its limits, from the other arguments,
so a forged cursor gives access to nothing more.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import fields
from hashlib import sha256
from typing import Any, TypeVar

from ragistry.tools.failures import CallError
from ragistry.utils.dataclass_json import from_json

P = TypeVar("P")
LONGEST = 10_000
"""Characters of a cursor that are read."""


def mark_of(*values: object) -> str:
    """Return a hash of values, such as the other arguments of a call."""
    return sha256(repr(values).encode(errors="surrogatepass")).hexdigest()[:16]


def write_cursor(position: Any, mark: str) -> str:
    """Write a cursor for `read_cursor`. ``position``: a dataclass of plain values."""
    values = [getattr(position, one.name) for one in fields(position)]
    return urlsafe_b64encode(json.dumps([mark, *values]).encode()).decode().rstrip("=")


def read_cursor(cursor: str | None, kind: type[P], mark: str) -> P:
    """Return the position of a cursor; without one, the beginning.

    Raises:
        CallError: It is not a cursor, or belongs to a call with another ``mark``.
    """
    if cursor is None:
        return kind()
    try:
        first, *values = json.loads(urlsafe_b64decode(cursor[:LONGEST] + "=="))
        names = [one.name for one in fields(kind)]  # type: ignore[arg-type] # a dataclass
        at = from_json(kind, dict(zip(names, values, strict=True)))
    except (ValueError, TypeError, RecursionError) as error:
        raise CallError(
            f"{cursor[:60]!r} is not a cursor; copy the cursor of the last answer, or leave it out"
        ) from error
    if first != mark:
        raise CallError(
            "the cursor belongs to other arguments, or the library has changed since; call again without it"
        )
    return at
