"""A collection in hand: its name, its metadata, and the store that is its present version."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from ragistry.errors import CollectionNotFoundError, StoreError
from ragistry.library.contract_embedding import default_embedder
from ragistry.library.contract_entries import Entry, entries, locked, new_folder, put_entry, read_entry
from ragistry.library.contract_versions import check_there
from ragistry.protocols import Embedder
from ragistry.stores.database_file import FILE
from ragistry.stores.local import LocalStore
from ragistry.utils.forking import brief_lock
from ragistry.utils.suggest import did_you_mean

Answer = TypeVar("Answer")


class Collection:
    """What `create_collection` and `get_collection` return. Safe for threads; lets go of its files when collected.

    A collection in hand follows what is on record: when another process puts a new version in the place of the old,
    the next call sees the new one. One that rebuilds what is there already is different: it holds a version that
    nobody else sees until its first `add_chunks` is done; in a ``with`` block, until the block ends without an error.
    """

    def __init__(
        self, root: Path, name: str, embedder: Embedder | None = None, *, rebuilding: Mapping[str, Any] | None = None
    ) -> None:
        self.root = root
        self.name = name
        self._embedder = embedder
        self._new = None if rebuilding is None else dict(rebuilding)
        self._opened = _Opened(root)
        self._in_block = False
        weakref.finalize(self, self._opened.close)

    def __repr__(self) -> str:
        return f"<Collection {self.name!r} in {str(self.root)!r}>"

    @property
    def embedder(self) -> Embedder:
        """What its texts and queries are embedded with."""
        return self._embedder or default_embedder()

    @property
    def metadata(self) -> dict[str, Any]:
        """What is on record of the collection; of a rebuild, what will be."""
        return dict(self._entry().metadata if self._new is None else self._new)

    @property
    def is_rebuilt(self) -> bool:
        """Whether it is made again, and what was there is still served."""
        return self._new is not None

    def count(self) -> int:
        """How many chunks there are."""
        return self.read(lambda store: store.count(), 0)

    def read(self, use: Callable[[LocalStore], Answer], empty: Answer) -> Answer:
        """What ``use`` makes of the store; ``empty`` where there has been no chunk. Raises `CollectionNotFoundError`.

        Where the version is replaced while it is read, the new one is.
        """
        while True:
            folder, store = self._folder(), None
            if not folder:
                return empty
            try:
                store = self._opened.store(folder)
                answer = use(store)
            except (StoreError, OSError):  # its files may be on their way out, or a thread that knew the former version
                if folder == self._folder() and self._opened.present(folder) is store:  # opened that in its place
                    raise
            else:
                if folder == self._folder():
                    return answer

    def at(self, folder: str) -> LocalStore | None:
        """The store of a version that was just read from the record, which is not read again where it is open.

        None where there has been no chunk; of a version that is open no more, the one that took its place. Raises as
        `read` does.
        """
        present: LocalStore | None = None
        return self._opened.present(folder) or self.read(lambda store: store, present)

    @contextmanager
    def writing(self) -> Iterator[LocalStore]:
        """The store, to be written to by nobody else meanwhile; the first version is seen when the block is done."""
        with locked(self.root, self.name):
            folder = self._folder()
            first = not folder and self._new is None
            if first:
                self._new = self._entry().metadata
            try:
                yield self._opened.store(folder) if folder else self._opened.make(new_folder(self.root, self.name))
            except BaseException:
                if first:
                    self._new = None
                    self._opened.close()
                raise
            if self._new is not None and not self._in_block:
                self._publish()

    def update_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Put these values over those on record."""
        if self._new is not None:
            self._new.update(metadata)
            return
        with locked(self.root, self.name):
            entry = self._entry()
            put_entry(self.root, Entry(self.name, entry.folder, {**entry.metadata, **metadata}))

    def close(self) -> None:
        """Let go of the files; what was rebuilt but never put in place is gone. Closing twice is harmless."""
        self._opened.close()

    def __enter__(self) -> Self:
        self._in_block = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._in_block = False
        if kind is None and self._new is not None:
            with locked(self.root, self.name):
                self._publish()
        self.close()

    def _publish(self) -> None:
        """Put the version that was made in the place of the one on record. Call it `locked`."""
        folder = self._opened.folder if self._opened.made else ""
        self._opened.close()  # whole on the disk before anybody is told
        put_entry(self.root, Entry(self.name, folder, self._new or {}))
        self._new = None

    def _folder(self) -> str:
        if self._new is not None:
            return self._opened.folder if self._opened.made else ""
        return self._entry().folder

    def _entry(self) -> Entry:
        entry = read_entry(self.root, self.name)
        if entry is None:
            raise not_found(self.root, self.name)
        return entry


class _Opened:
    """The one store that a collection has open, and the folder that it is in."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = ""
        self.made = False
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
            self._store, self.folder, self.made = LocalStore(folder, exclusive=True), folder.name, True
            return self._store

    def close(self) -> None:
        with self._guard:
            self._close()

    def _close(self) -> None:
        store, name = self._store, self.folder
        self._store, self.folder, self.made = None, "", False
        if store is not None:
            store.close()
            if name and not (self.root / name / FILE).exists():  # it was deleted, and what closing wrote is nobody's
                shutil.rmtree(self.root / name, ignore_errors=True)


def not_found(root: Path, name: str) -> CollectionNotFoundError:
    """What is said of a collection that is not on record."""
    known = [entry.name for entry in entries(root)]
    return CollectionNotFoundError(
        f"no collection {name!r} in {str(root)!r}{did_you_mean(name, known)}; there are {', '.join(known) or 'none'}"
    )
