"""Cursors to continue an answer that was cut.

A cursor says only how far to skip in the same search. The search itself runs again, with its limits, from the other
arguments, so a forged cursor gives access to nothing more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from ragistry.tools.failures import CallError
from ragistry.types import Document, Where

_FORM = re.compile(r"([0-9]{1,4})\.([0-9]{1,9})\.([0-9a-f]{16})")


class Position(NamedTuple):
    """The next document of a ranking (from 0), and the next character of its visible text."""

    rank: int = 0
    offset: int = 0


def fingerprint(query: str, collection: str | None, documents: Sequence[Document], where: Where | None = None) -> str:
    """Return a hash of the search and the found documents in their order."""
    digest = sha256(repr((query, collection, where)).encode())
    for document in documents:
        digest.update(repr((document.id, document.content)).encode())
    return digest.hexdigest()[:16]


def write_cursor(position: Position, fingerprint: str) -> str:
    """Write a cursor for `read_cursor`."""
    return f"{position.rank}.{position.offset}.{fingerprint}"


def check_cursor(cursor: str) -> str:
    """Return the cursor. Raises `CallError` if its format is wrong."""
    if not _FORM.fullmatch(cursor):
        raise CallError(f"{cursor[:60]!r} is not a cursor; copy the cursor of the last answer, or leave it out")
    return cursor


def read_cursor(cursor: str, fingerprint: str, documents: Sequence[Document]) -> Position:
    """Return the position in these documents. Raises `CallError` if the cursor is of another answer."""
    match = _FORM.fullmatch(check_cursor(cursor))
    assert match is not None
    rank, offset = int(match[1]), int(match[2])
    if match[3] != fingerprint or rank >= len(documents):
        raise CallError(
            f"the cursor {cursor!r} belongs to another search, or the library has changed since; "
            "search again without it"
        )
    return Position(rank, offset)
