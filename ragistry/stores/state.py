"""How one state of a `LocalStore` is seen, and how it is changed into another."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ragistry.errors import StoreError, StoreLockedError
from ragistry.stores.catalog import Catalog
from ragistry.stores.database import Database
from ragistry.stores.lock import hold, is_kept, release, users
from ragistry.stores.writing import touch

REMEDY = "end that process, or wait until it is done; meanwhile any number of others may search"

_turns: dict[Path, threading.RLock] = {}
"""Stores of one process on one folder share the lock of the folder, so among themselves they take turns."""
_exclusive: set[Path] = set()
if hasattr(os, "register_at_fork"):  # in the child, a turn that another thread had would never end
    os.register_at_fork(after_in_child=_turns.clear)
    os.register_at_fork(after_in_child=_exclusive.clear)


class State:
    """The database of a folder, the catalog of what it holds, and the right to change it.

    ``exclusive``: the right is kept until `close`. Safe for threads.
    """

    def __init__(self, folder: Path, *, exclusive: bool, lock_timeout: float) -> None:
        self.folder = folder
        self.changed = False
        self._exclusive = exclusive
        self._lock_timeout = lock_timeout
        self._lock_file = folder / "store"
        self.last_catalog = Catalog()
        self._closed = False
        self.database = Database(folder)
        try:
            self.database.migrate(self.locked)
            if exclusive:
                self._keep()
        except BaseException:
            self.database.close()
            raise

    def _keep(self) -> None:
        self._check_alone()  # at once: a turn may be long in coming
        with self._turn():
            self._check_alone()
            others = users(self._lock_file)
            try:
                self._hold(self._lock_timeout)
                _exclusive.add(self.folder)
            except BaseException:  # Ctrl-C may come between the two
                _exclusive.discard(self.folder)
                release(self._lock_file, to=others)
                raise

    def _check_alone(self) -> None:
        if self.folder in _exclusive:
            raise StoreLockedError(
                f"the store at {str(self.folder)!r} is open in this process already, by one that alone may write; "
                "use that one, several threads may share it, or close it first"
            )

    def _turn(self) -> threading.RLock:
        """Held around every change of how many have the folder's lock; taken before it, never the other way round."""
        return _turns.setdefault(self.folder, threading.RLock())

    def _hold(self, wait: float) -> None:
        hold(self._lock_file, wait, store=self.folder, remedy=REMEDY, keep=self._exclusive)

    @contextmanager
    def read(self) -> Iterator[tuple[sqlite3.Connection, Catalog]]:
        """One state of the store, and the catalog of it."""
        self._check_open()
        with self.database.snapshot() as connection:
            yield connection, self.catalog(connection)

    @contextmanager
    def lasting(self) -> Iterator[tuple[sqlite3.Connection, Catalog]]:
        """The same for one who takes long, and does other things between."""
        self._check_open()
        with self.database.lasting() as connection:
            yield connection, self.catalog(connection)

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A transaction, by the holder of the store's lock: all of it happens or nothing."""
        with self.locked(), self.database.write() as connection:
            yield connection
            touch(connection)
            self.changed = True

    def catalog(self, connection: sqlite3.Connection) -> Catalog:
        """The catalog of what the connection sees; a transaction asks for it before it changes anything."""
        self.last_catalog = catalog = self.last_catalog.refreshed(connection)
        return catalog

    @contextmanager
    def locked(self, *, to_search: bool = False) -> Iterator[None]:
        """The right to write, for one thread of one process; raises `StoreLockedError` where another has it.

        ``to_search``: wait for no process that keeps it.
        """
        self._check_open()
        self.database.check_file()  # before a lock is made in a folder that was removed
        turn = self._turn()
        is_within = turn._is_owned()  # type: ignore[attr-defined]  # as `threading.Condition` asks it
        with turn:
            # From without nobody has it but one that keeps it: what Ctrl-C left behind earlier is given back now.
            others = users(self._lock_file) if is_within else int(self.folder in _exclusive)
            try:
                self._hold(0 if to_search and is_kept(self._lock_file) else self._lock_timeout)
                yield
            finally:  # also where Ctrl-C came before it was known whether the lock is held
                release(self._lock_file, to=others)

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Let go of the database and of the right to write."""
        self._closed = True
        self.database.close()
        if self._exclusive:
            with self._turn():
                _exclusive.discard(self.folder)
                release(self._lock_file)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"{str(self.folder)!r}: the store is closed; open it again")
