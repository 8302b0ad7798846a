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
    """The replacement of a version that is being built.

    Attributes:
        metadata: Metadata of the new version.
        replaced: Folder of the old version.
        state: `version_of` the old version when the rebuild began.
        folder: Folder of the new version; empty until it is created.
    """

    metadata: dict[str, Any]
    replaced: str
    state: int
    folder: str = ""


def check_there(folder: Path) -> Path:
    """Return the folder if it has a store, because opening it would create one.

    Raises:
        StoreCorruptError: The folder has no store.
    """
    if not local_exists(folder):
        raise StoreCorruptError(f"the store {str(folder)!r} is missing; index again, or restore it from a backup")
    return folder


def version_of(folder: Path) -> int:
    """Return a number that grows with every write to the store in a folder."""
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
        """Return the store if it is open and in this folder."""
        with self._guard:
            return self._store if self.folder == folder else None

    def make(self, folder: Path) -> LibraryStore:
        """Create a store, and protect it from cleanup by other processes."""
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
            if name and not local_exists(
                self.root / name
            ):  # deleted in the meantime: remove the files that closing wrote
                shutil.rmtree(self.root / name, ignore_errors=True)
        if making is not None:
            making.release()


class Collection:
    """A collection, as `create_collection` and `get_collection` return it.

    Threads may share it. It closes its files when it is garbage-collected.

    It follows the recorded version: after another process replaced the version, the next call reads the new one. A
    collection that is being recreated has a new version, which becomes visible when its first `add_chunks` is complete,
    or when its ``with`` block ends without an error. If the old chunks have changed in the meantime, it raises
    `StoreError`, and the old chunks remain.
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
        """The embedder of texts and queries."""
        return self._embedder or default_embedder()

    @property
    def metadata(self) -> dict[str, Any]:
        """The recorded metadata of the collection; during a rebuild, the future metadata."""
        return dict((self._rebuild or self._entry()).metadata)

    @property
    def is_rebuilt(self) -> bool:
        """Whether the collection is being recreated; the old version is still searched."""
        return self._rebuild is not None

    def count(self) -> int:
        """Count the chunks."""
        return self.read(lambda store: store.count(), 0)

    def read(self, use: Callable[[LibraryStore], Answer], empty: Answer) -> Answer:
        """Call a function with the store of the current version.

        If the version is replaced during the call, the function is called again with the new one.

        Args:
            use: The function.
            empty: Result for a collection that has never had chunks.

        Raises:
            CollectionNotFoundError: The collection was deleted.
            StoreError: The store cannot be read.
        """
        while True:
            folder, store = self._folder(), None
            if not folder:
                return empty
            try:
                store = self._opened.store(folder)
                answer = use(store)
            except (StoreError, OSError):
                # another process may be deleting the files, or a thread has opened the former version instead
                if folder == self._folder() and self._opened.present(folder) is store:
                    raise
            else:
                if folder == self._folder():
                    return answer

    def at(self, folder: str) -> LibraryStore | None:
        """Return the store of the version in this folder, without reading the record.

        If that version is not open, the record is read, and the store of the current version is returned.

        Args:
            folder: Folder of the version that was just read from the record.

        Returns:
            The store, or None if the collection has never had chunks.

        Raises:
            CollectionNotFoundError: The collection was deleted.
            StoreError: The store cannot be read.
        """
        present: LibraryStore | None = None
        return self._opened.present(folder) or self.read(lambda store: store, present)

    @contextmanager
    def writing(self) -> Iterator[LibraryStore]:
        """Yield the store with its write lock.

        The first version of a collection becomes visible after the block.
        """
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
        """Yield the store of the first version, and record it after the block."""
        folder = new_folder(self.root, self.name)
        with closing(open_local(folder)) as store:
            yield store
        put_entry(self.root, Entry(self.name, folder.name, self._entry().metadata))

    @contextmanager
    def _rebuilding(self, rebuild: Rebuild) -> Iterator[LibraryStore]:
        """Yield the store of the new version.

        After a failed write, a ``with`` block keeps the new version; without a block, the next write starts again.
        """
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
        """Update some values of the metadata."""
        with locked(self.root, self.name):
            if self._rebuild is not None:
                self._rebuild.metadata.update(metadata)
            else:
                entry = self._entry()
                put_entry(self.root, Entry(self.name, entry.folder, {**entry.metadata, **metadata}))

    def close(self) -> None:
        """Close the files, and discard an unfinished rebuild. Closing twice is harmless."""
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
        """Replace the recorded version by the new one. The caller holds the lock."""
        present = self._entry().folder
        if present != rebuild.replaced or version_of(self.root / present) != rebuild.state:
            raise StoreError(
                f"collection {self.name!r} was changed by another writer during the rebuild; the rebuild was "
                "discarded; call create_collection again"
            )
        self._opened.close()
        put_entry(self.root, Entry(self.name, folder, rebuild.metadata))
        self._rebuild = None  # last, so that concurrent readers find the new version in any case

    def _folder(self) -> str:
        rebuild = self._rebuild
        return self._entry().folder if rebuild is None else rebuild.folder

    def _entry(self) -> Entry:
        entry = read_entry(self.root, self.name)
        if entry is None:
            raise not_found(self.root, self.name)
        return entry


def check_collection(collection: object) -> None:
    """Raise `ConfigError` if the value is not a collection."""
    if not isinstance(collection, Collection):
        raise ConfigError(
            f"{shown(collection)} is not a collection; give a result of create_collection or get_collection"
        )


def not_found(root: Path, name: str) -> CollectionNotFoundError:
    """Return the error for an unknown collection."""
    known = [entry.name for entry in entries(root)]
    return CollectionNotFoundError(
        f"no collection {name!r} in {str(root)!r}{did_you_mean(name, known)}; there are {', '.join(known) or 'none'}"
    )
