"""Reads from a `LocalStore`'s database: in a snapshot of the caller, or followed by a read that tells the state."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragistry.stores.catalog import Catalog, state_of
from ragistry.stores.row_checksums import Damaged, chunk_checksum, damaged_chunk, text_hash
from ragistry.types import Document
from ragistry.utils.chunk_checks import id_problem

Keys = NDArray[np.int64]
CHUNK = "key, id, source, text_hash, own, checksum"
"""The columns of a chunk that tell whether they are what was written."""
AT_ONCE = 10_000
FEW = 1_000
"""So many values are better given one by one than as JSON, for which SQLite needs some 30 µs more."""
_parsed = json.JSONDecoder().raw_decode
"""`json.loads` without its search for blanks around."""


class Outdated(Exception):  # noqa: N818
    """The store was written to since a catalog was read."""


def contents(
    connection: sqlite3.Connection, catalog: Catalog, keys: Sequence[int], *, checked: bool = False
) -> list[tuple[int, str, str, dict[str, Any]]]:
    """Of each of these keys that is stored: the key, the chunk's id, its text, its metadata.

    A text is always what was written; the rest too where it is ``checked``, for which a search is not to wait. Raises
    `Outdated` where the catalog is that of another state, which outside of a snapshot may be.
    """
    found = []
    state = str(catalog.state)
    for page in pages(keys, FEW):
        rows = connection.execute(_contents(len(page)), (*page, state)).fetchall()
        if len(rows) < len(page):
            _refuse_lost(connection, catalog, set(page).difference([row[0] for row in rows]))
        for (key, id, source, hash, own, checksum, text), read in zip(rows, _owns(rows), strict=True):
            if text_hash(text) != hash or (checked and chunk_checksum(key, id, source, hash, own) != checksum):
                raise damaged_chunk(id)
            found.append((key, id, text, catalog.group(source).metadata(read)))
    return found


@cache
def _contents(keys: int) -> str:
    # Joined to a list of rows, which are looked up as they come: what stands after IN is put into a table first.
    rows = ",".join(["(?)"] * keys)
    return (
        f"SELECT {CHUNK}, text FROM (VALUES {rows}) AS wanted CROSS JOIN chunks ON key = wanted.column1 "
        "WHERE (SELECT value FROM meta WHERE key = 'state') = ?"
    )


def _owns(rows: list[Any]) -> list[dict[str, Any]]:
    """What the fifth column of each row holds."""
    try:
        owns: list[Any] = _parsed(f"[{','.join([row[4] for row in rows])}]")[0]  # all at once takes half as long
    except (ValueError, RecursionError) as error:
        raise Damaged("the metadata of a chunk cannot be read") from error
    if [*map(type, owns)] != [dict] * len(rows):
        raise Damaged("the metadata of a chunk are not what was written")
    return owns


def documents(connection: sqlite3.Connection, catalog: Catalog, keys: Sequence[int]) -> list[Document]:
    """The chunks of these keys, in their order."""
    read = contents(connection, catalog, keys, checked=True)
    found = {key: Document(text, metadata, 0.0, id) for key, id, text, metadata in read}
    return [found[key] for key in keys if key in found]


def documents_of(connection: sqlite3.Connection, catalog: Catalog, ids: Sequence[str]) -> list[Document]:
    """The chunks of these ids that are stored, in their order."""
    keys = keys_of(connection, ids)
    found = {document.id: document for document in documents(connection, catalog, list(keys.values()))}
    if found.keys() != keys.keys():
        raise Damaged("the index of ids leads to other chunks")
    return [found[id] for id in ids if id in found]


def _refuse_lost(connection: sqlite3.Connection, catalog: Catalog, keys: set[int]) -> None:
    """Raise `Damaged` if a source has one of these keys, of which there are no chunks, else maybe `Outdated`."""
    if state_of(connection) != catalog.state:
        raise Outdated
    for key in keys:
        if group := catalog.group_at(key):
            raise Damaged(f"a chunk of {group.name} is gone")


def keys_of(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, int]:
    """The key of each id that is stored; what could not be one is none."""
    found: dict[str, int] = {}
    # One by one: SQLite's JSON cuts a text where it holds a NUL, and what is left may be the id of another chunk.
    for page in pages([id for id in ids if not id_problem(id)], FEW):
        found.update(connection.execute(f"SELECT id, key FROM chunks WHERE id IN ({marks(page)})", page))
    return found


def marks(page: Sequence[Any]) -> str:
    """As many places in a statement."""
    return ",".join("?" * len(page))


def pages(items: Sequence[Any], at_once: int = AT_ONCE) -> Iterable[Sequence[Any]]:
    """The items, so many at once; a few as they are."""
    if 0 < len(items) <= at_once:
        return (items,)
    return [items[start : start + at_once] for start in range(0, len(items), at_once)]
