"""Record which files of an ingest are not searchable while it runs, and forget those that are read or gone."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from ragistry.errors import EmbeddingGenerationError, ModelError, SourceNotFoundError
from ragistry.library.ingest.folder_sync import is_gone
from ragistry.library.ingest.source import IngestSource, start_of
from ragistry.stores.records import entries_of, keeping
from ragistry.types import IngestedFolder, Unsearchable
from ragistry.utils.ids import composed
from ragistry.utils.quoting import escaped
from ragistry.utils.urls import is_url
from ragistry.utils.wording import one_line

if TYPE_CHECKING:
    from ragistry.errors import RagistryError
    from ragistry.library.ingest.plan import IngestPlan, PlannedFolder
    from ragistry.protocols import LibraryStore, UnsearchableStore

PENDING, SECONDS = 250, 1.0
"""Number and age of the entries that wait for the next write of a source."""
LONGEST = 1_000
"""Maximum number of characters of a reason."""
EXCERPT = 60
"""Number of characters of a chunk in an error."""


def entry(
    collection: str,
    source_file: str,
    place: str,
    reason: object,
    *,
    folder: str = "",
    kind: Literal["failed", "no text", "waiting"] = "failed",
) -> Unsearchable:
    """Make the entry of a file, with its names as UTF-8."""
    reason = escaped(one_line(str(reason), LONGEST))
    return Unsearchable(collection, escaped(source_file), escaped(place), folder, kind, reason, time.time())


def refused_error(name: str, place: str, text: str, error: ModelError, then: str = "") -> EmbeddingGenerationError:
    """Return the error for a chunk that the model refused, at a place such as ``chunk 2 of 3``."""
    start = " ".join(text.split())[:EXCERPT]
    return EmbeddingGenerationError(f"{name!r} cannot be embedded: {place} ({start!r}) was refused: {error}{then}")


def file_of(one: Unsearchable) -> str:
    """Return what identifies a file in its collection: its path, or its name."""
    return one.source_path or one.source_file


class MissingFiles:
    """The files of one ingest that are not searchable.

    An entry is written with the next source, or after a second. So no entry of a file before a written source is lost.

    Args:
        store: Where they are kept; nothing happens if it keeps none, or is None.
        plan: The ingest; None without a store.
        collection_lock: Returns a context manager for each write, which raises an error if the collection was deleted.
    """

    def __init__(
        self,
        store: LibraryStore | None = None,
        plan: IngestPlan | None = None,
        collection_lock: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        keeps = store is not None and "unsearchable" in store.abilities
        self._store = cast("UnsearchableStore", store) if keeps else None
        self._plan = cast("IngestPlan", plan)
        self.lock = collection_lock
        self._pending: dict[tuple[str, str], Unsearchable] = {}
        self._tried: set[str] = set()
        self._roots: dict[int, str] | None = None

    def begin(self) -> None:
        """Record what the plan left out and could not list, unless that is known."""
        if self._store is not None:
            for one in self._plan.missing:
                self._add(one)
            self.flush(changed_folders(self._plan, self._store.folders(self._plan.collection)))

    def add(self, source: IngestSource, reason: object, kind: Literal["failed", "no text"] = "failed") -> None:
        """Record a source that is not searchable; nothing is missing of a file that vanished."""
        if self._store is None or isinstance(reason, SourceNotFoundError):
            return
        if self._roots is None:
            folders = self._plan.folders
            self._roots = {id(file): os.path.realpath(folder.root) for folder in folders for file in folder.files}
        folder = getattr(source, "folder", "") or self._roots.get(id(source), "")
        made = entry(self._plan.collection, source.source_file, source.place, reason, folder=folder, kind=kind)
        self._add(made)

    def refused(self, collection: str, source_file: str, place: str, error: RagistryError) -> None:
        """Record a source with a chunk that the embedder refuses, and that is found by its words."""
        if self._store is not None:
            self._add(entry(collection, source_file, place, error, kind="waiting"))

    def _add(self, one: Unsearchable) -> None:
        self._tried.add(file_of(one))
        self._pending[one.collection, file_of(one)] = one

    def written_with(self, write: Callable[..., None], *arguments: Any) -> None:
        """Write a source by `replace_source`, and the pending entries with it."""
        write(*arguments, **({"unsearchable": list(self._pending.values())} if self._pending else {}))
        self._pending = {}

    @property
    def is_due(self) -> bool:
        """Whether there are many pending entries, or one waits for long."""
        first = next(iter(self._pending.values()), None)
        return first is not None and (len(self._pending) >= PENDING or first.at < time.time() - SECONDS)

    def flush(self, folders: Iterable[IngestedFolder] = ()) -> None:
        """Write the pending entries, and folders."""
        if self._store is not None and (self._pending or folders):
            with self.lock():
                self._store.record_unsearchable(list(self._pending.values()), folders=list(folders))
            self._pending = {}

    def end(self, read: Iterable[IngestSource] = ()) -> None:
        """Write the pending entries, and erase those of files that are read or gone.

        Args:
            read: The sources that were read, or are unchanged; those that failed later are left out here.
        """
        self.flush()
        if self._store is None:
            return
        is_past: Callable[[Unsearchable], bool] | None = None
        gone = []
        for number, one in entries_of(self._store):
            if one.collection == self._plan.collection and file_of(one) not in self._tried:
                is_past = is_past or past_entries(self._plan, read)
                if is_past(one):
                    gone.append(number)
        if gone:
            with self.lock():
                self._store.record_unsearchable(gone=gone)


def past_entries(plan: IngestPlan, read: Iterable[IngestSource] = ()) -> Callable[[Unsearchable], bool]:
    """Return a function that tells whether an entry of the collection, not of this ingest, is out of date.

    Its file was read, or is no longer in a folder that was listed. Or it is gone, and not because a disk is not there:
    what contained it or its folder is there, or a file of its name was ingested from elsewhere.
    """
    done = {escaped(source.place or source.source_file) for source in read}
    names = {composed(source.source_file) for source in plan.all_sources}
    listed = [(start_of(one.root), _files_in(one)) for one in plan.folders if one.listing and one.listing.complete]

    def is_past(one: Unsearchable) -> bool:
        if file_of(one) in done:
            return True
        listings = [files for start, files in listed if _is_inside(one, start)]
        if listings:
            return all(file_of(one) not in files for files in listings)
        if (
            not one.source_path or is_url(one.source_path) or "\\" in one.source_path
        ):  # a name that is not UTF-8 is escaped
            return False
        path, folder = Path(one.source_path), Path(one.folder or one.source_path)
        if not is_gone(one.source_path) or path.is_dir():
            return False
        return composed(one.source_file) in names or any(
            at.parent.is_dir() and not os.path.lexists(at) for at in (path, folder)
        )

    return is_past


def _is_inside(one: Unsearchable, start: str) -> bool:
    """Return whether a file of a folder is in the folder with this `start_of`, and not hidden there."""
    path = f"{one.source_path}{os.sep}"
    below = path.startswith(start) and f"{os.sep}." not in path[len(start) - 1 :]
    return bool(one.folder) and (below or f"{one.folder}{os.sep}" == start)


def _files_in(folder: PlannedFolder) -> set[str]:
    return {escaped(file.place or file.source_file) for file in folder.listing.files} if folder.listing else set()


def record_unsent(
    store: LibraryStore, folder: IngestedFolder, failed: Mapping[str, str], gone: Collection[str]
) -> None:
    """Record what a client says of its folder.

    Args:
        store: The store.
        folder: The folder; its path is empty for files that were sent one by one.
        failed: The reason for each file that was not sent, by its name.
        gone: Names of files that the folder no longer has.

    Raises:
        UnsupportedError: The store does not keep it.
    """
    keeper, names, where = keeping(store), set(gone), (folder.collection, folder.folder)
    numbers = [
        number
        for number, one in entries_of(keeper)
        if (one.collection, one.folder) == where and one.source_file in names
    ]
    entries = [entry(folder.collection, name, "", why, folder=folder.folder) for name, why in failed.items()]
    keeper.record_unsearchable(entries, gone=numbers, folders=[folder])


def changed_folders(plan: IngestPlan, known: Iterable[IngestedFolder]) -> list[IngestedFolder]:
    """Return the folders of a plan with other counts or patterns than the known ones, and known ones that are gone."""
    before: Mapping[str, IngestedFolder] = {one.folder: one for one in known}
    made = [
        replace(one, counts={})
        for one in before.values()
        if one.counts and Path(one.folder).is_absolute() and not os.path.lexists(one.folder)
    ]
    for folder in plan.folders:
        root = os.path.realpath(folder.root)
        old = before.get(root, IngestedFolder(plan.collection, root))
        exclude = old.exclude if folder.exclude is None else folder.exclude
        if (dict(old.counts), old.exclude) != (folder.counts, exclude):
            made.append(IngestedFolder(plan.collection, root, folder.counts, exclude))
    return made
