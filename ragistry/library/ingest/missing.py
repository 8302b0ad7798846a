"""Record which files of an ingest are not searchable while it runs, and forget those that are read or gone."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from ragistry.errors import EmbeddingGenerationError, ModelError, SourceNotFoundError
from ragistry.library.ingest.folder_sync import is_gone, may_come_back
from ragistry.library.ingest.ignore import RULES
from ragistry.library.ingest.source import IngestSource, start_of
from ragistry.stores.records import entries_of, keeping
from ragistry.types import IngestedFolder, Unsearchable
from ragistry.utils.quoting import escaped
from ragistry.utils.urls import is_url
from ragistry.utils.wording import one_line

if TYPE_CHECKING:
    from ragistry.errors import RagistryError
    from ragistry.library.ingest.plan import IngestPlan
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
    """Make the entry of a file. Its names are UTF-8, and the reason names it as its collection does.

    An error may name it by a path on a server, or by the path that was typed.
    """
    reason = re.sub(rf"(?<=['\"])[^'\"]*/(?={re.escape(source_file)}['\"])", "", str(reason))
    reason = escaped(one_line(reason, LONGEST))
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

    def begin(self) -> None:
        """Record what the plan left out and could not list, unless that is known."""
        if self._store is not None:
            known = self._store.sources(self._plan.collection) if self._plan.missing else []
            names = {info.source_path: info.source_file for info in known}  # of a page, the entry has only the address
            for one in self._plan.missing:
                self._add(replace(one, source_file=names.get(one.source_path, one.source_file)))
            self.flush(changed_folders(self._plan, self._store.folders(self._plan.collection)))

    def add(self, source: IngestSource, reason: object, kind: Literal["failed", "no text"] = "failed") -> None:
        """Record a source that is not searchable; nothing is missing of a file that vanished."""
        if self._store is None or isinstance(reason, SourceNotFoundError):
            return
        folder = getattr(source, "folder", "")
        self._add(entry(self._plan.collection, source.source_file, source.place, reason, folder=folder, kind=kind))

    def refused(self, collection: str, source_file: str, place: str, error: RagistryError) -> None:
        """Record a source with a chunk that the embedder refuses, and that is found by its words."""
        if self._store is not None:
            self._add(entry(collection, source_file, place, error, kind="waiting"))

    def _add(self, one: Unsearchable) -> None:
        if one.source_path in self._tried and not one.source_path.endswith(f"/{one.source_file}"):
            return  # a link to a file that has an entry
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

    An entry is out of date if its file was read, is missing in a new listing of its folder, or was deleted. A file on a
    disk that is not mounted was not deleted.
    """
    done = {escaped(source.place or source.source_file) for source in read}
    listed = [
        (start_of(one.root), {escaped(file.place) for file in one.listing.files})
        for one in plan.folders
        if one.listing and one.listing.complete
    ]

    def is_past(one: Unsearchable) -> bool:
        path = one.source_path
        ruled = f"{path.rpartition('/.')[0]}/" if path.endswith(RULES) else ""  # with rules that the listing read
        inside = [
            files
            for start, files in listed
            if (ruled and (ruled.startswith(start) or start.startswith(ruled)))
            or (f"{path}{os.sep}".startswith(start) and f"{os.sep}." not in path[len(start) - 1 :])  # hidden there
        ]
        if inside or file_of(one) in done:
            return file_of(one) in done or not any(path in files for files in inside)
        is_path = path and not is_url(path) and "\\" not in path  # a name that is not UTF-8 is escaped
        return bool(is_path) and is_gone(path) and not Path(path).is_dir() and not may_come_back(path, Path("/"))

    return is_past


def record_unsent(
    store: LibraryStore, folder: IngestedFolder, failed: Mapping[str, str], names: Container[str] | None
) -> None:
    """Record what a client says of its folder.

    Args:
        store: The store.
        folder: The folder; its path is empty for files that were sent one by one.
        failed: The reason for each file that was not sent, by its name.
        names: The files of the folder; None if not all are known.

    Raises:
        UnsupportedError: The store does not keep it.
    """
    where = folder.collection, folder.folder
    gone = [
        number
        for number, one in entries_of(store)
        if names is not None and (one.collection, one.folder) == where and one.source_file not in names
    ]
    entries = [entry(folder.collection, name, "", why, folder=folder.folder) for name, why in failed.items()]
    keeping(store).record_unsearchable(entries, gone=gone, folders=[folder] if folder.folder else [])


def changed_folders(plan: IngestPlan, known: Iterable[IngestedFolder]) -> list[IngestedFolder]:
    """Return the folders of a plan with other counts or patterns than the known ones, and known ones that are gone."""
    before = {one.folder: one for one in known}
    gone = [one for one in before.values() if Path(one.folder).is_absolute() and is_gone(one.folder)]
    after = {one.folder: replace(one, counts={}) for one in gone}
    for folder in plan.folders:
        root = os.path.realpath(folder.root)
        kept = before.get(root, IngestedFolder(plan.collection, root)).exclude
        exclude = kept if folder.exclude is None else folder.exclude
        after[root] = IngestedFolder(plan.collection, root, folder.counts, exclude)
    return [one for one in after.values() if one != before.get(one.folder, IngestedFolder(plan.collection, one.folder))]
