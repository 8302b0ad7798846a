"""Where an answer was cut, as a word that the next call brings back.

A cursor says only how far to skip in the same search: the search itself is made anew, with its limits, from the other
arguments. So a forged one reaches nothing that the call would not have reached without it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from ragistry.tools.failures import CallError
from ragistry.types import Document

_FORM = re.compile(r"([0-9]{1,4})\.([0-9]{1,9})\.([0-9a-f]{16})")


class Position(NamedTuple):
    """The document of the ranking that comes next (from 0), and the character of its visible text."""

    rank: int = 0
    offset: int = 0


def fingerprint(query: str, collection: str | None, documents: Sequence[Document]) -> str:
    """What tells one answer from another: the question, and what was found, in its order."""
    digest = sha256(repr((query, collection)).encode())
    for document in documents:
        digest.update(repr((document.id, document.content)).encode())
    return digest.hexdigest()[:16]


def write_cursor(position: Position, fingerprint: str) -> str:
    """A cursor for `read_cursor`."""
    return f"{position.rank}.{position.offset}.{fingerprint}"


def check_cursor(cursor: str) -> str:
    """The cursor itself; raises `CallError` where it does not have the form of one."""
    if not _FORM.fullmatch(cursor):
        raise CallError(f"{cursor[:60]!r} is not a cursor; copy it from the last answer, or leave it out")
    return cursor


def read_cursor(cursor: str, fingerprint: str, documents: Sequence[Document]) -> Position:
    """Where to go on in these documents; raises `CallError` where the cursor belongs to another answer."""
    match = _FORM.fullmatch(check_cursor(cursor))
    assert match is not None
    rank, offset = int(match[1]), int(match[2])
    if match[3] != fingerprint or rank >= len(documents):
        raise CallError(
            f"the cursor {cursor!r} belongs to another search, or the library has changed since; "
            "search again without it"
        )
    return Position(rank, offset)
