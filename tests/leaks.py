"""Fail the test that leaves a connection to an SQLite database open.

Python 3.13 warns about such connections by itself, but only when the garbage collector finds them, in a later test.
"""

from __future__ import annotations

import gc
import sqlite3
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest


class CheckedConnection(sqlite3.Connection):
    """A connection that must be closed before it is deleted."""

    open_connections = 0
    _is_open = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._count(is_open=True)

    def close(self) -> None:
        super().close()
        self._count(is_open=False)

    def __del__(self) -> None:
        if self._is_open:
            self._count(is_open=False)
            warnings.warn(f"unclosed database in {self!r}", ResourceWarning, stacklevel=1, source=self)

    def _count(self, *, is_open: bool) -> None:
        CheckedConnection.open_connections += is_open - self._is_open
        self._is_open = is_open


sqlite3.connect = partial(sqlite3.connect, factory=CheckedConnection)


def pytest_collection_finish() -> None:
    """Keep modules and collected tests out of the garbage collector, which would look through them again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _collect_open_connections() -> Iterator[None]:
    """Let the garbage collector find the connections that the test opened and neither closed nor kept."""
    before = CheckedConnection.open_connections
    yield
    if CheckedConnection.open_connections > before:
        gc.collect()
