"""An open collection: its name, its metadata, and the store of its current version."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self, TypeVar

from filelock import FileLock

from ragistry.errors import CollectionNotFoundError, ConfigError, StoreCorruptError, StoreError
from ragistry.library.contract.embedding import default_embedder
from ragistry.library.contract.entries import MAKING, Entry, entries, locked, new_folder, put_entry, read_entry
from ragistry.protocols import Embedder, LibraryStore
from ragistry.stores.registry import local_exists, open_local
from ragistry.utils.wording import did_you_mean, shown

Answer = TypeVar("Answer")


@dataclass(slots=True)
class Rebuild:
    """The replacement of a version: its metadata, the old version's folder and state, and its own folder.

    ``folder`` is "" until it is created.
    """

    metadata: dict[str, Any]
    replaced: str
    state: int
    folder: str = ""


def check_there(folder: Path) -> Path:
    """The folder; raises `StoreCorruptError` if it has no store, because opening it would create one."""
    if not local_exists(folder):
        raise StoreCorruptError(f"the store {str(folder)!r} is gone; index again, or put it back from a backup")
    return folder


def version_of(folder: Path) -> int:
    """A number that grows with every write to the store in a folder."""
    with closing(open_local(check_there(folder))) as store:
        return store.version()


class Opened:
    """The open store of a collection, and the name of its folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = ""
        self._store: LibraryStore | None = None
        self._making: FileLock | None = None
        self._guard = Lock()

    def store(self, folder: str) -> LibraryStore:
        with self._guard:
            if self._store is None or self.folder != folder:
                self._close()
                self._store, self.folder = open_local(check_there(self.root / folder)), folder
            return self._store

    def present(self, folder: str) -> LibraryStore | None:
        """The store, if it is the one in this folder."""
        with self._guard:
            return self._store if self.folder == folder else None

    def make(self, folder: Path) -> LibraryStore:
        """A new store. While it is open, other processes do not remove it as a leftover."""
        with self._guard:
            self._close()
            folder.mkdir()
            self._making = FileLock(folder / MAKING, thread_local=False)
            self._making.acquire()
            self._store, self.folder = open_local(folder), folder.name
            return self._store

    def close(self) -> None:
        with self._guard:
            self._close()

    def _close(self) -> None:
        store, making, name = self._store, self._making, self.folder
        self._store, self._making, self.folder = None, None, ""
        if store is not None:
            store.close()
            if name and not local_exists(self.root / name):  # deleted meanwhile: remove what closing wrote
                shutil.rmtree(self.root / name, ignore_errors=True)
        if making is not None:
            making.release()


