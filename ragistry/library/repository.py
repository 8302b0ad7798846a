"""Documentation repositories: each the Markdown of a Git clone, in a store of its own under its name.

They are collections of the storage contract (`library.contract`), so that its functions read them too. What is indexed
is what is committed, at the commit that is checked out. An update compares the ids that Git gives to the content of
files, which is what ``git diff`` does between two commits: a file that moved or changed is read, and only text that the
repository did not hold before is embedded. It works on a copy of the store and swaps when all is done; an update that
fails or is killed leaves what was there.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragistry.errors import (
    CollectionAlreadyExistsError,
    CollectionNotFoundError,
    EmbeddingMismatchError,
    ExtractionError,
    InvalidCollectionNameError,
    SourceError,
    SourceNotFoundError,
)
from ragistry.library.contract import CollectionInfo, delete_collection, get_collection, list_collections
from ragistry.library.contract_chunks import now
from ragistry.library.contract_collection import Collection, check_there
from ragistry.library.contract_entries import (
    NAME_RULE,
    Entry,
    check_name,
    locked,
    names,
    new_folder,
    put_entry,
    read_entry,
)
from ragistry.library.ingest import Ingest
from ragistry.library.listing import check_not_empty
from ragistry.library.report import IngestReport
from ragistry.library.repository_git import Blob, Commit, content, head, markdown_files, unchanged
from ragistry.library.repository_page import Page, read_page
from ragistry.library.source import Reading
from ragistry.protocols import Embedder, LibraryStore
from ragistry.stores.registry import open_local
from ragistry.types import Progress
from ragistry.utils.fingerprints import check_embedder
from ragistry.utils.suggest import did_you_mean, listed

_FRONT_PAGE = re.compile(r"(?:_index|index|readme)\.(?:md|markdown)", re.IGNORECASE)


@dataclass(slots=True)
class RepositoryReport:
    """What an `add` or an `update` did: the collection as it is now, every file in a list, and old to new names."""

    info: CollectionInfo
    files: IngestReport
    renamed: dict[str, str] = field(default_factory=dict)


class Repositories:
    """The documentation repositories in a folder; `embedder` and `reading` are what they are indexed with.

    ``check_free``: raises for a new name that something else has.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        embedder: Embedder,
        reading: Reading,
        check_free: Callable[[str], object] = lambda _: None,
    ) -> None:
        self.root = Path(root).absolute()
        self.embedder = embedder
        self.reading = reading
        self._check_free = check_free

    def add(
        self,
        path: str | os.PathLike[str],
        name: str | None = None,
        description: str | None = None,
        progress: Progress | None = None,
    ) -> RepositoryReport:
        """Index the clone at ``path``, or a folder in one. ``name``: else made of the folder's.

        Raises `SourceError` where it is no clone or holds no Markdown, `CollectionAlreadyExistsError`,
        `InvalidCollectionNameError`, `ModelError`, `StoreError`.
        """
        check_not_empty(path)
        commit = head(path)
        chosen = name_of(commit.folder) if name is None else check_name(name)
        with locked(self.root, chosen):
            if read_entry(self.root, chosen) is not None:
                raise CollectionAlreadyExistsError(
                    f"there is a repository {chosen!r} already; bring it up to date with `ragistry repo update "
                    f"{chosen}`, or give this one another --name"
                )
            self._check_free(chosen)
            blobs = _pages(commit)
            about = _description(commit, blobs, chosen) if description is None else description
            return self._index(Entry(chosen, "", {"description": about}), commit, blobs, progress)

    def update(self, name: str, progress: Progress | None = None) -> RepositoryReport:
        """Index what changed in the clone since the commit on record; the clone itself is not pulled.

        Raises `CollectionNotFoundError`, and what `add` raises; then what was there stays.
        """
        self._entry(name)  # asked first, so that no folder is made for nothing
        with locked(self.root, name):
            entry = self._entry(name)
            folder = str(entry.metadata.get("path", ""))
            if not folder:
                raise SourceError(f"{name!r} is no repository of a clone; remove it, and add the clone's folder")
            if not Path(folder).is_dir():
                raise SourceNotFoundError(
                    f"the clone of {name!r} is gone from {folder!r}; put it back there, or remove the repository and "
                    "add the clone from where it now is"
                )
            commit = head(folder)
            return self._index(entry, commit, _pages(commit), progress)

    def infos(self) -> list[CollectionInfo]:
        """Every repository with its metadata and number of chunks, by name."""
        return list_collections(path=self.root)

    def remove(self, name: str) -> int:
        """Remove a repository's store and return how many chunks it had; the clone is not touched.

        Raises `CollectionNotFoundError`.
        """
        self._entry(name)
        return delete_collection(name, path=self.root)

    def collection(self, name: str) -> Collection:
        """The repository as a collection of the contract. Raises `CollectionNotFoundError`."""
        self._entry(name)
        return get_collection(name, path=self.root, embedder=self.embedder)

    def _entry(self, name: str) -> Entry:
        entry = read_entry(self.root, name)
        if entry is None:
            known = names(self.root)
            raise CollectionNotFoundError(
                f"no repository {name!r}{did_you_mean(name, known)}; there are {listed(known)}; "
                "`ragistry repo add PATH` makes one"
            )
        return entry

    def _index(self, entry: Entry, commit: Commit, blobs: list[Blob], progress: Progress | None) -> RepositoryReport:
        """Make the next version beside the one on record, and put it in its place. Call it `locked`."""
        folder = new_folder(self.root, entry.name)
        try:
            store = self._beginning(entry, folder)
            try:
                report = self._fill(store, entry.name, commit, blobs, progress)
                _leave_out_told(report.files, unchanged(commit, str(entry.metadata.get("commit_hash", "")), blobs))
                totals = {"total_documents": len(store.sources(entry.name)), "total_chunks": store.count()}
            finally:
                store.close()
            is_new = bool(report.files.added or report.files.updated or report.files.deleted) or not entry.folder
            origin = {"commit_hash": commit.id, "repository_url": commit.url}
            if is_new or any(entry.metadata.get(key) != value for key, value in origin.items()):
                metadata = {**entry.metadata, **_origin(commit), **totals}
                entry = Entry(entry.name, folder.name if is_new else entry.folder, metadata)
                put_entry(self.root, entry)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        if entry.folder != folder.name:
            shutil.rmtree(folder, ignore_errors=True)
        report.info = CollectionInfo(entry.name, totals["total_chunks"], entry.metadata)
        return report

    def _beginning(self, entry: Entry, folder: Path) -> LibraryStore:
        """The store to work on: a copy of the present one, or an empty one if that was made by another model."""
        if entry.folder:
            with closing(open_local(check_there(self.root / entry.folder))) as present:
                present.copy_to(folder)
        store = open_local(folder, exclusive=True)
        try:
            check_embedder(store, self.embedder.fingerprint)
        except EmbeddingMismatchError:
            store.clear_collection()
        except BaseException:
            store.close()
            raise
        return store

    def _fill(
        self, store: LibraryStore, name: str, commit: Commit, blobs: list[Blob], progress: Progress | None
    ) -> RepositoryReport:
        earlier = {info.source_file: info.source_hash for info in store.sources(name)}
        processed_at = now()
        pages = [
            Page("", blob.path, commit=commit, blob=blob, repository=name, processed_at=processed_at) for blob in blobs
        ]
        report = Ingest(store, self.embedder, self.reading, name).run(pages, progress)
        if not store.count():
            reasons = "; ".join(failure.error for failure in report.failed[:3]) or "the files are empty"
            raise SourceError(f"nothing of {str(commit.folder)!r} could be indexed: {reasons}")
        present = {page.source_file: page.content_hash(self.reading) for page in pages}
        gone = [path for path in earlier if path not in present]
        for path in gone:
            store.replace_source(name, path, [])
        report.deleted.extend(gone)
        moved = {hash: path for path, hash in present.items() if path not in earlier}
        renamed = {path: moved[earlier[path]] for path in gone if earlier[path] in moved}
        return RepositoryReport(CollectionInfo(name, 0, {}), report, renamed)


