"""The store that a collection of the contract has open."""

from __future__ import annotations

import shutil
from pathlib import Path

from ragistry.library.contract_versions import check_there
from ragistry.stores.database_file import FILE
from ragistry.stores.local import LocalStore
from ragistry.utils.forking import brief_lock


class Opened:
    """The one store that a collection has open, and the folder that it is in."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = ""
        self._store: LocalStore | None = None
        self._guard = brief_lock()

    def store(self, folder: str) -> LocalStore:
        with self._guard:
            if self._store is None or self.folder != folder:
                self._close()
                self._store, self.folder = LocalStore(check_there(self.root / folder)), folder
            return self._store

    def present(self, folder: str) -> LocalStore | None:
        """The store, if it is the one in this folder."""
        with self._guard:
            return self._store if self.folder == folder else None

    def make(self, folder: Path) -> LocalStore:
        """A new store; as long as it is open nobody takes it for what a killed process left."""
        with self._guard:
            self._close()
            self._store, self.folder = LocalStore(folder, exclusive=True), folder.name
            return self._store

    def close(self) -> None:
        with self._guard:
            self._close()

    def _close(self) -> None:
        store, name = self._store, self.folder
        self._store, self.folder = None, ""
        if store is not None:
            store.close()
            if name and not (self.root / name / FILE).exists():  # it was deleted, and what closing wrote is nobody's
                shutil.rmtree(self.root / name, ignore_errors=True)