class Collection:
    """The result of `create_collection` and `get_collection`. Thread-safe; closes its files when garbage-collected.

    It follows the recorded version: after another process replaces the version, the next call sees the new one. A
    collection that is being recreated has a version that others do not see until its first `add_chunks` is complete,
    or until its ``with`` block ends without an error. If the old chunks have changed since it began, it raises
    `StoreError` and they stay.
    """

    def __init__(
        self, root: Path, name: str, embedder: Embedder | None = None, *, rebuild: Rebuild | None = None
    ) -> None:
        self.root = root
        self.name = name
        self._embedder = embedder
        self._rebuild = rebuild
        self._opened = Opened(root)
        self._in_block = False
        weakref.finalize(self, self._opened.close)

    def __repr__(self) -> str:
        return f"<Collection {self.name!r} in {str(self.root)!r}>"

    @property
    def embedder(self) -> Embedder:
        """The embedder of its texts and queries."""
        return self._embedder or default_embedder()

    @property
    def metadata(self) -> dict[str, Any]:
        """The recorded metadata of the collection; during a rebuild, the future metadata."""
        return dict((self._rebuild or self._entry()).metadata)

    @property
    def is_rebuilt(self) -> bool:
        """Whether it is being recreated while the old version is still searched."""
        return self._rebuild is not None

    def count(self) -> int:
        """How many chunks there are."""
        return self.read(lambda store: store.count(), 0)

    def read(self, use: Callable[[LibraryStore], Answer], empty: Answer) -> Answer:
        """Call ``use`` with the store; ``empty`` if there have been no chunks. Raises `CollectionNotFoundError`.

        If the version is replaced during the read, the new one is read.
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

    def at(self, folder: str) -> LibraryStore | None:
        """The store of a version that was just read from the record, which is not read again where it is open.

        None if there have been no chunks; the replacement of a version that is no longer open. Raises as `read` does.
        """
        present: LibraryStore | None = None
        return self._opened.present(folder) or self.read(lambda store: store, present)

    @contextmanager
    def writing(self) -> Iterator[LibraryStore]:
        """The store with its write lock; others see a first version when the block ends."""
        with locked(self.root, self.name):
            if self._rebuild is not None:
                with self._rebuilding(self._rebuild) as store:
                    yield store
            elif folder := self._entry().folder:
                yield self._opened.store(folder)
            else:
                with self._first() as store:
                    yield store

    @contextmanager
    def _first(self) -> Iterator[LibraryStore]:
        """The first version; on record as soon as it has been written to, so that others add to it and not beside."""
        folder = new_folder(self.root, self.name)
        with closing(open_local(folder)) as store:
            yield store
        put_entry(self.root, Entry(self.name, folder.name, self._entry().metadata))

    @contextmanager
    def _rebuilding(self, rebuild: Rebuild) -> Iterator[LibraryStore]:
        """The new version; in a block, it is kept after a failed write, else the next write starts again."""
        try:
            if rebuild.folder:
                store = self._opened.store(rebuild.folder)
            else:
                store = self._opened.make(new_folder(self.root, self.name))
            rebuild.folder = self._opened.folder
            yield store
            if not self._in_block:
                self._publish(rebuild, rebuild.folder)
        except BaseException:
            if not self._in_block:
                self.close()
            raise

    def update_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Update the recorded values."""
        with locked(self.root, self.name):
            if self._rebuild is not None:
                self._rebuild.metadata.update(metadata)
            else:
                entry = self._entry()
                put_entry(self.root, Entry(self.name, entry.folder, {**entry.metadata, **metadata}))

    def close(self) -> None:
        """Close the files; an unfinished rebuild is discarded. Closing twice is harmless."""
        rebuild = self._rebuild
        if rebuild is not None:
            rebuild.folder = ""
        self._opened.close()

    def __enter__(self) -> Self:
        self._in_block = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._in_block = False
        try:
            if kind is None and self._rebuild is not None:
                with locked(self.root, self.name):
                    if self._rebuild is not None:  # another thread may have been faster
                        self._publish(self._rebuild, self._rebuild.folder)
        finally:
            self.close()

    def _publish(self, rebuild: Rebuild, folder: str) -> None:
        """Replace the recorded version by the new one. Call it `locked`."""
        present = self._entry().folder
        if present != rebuild.replaced or version_of(self.root / present) != rebuild.state:
            raise StoreError(
                f"collection {self.name!r} was written by another while it was made again; what is there stays, and "
                "what was to take its place is gone; begin again with create_collection"
            )
        self._opened.close()
        put_entry(self.root, Entry(self.name, folder, rebuild.metadata))
        self._rebuild = None  # last, so that who reads meanwhile has the new version, by one name or the other

    def _folder(self) -> str:
        rebuild = self._rebuild
        return self._entry().folder if rebuild is None else rebuild.folder

    def _entry(self) -> Entry:
        entry = read_entry(self.root, self.name)
        if entry is None:
            raise not_found(self.root, self.name)
        return entry


def check_collection(collection: object) -> None:
    """Raise `ConfigError` for values that are not collections."""
    if not isinstance(collection, Collection):
        raise ConfigError(
            f"the collection is {shown(collection)}; give what create_collection or get_collection returned"
        )


def not_found(root: Path, name: str) -> CollectionNotFoundError:
    """The error for an unknown collection."""
    known = [entry.name for entry in entries(root)]
    return CollectionNotFoundError(
        f"no collection {name!r} in {str(root)!r}{did_you_mean(name, known)}; there are {', '.join(known) or 'none'}"
    )