def _leave_out_told(files: IngestReport, same: set[str]) -> None:
    """Take out what was said already of pages that are the ``same``: those without text are looked at each time."""
    told = same.intersection(files.skipped)
    files.warnings = [warning for warning in files.warnings if warning.partition(": ")[0] not in told]


def name_of(folder: Path) -> str:
    """A repository's name from that of its folder: ``Istio.io`` is ``istio-io``."""
    name = re.sub(r"[^a-z0-9]+", "-", folder.name.removesuffix(".git").lower()).strip("-")[:63].rstrip("-")
    if not name:
        raise InvalidCollectionNameError(f"no name can be made of {folder.name!r}; give --name: {NAME_RULE}")
    return name


def _pages(commit: Commit) -> list[Blob]:
    blobs = markdown_files(commit)
    if not blobs:
        raise SourceError(
            f"there is no Markdown in {str(commit.folder)!r} at commit {commit.id[:12]}; commit some, or add another "
            "folder of the clone"
        )
    return blobs


def _description(commit: Commit, blobs: list[Blob], name: str) -> str:
    """What the front page says of itself: that nearest to the root, ``_index.md`` before the others."""
    pages = [blob for blob in blobs if _FRONT_PAGE.fullmatch(blob.path.rpartition("/")[2]) and blob.size < 1_000_000]
    front = min(
        pages, key=lambda blob: (blob.path.count("/"), not blob.path.endswith("_index.md"), blob.path), default=None
    )
    about: Mapping[str, Any] = {}
    if front is not None:
        with suppress(ExtractionError):  # the report tells it, like that of any other file
            about = read_page(content(commit, front), front.path).metadata
    said = [str(about[key]) for key in ("title", "description") if key in about]
    return ": ".join(said) or f"Documentation of {name}"


def _origin(commit: Commit) -> dict[str, Any]:
    return {
        "repository_url": commit.url,
        "commit_hash": commit.id,
        "last_updated": now(),
        "path": str(commit.folder),
    }
