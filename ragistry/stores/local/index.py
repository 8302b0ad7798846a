"""Common parts of derived indexes: when one is valid, how it is updated and rebuilt.

The folder of an index has a stamp: the key and the removal up to which the index follows the database, checksums of its
files, and a random mark that the database records too. With a mark of another database, a wrong checksum or another
format, the index is deleted unopened and built again. Files change such that the last stamp stays valid until the next
one replaces it, so a killed process leaves a valid index.

A search uses a view of the index. Afterwards it checks that no removal was applied that its snapshot of the database
does not contain. An index may lag behind the database, but must never be ahead of a search.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock
from time import time_ns
from typing import Any, Generic, Protocol, TypeVar
from uuid import uuid4

from ragistry.errors import StoreError
from ragistry.stores.local.database import read_head
from ragistry.stores.lock import WriterLock

log = logging.getLogger(__name__)

STAMP = "stamp.json"
UNFINISHED = "unfinished"
"""A file that exists while a stamped index is changed, so that what a killed writer leaves is not taken for damage."""
MISSING = "missing"
Signature = tuple[int, int, int]
Files = dict[str, Any]


class Stale(Exception):  # noqa: N818
    """The index cannot be used for this snapshot, with the reason. ``broken``: its files are damaged."""

    def __init__(self, reason: str, *, broken: bool = False) -> None:
        super().__init__(reason)
        self.broken = broken


class IndexDatabase(Protocol):
    """The database that an index is derived from; the lock protects the files of the index."""

    @property
    def lock(self) -> WriterLock: ...
    def read(self) -> AbstractContextManager[Any]: ...
    def write(self) -> AbstractContextManager[Any]: ...


class SnapshotPosition(Protocol):
    """The position of a database snapshot: see `Stamp`."""

    @property
    def version(self) -> int: ...
    @property
    def generation(self) -> int: ...
    @property
    def next_key(self) -> int: ...
    @property
    def removed(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Stamp:
    """The description of an index. ``kind``, ``generation``: its settings and its version of the vectors.

    ``next_key``, ``removed``: the position up to which it follows the database.

    ``mark``: also recorded in the database. ``before``: the previously recorded mark, at the ``version`` of the store.
    ``files``: what the index needs to know about its files.
    """

    kind: dict[str, Any]
    generation: int
    mark: str
    before: str
    version: int
    next_key: int
    removed: int
    files: Files = field(default_factory=dict)


class MappedFiles:
    """Handles of the files that a view maps into memory, to compare their sizes before each search.

    A read beyond the end of a mapped file ends the process (SIGBUS), or finds zeros.

    Args:
        sizes: The files, with the number of bytes that the index needs of each.
    """

    def __init__(self, sizes: Mapping[Path, int]) -> None:
        self._handles: list[tuple[int, int, str]] = []
        for path, size in sizes.items():
            self._handles.append((os.open(path, os.O_RDONLY), size, path.name))

    def truncated(self) -> str:
        """Return the name of a file that has become shorter; empty without one."""
        for handle, size, name in self._handles:
            if os.lseek(handle, 0, os.SEEK_END) < size:  # the size of the file, in a third of the time of `os.fstat`
                return name
        return ""

    def __del__(self) -> None:
        for handle, _, _ in self._handles:
            os.close(handle)


@dataclass(frozen=True, slots=True)
class View:
    """The state of an index when it was opened."""

    stamp: Stamp
    signature: Signature
    mapped: MappedFiles


V = TypeVar("V", bound=View)


class DerivedIndex(ABC, Generic[V]):
    """One index in the folder ``name`` of a store. Searches may run in several threads; the writer's lock protects
    everything else.
    """

    name: str
    kind: dict[str, Any]
    """The version of the files, and the analysis of words; with other values, the files cannot be used."""
    may_lag = 0
    """Number of added or removed chunks that the index may lack when it answers a search."""

    def __init__(self, database: IndexDatabase, home: Path) -> None:
        self.database = database
        self.folder = self._shared = home / self.name
        self._private = ""
        self._view: V | None = None
        self._opening = Lock()

    # Each index implements these.

    @abstractmethod
    def load(self, folder: Path, stamp: Stamp, signature: Signature) -> V:
        """Check the files of the stamp and open them. Raises `Stale` if they are damaged."""

    @abstractmethod
    def write(self, folder: Path, connection: Any, head: Any, since: V | None) -> Files:
        """Add chunks from ``since.stamp.next_key`` on and drop removed ones; None: add all to an empty folder.

        Returns ``files`` for the stamp.
        """

    @abstractmethod
    def check(self, connection: Any, view: V) -> str:
        """Read the whole index and return its fault; empty if it is valid."""

    def settle(self, folder: Path, stamp: Stamp) -> None:
        """Run after the stamp was written and recorded."""

    # How a `LocalStore` records an index; other databases override these.

    def head(self, connection: Any) -> SnapshotPosition:
        """Read the current position of the database."""
        return read_head(connection)

    def new_mark(self, head: Any) -> str:  # noqa: ARG002
        """Return the mark for an index built in this snapshot."""
        return uuid4().hex

    def end(self, head: Any) -> int:
        """Return the key up to which the index can follow the database."""
        return int(head.next_key)

    def known_mark(self, connection: Any, version: int) -> str:  # noqa: ARG002
        """Return the mark recorded in the database for an index of that version; empty without one."""
        row = connection.execute("SELECT mark FROM indexes WHERE name = ?", (self.name,)).fetchone()
        return str(row[0]) if row else ""

    def record(self, stamp: Stamp) -> None:
        """Write the stamp's mark to the database."""
        with self.database.write() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO indexes VALUES (?, ?, ?)", (self.name, stamp.mark, stamp.removed)
            )
            connection.execute("DELETE FROM removed WHERE number <= (SELECT min(removed) FROM indexes)")

    # Searching

    def view(self, connection: Any, head: SnapshotPosition) -> V:
        """Return the current index if it is valid for the snapshot; it may lag. Raises `Stale`.

        The sizes of its mapped files are compared now, so only a file that is truncated later, during the search,
        still ends the process or changes its results.
        """
        signature = self._signature()
        view = self._view
        if view is None or view.signature != signature:
            with self._opening:
                view = self._view
                if view is None or view.signature != signature:
                    view = self._view = self._loaded(connection, head, signature)
        if name := view.mapped.truncated():
            raise Stale(f"damaged ({name} was truncated)", broken=True)
        if view.stamp.removed > head.removed or view.stamp.generation != head.generation:
            raise Stale("ahead of this snapshot")
        if self._private and view.stamp.removed < head.removed:
            raise Stale("a private index, for which the database does not keep removals")
        return view

    @property
    def opened(self) -> V | None:
        """The view of the last search."""
        return self._view

    def confirm(self, view: V, head: SnapshotPosition) -> None:
        """Raise `Stale` if a removal that the snapshot does not contain was applied during a search."""
        if self._signature() != view.signature and self._stamp().removed > head.removed:
            raise Stale("ahead of this snapshot")

    def _loaded(self, connection: Any, head: Any, signature: Signature) -> V:
        stamp = self._stamp()
        if (stamp.kind, stamp.generation) != (self.kind, head.generation):
            raise Stale("of another format, language or embedder")
        if not self._private:
            known = self.known_mark(connection, stamp.version)
            interrupted = (stamp.before, stamp.version) == (known, head.version)
            if not interrupted and known != stamp.mark:
                raise Stale("made from another database")
        if stamp.next_key > head.next_key or stamp.removed > head.removed:
            raise Stale("ahead of this snapshot")
        try:
            return self.load(self.folder, stamp, signature)
        except (OSError, ValueError, LookupError, TypeError, Stale) as error:
            reason = str(error) if isinstance(error, Stale) else f"unreadable ({error})"
            raise Stale(reason, broken=not (self.folder / UNFINISHED).exists()) from error

    def _stamp(self) -> Stamp:
        try:
            crc, _, text = (self.folder / STAMP).read_text(encoding="utf-8").partition(" ")
            if int(crc) != zlib.crc32(text.encode()):
                raise ValueError("damaged")
            return Stamp(**json.loads(text))
        except FileNotFoundError as error:
            raise Stale(MISSING) from error
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise Stale("without a readable stamp", broken=True) from error

    def _signature(self) -> Signature:
        try:
            status = os.stat(f"{self.folder}/{STAMP}")  # noqa: PTH116, called twice per search; a path takes ten times as long
        except OSError as error:
            raise Stale(MISSING) from error
        return status.st_ino, status.st_mtime_ns, status.st_size

    def is_current(self, view: V) -> bool:
        """Return whether the index is unchanged since the view was opened."""
        try:
            return self._signature() == view.signature
        except Stale:
            return False

    def lag(self, view: V, head: SnapshotPosition) -> int:
        """Count the added and removed chunks that the index lacks."""
        return self.end(head) - view.stamp.next_key + head.removed - view.stamp.removed

    def behind(self, head: Any) -> int:
        """Count the added chunks that the index lacked when it was last opened."""
        view = self._view
        return self.end(head) - (0 if view is None else view.stamp.next_key)

    # Updating

    def bring_up(self, reason: str = "", *, unless: int = 0) -> None:
        """Apply the latest writes of the database, or rebuild the index.

        Args:
            reason: Why the index must be rebuilt; empty to rebuild it only if it is stale.
            unless: Do nothing if the index lags by at most this number of chunks.

        Raises:
            StoreLockedError: Another process is writing.
            StoreError: The folder cannot be written.
        """
        with self.database.lock.writing():
            self._leave_private()
            with self.database.read() as connection:
                head = self.head(connection)
                try:
                    if reason:
                        raise Stale(reason, broken=True)
                    view = self.view(connection, head)
                    if self.lag(view, head) <= unless:
                        return
                    stamp = self._written(self.folder, connection, head, view)
                except Stale as stale:
                    stamp = self._rebuilt(connection, head, stale)
            self.record(stamp)
            self.settle(self.folder, stamp)

    def build_privately(self) -> None:
        """Build an index in a temporary folder, for a reader that can neither use nor write the store's index."""
        with self._opening, self.database.read() as connection:
            head = self.head(connection)
            if self._private and self._stamp().version == head.version:
                return  # another thread was faster
            private = mkdtemp(prefix="ragistry-")
            folder = Path(private, self.name)
            folder.mkdir()
            self._written(folder, connection, head, None)
            self._leave_private()
            self._private, self.folder = private, folder

    def _leave_private(self) -> None:
        if self._private:
            shutil.rmtree(self._private, ignore_errors=True)
            self._private, self.folder, self._view = "", self._shared, None

    def _rebuilt(self, connection: Any, head: Any, stale: Stale) -> Stamp:
        if stale.broken:
            log.warning("%s: the index is %s; building it again", self.folder, stale)
        new, old = (self.folder.with_name(f"{self.folder.name}.{end}") for end in ("new", "old"))
        for left_over in (new, old):
            shutil.rmtree(left_over, ignore_errors=True)
        self._view = None
        try:
            new.mkdir(parents=True)
            stamp = self._written(new, connection, head, None)
            if self.folder.exists():
                self.folder.rename(old)
            new.rename(self.folder)
        except OSError as error:
            raise _unwritable(self.folder, error) from error
        finally:
            for left_over in (new, old):
                shutil.rmtree(left_over, ignore_errors=True)
        return stamp

    def _written(self, folder: Path, connection: Any, head: Any, since: V | None) -> Stamp:
        """Write the files and the stamp."""
        unfinished = folder / UNFINISHED
        try:
            if since is not None:
                unfinished.touch()
            files = self.write(folder, connection, head, since)
            before, mark = self.known_mark(connection, head.version), self.new_mark(head)
            stamp = Stamp(self.kind, head.generation, mark, before, head.version, self.end(head), head.removed, files)
            new_stamp = folder / f"{STAMP}.new"
            text = json.dumps(asdict(stamp))
            new_stamp.write_text(f"{zlib.crc32(text.encode())} {text}", encoding="utf-8")
            now = time_ns()
            os.utime(new_stamp, ns=(now, now))  # the clock for file times may not advance for milliseconds
            new_stamp.replace(folder / STAMP)
            unfinished.unlink(missing_ok=True)
        except OSError as error:
            raise _unwritable(self.folder, error) from error
        return stamp

    # Maintenance

    def problem(self) -> str:
        """Read all files and return the fault of the index; empty if it is valid, missing, or only lags.

        A writer changes files before it stamps them, so a fault is checked again while no process writes.
        """
        found = self._problem()
        if found:
            try:
                with self.database.lock.writing():
                    found = self._problem()
            except StoreError:  # another process is writing, or this one must not
                found = self._problem()
        return found

    def _problem(self) -> str:
        self._view = None  # memory does not show damage of the files
        with self.database.read() as connection:
            head = self.head(connection)
            try:
                return self.check(connection, self.view(connection, head))
            except Stale as stale:
                return str(stale) if stale.broken else ""

    def discard(self) -> None:
        """Remove the index without opening it; it is rebuilt when next needed."""
        self._view = None
        old = self.folder.with_name(f"{self.folder.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        if self.folder.exists():
            try:
                self.folder.rename(old)  # in one step: a partial index would count as damaged
            except OSError as error:
                raise _unwritable(self.folder, error) from error
        shutil.rmtree(old, ignore_errors=True)

    def close(self) -> None:
        """Close the files, and remove a private folder."""
        self._leave_private()
        self._view = None


def size_and_checksum(path: Path) -> list[int]:
    """Return the number of bytes of a file and their CRC-32."""
    size = crc = 0
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            size, crc = size + len(part), zlib.crc32(part, crc)
    return [size, crc]


def _unwritable(folder: Path, error: OSError) -> StoreError:
    return StoreError(
        f"the index {str(folder)!r} cannot be written ({error.strerror or error}); your data is safe; free some space "
        "or make the folder writable, and try again"
    )
