"""An open collection: its name, its metadata, and the store of its current version."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ragistry.errors import StoreCorruptError, StoreError
from ragistry.library.contract.embedding import default_embedder, patient
from ragistry.library.contract.entries import RepositoryEntry, entry_lock, existing_entry, new_folder, put_entry
from ragistry.protocols import Embedder, LibraryStore
from ragistry.stores.registry import local_exists, open_local

if TYPE_CHECKING:
    from ragistry.stores.local import LocalStore

Answer = TypeVar("Answer")


@dataclass(slots=True)
class Rebuild:
    """A version that is being filled, and the one that it replaces.

    Attributes:
        metadata: Metadata of the new version.
        replaced: Folder of the old version; empty for a collection that has never had chunks.
        state: `state_of` the old version when the rebuild began.
        folder: Folder of the new version; empty until it is created.
    """

    metadata: dict[str, Any]
    replaced: str = ""
    state: int = 0
    folder: str = ""


def open_version(folder: Path) -> LocalStore:
    """Open the store of a version.

    Raises:
        StoreCorruptError: The folder has no store; opening it would create one.
    """
    if not local_exists(folder):
        raise StoreCorruptError(f"the store {str(folder)!r} is missing; index again, or restore it from a backup")
    return open_local(folder)


def state_of(folder: Path) -> int:
    """Return a number that grows with every write to a version."""
    with closing(open_version(folder)) as store:
        return store.version()


class OpenVersion:
    """The open store of a collection, apart from it, so that it can be closed after the collection is gone."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = ""
        self._store: LibraryStore | None = None
        self._guard = RLock()

    def store(self, folder: str, *, is_new: bool = False) -> LibraryStore:
        """Return the store in a folder. A new one keeps its lock, which protects it from cleanup by other processes."""
        with self._guard:
            if self._store is None or self.folder != folder:
                self.close()
                place = self.root / folder
                self._store = open_local(place, exclusive=True) if is_new else open_version(place)
                self.folder = folder
            return self._store

    def present(self, folder: str) -> LibraryStore | None:
        """Return the store if it is open and in this folder."""
        with self._guard:
            return self._store if self.folder == folder else None

    def close(self) -> None:
        with self._guard:
            store, place, self._store, self.folder = self._store, self.root / self.folder, None, ""
            if store is not None:
                store.close()
                if not local_exists(place):  # deleted in the meantime: remove the files that closing wrote
                    shutil.rmtree(place, ignore_errors=True)


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
        self._opened = OpenVersion(root)
        self._in_block = False
        weakref.finalize(self, self._opened.close)

    def __repr__(self) -> str:
        return f"<Collection {self.name!r} in {str(self.root)!r}>"

    @property
    def embedder(self) -> Embedder:
        """The embedder of texts and queries."""
        return patient(self._embedder or default_embedder())

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

    @contextmanager
    def writing(self) -> Iterator[LibraryStore]:
        """Yield the store with its write lock.

        The first version of a collection becomes visible after the block. After a failed write, a ``with`` block keeps
        the new version of a rebuild; without a block, the next write starts again.
        """
        with entry_lock(self.root, self.name):
            entry, rebuild = self._entry(), self._rebuild
            if rebuild is None and entry.folder:
                yield self._opened.store(entry.folder)
                return
            building = rebuild or Rebuild(entry.metadata)
            waits = self._in_block and building is rebuild
            try:
                folder = building.folder or new_folder(self.root, self.name).name
                store = self._opened.store(folder, is_new=not building.folder)
                building.folder = folder
                yield store
                if not waits:
                    self._publish(building)
            except BaseException:
                if not waits:
                    self.close()
                raise

    def _publish(self, rebuild: Rebuild) -> None:
        """Replace the recorded version by the new one. The caller holds the lock."""
        replaced = self._entry().folder
        if replaced != rebuild.replaced or (replaced and state_of(self.root / replaced) != rebuild.state):
            raise StoreError(
                f"collection {self.name!r} was changed by another writer during the rebuild; the rebuild was "
                "discarded; call create_collection again"
            )
        self._opened.close()
        put_entry(self.root, RepositoryEntry(self.name, rebuild.folder, rebuild.metadata))
        self._rebuild = None  # last, so that concurrent readers find the new version in any case

    def update_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Update some values of the metadata."""
        with entry_lock(self.root, self.name):
            if self._rebuild is not None:
                self._rebuild.metadata.update(metadata)
            else:
                entry = self._entry()
                put_entry(self.root, replace(entry, metadata={**entry.metadata, **metadata}))

    def close(self) -> None:
        """Close the files, and discard an unfinished rebuild. Closing twice is harmless."""
        if rebuild := self._rebuild:
            rebuild.folder = ""
        self._opened.close()

    def __enter__(self) -> Self:
        self._in_block = True
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._in_block = False
        try:
            if kind is None and self._rebuild is not None:
                with entry_lock(self.root, self.name):
                    if rebuild := self._rebuild:  # another thread may have been faster
                        self._publish(rebuild)
        finally:
            self.close()

    def _folder(self) -> str:
        rebuild = self._rebuild
        return self._entry().folder if rebuild is None else rebuild.folder

    def _entry(self) -> RepositoryEntry:
        return existing_entry(self.root, self.name)
