"""A search with an index, which is brought up first where it does not hold what the database does."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from itertools import count
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ragistry.errors import StoreCorruptError, StoreError, StoreLockedError
from ragistry.stores.catalog import Catalog
from ragistry.stores.reading import Keys
from ragistry.stores.state import State
from ragistry.stores.upkeep import I, Upkeep
from ragistry.trace import degraded

Found = tuple[Keys, NDArray[np.float32]]
"""Keys and their scores."""
NOTHING: Found = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
Answer = TypeVar("Answer")

ATTEMPTS = 4
"""How often a search is made anew because the store was written to between its looks at the database and an index.
After these it keeps writers out."""


class _Again(Exception):  # noqa: N818
    """A search has to be made anew, with an index that is brought up; the text says what broke in it, if anything."""


def tried(state: State, keeper: Upkeep[I], index: I | None, search: Callable[[I | None, bool], Answer]) -> Answer:
    """What ``search`` finds with the index as it is, if that will do, else when it is brought up.

    ``search`` takes an index and whether this is the last attempt, and asks the index through `asked`.
    For an index to be brought up nobody waits inside of a snapshot, since a writer may wait for that.
    """
    for attempt in count(1):
        try:
            return search(index, False)
        except _Again as again:
            broken = str(again)
        try:
            with state.locked(to_search=True):
                index = keeper.mended(index, broken)
                if attempt == ATTEMPTS:
                    return search(index, True)
        except StoreLockedError:
            degraded("another process is writing; what it wrote last is not searched by words; try again")
            return search(index, True)
        except StoreError as error:
            index = None if isinstance(error, StoreCorruptError) or keeper.unfit() else keeper.opened()
            if index is None:
                raise
            degraded(f"what was written last is not in {keeper.folder.name!r}, which cannot be brought up: {error}")
            return search(index, True)
    raise AssertionError


def asked(
    keeper: Upkeep[I],
    index: I | None,
    ask: Callable[[I], Found],
    connection: sqlite3.Connection,
    catalog: Catalog,
    final: bool,
) -> Found:
    """What an index finds; `_Again` where it is not there, fails, or does not hold what the connection sees."""
    if index is None:
        if final:
            return NOTHING
        raise _Again
    try:
        found = ask(index)
    except StoreError as error:
        if final:
            raise
        raise _Again(str(error)) from error
    if not final and not keeper.is_of(connection, catalog.state):
        raise _Again
    return found
