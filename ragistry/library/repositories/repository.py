"""Documentation repositories: the Markdown files of Git clones, each clone in its own store.

They are collections of the storage contract (`library.contract`), whose functions can read them. The committed files at
the checked-out commit are indexed. An update compares Git's content ids of the files, as ``git diff`` does: moved and
changed files are read, and only new text is embedded. An update works on a copy of the store, which replaces the store
at the end. An update that fails or is killed changes nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from time import perf_counter
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
from ragistry.library.contract.chunks import now, without_json
from ragistry.library.contract.collection import Collection, open_version
from ragistry.library.contract.entries import (
    NAME_RULE,
    RepositoryEntry,
    check_name,
    entry_lock,
    names,
    new_folder,
    put_entry,
    read_entry,
    sweep,
)
from ragistry.library.ingest.folder import check_not_empty
from ragistry.library.ingest.report import IngestReport
from ragistry.library.ingest.run import Ingest
from ragistry.library.ingest.source import ReadOptions
from ragistry.library.repositories.git import Blob, Commit, content, head, markdown_files, unchanged
from ragistry.library.repositories.page import RepositoryPage, read_page
from ragistry.protocols import Embedder, LibraryStore, Technique
from ragistry.stores.registry import open_local
from ragistry.trace import collect
from ragistry.types import Document, Progress, RetrievalResult, Where
from ragistry.utils.fingerprints import check_embedder
from ragistry.utils.wording import did_you_mean, listed

_FRONT_PAGE = re.compile(r"(?:_index|index|readme)\.(?:md|markdown)", re.IGNORECASE)


@dataclass(slots=True)
class RepositoryReport:
    """The result of `Repositories.add` or `Repositories.update`.

    Attributes:
        info: The collection.
        files: The files, by outcome.
        renamed: Old paths of renamed files, and their new paths.
    """

    info: CollectionInfo
    files: IngestReport
    renamed: dict[str, str] = field(default_factory=dict)


class Repositories:
    """The documentation repositories in a folder.

    Args:
        root: The folder.
        embedder: Embeds the pages.
        reading: Settings for reading and chunking pages.
        used_by: Describes what else has a name, such as "a collection"; empty if nothing has.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        embedder: Embedder,
        reading: ReadOptions,
        used_by: Callable[[str], str] = lambda _: "",
    ) -> None:
        self.root = Path(root).absolute()
        self.embedder = embedder
        self.reading = reading
        self._used_by = used_by

    def add(
        self,
        path: str | os.PathLike[str],
        name: str | None = None,
        description: str | None = None,
        progress: Progress | None = None,
    ) -> RepositoryReport:
        """Index a clone, or a folder in one.

        Args:
            path: The folder.
            name: Name of the repository; None for a name made from the folder's name.
            description: Description; None for the description on the front page.
            progress: Called before each page.

        Raises:
            SourceError: The folder is not a clone, or has no Markdown.
            CollectionAlreadyExistsError: The name is already used.
            InvalidCollectionNameError: The name is invalid.
            ModelError: A page cannot be embedded.
            StoreError: The store cannot be written.
        """
        check_not_empty(path)
        commit = head(path)
        chosen = name_of(commit.folder) if name is None else check_name(name)
        with entry_lock(self.root, chosen):
            if read_entry(self.root, chosen) is not None:
                raise CollectionAlreadyExistsError(
                    f"repository {chosen!r} already exists; update it with `ragistry repo update "
                    f"{chosen}`, or give this one another --name"
                )
            if other := self._used_by(chosen):
                raise CollectionAlreadyExistsError(
                    f"{chosen!r} is already the name of {other}; give the repository another name (`--name`)"
                )
            blobs = _pages(commit)
            about = _description(commit, blobs, chosen) if description is None else description
            return self._index(RepositoryEntry(chosen, "", {"description": about}), commit, blobs, progress)

    def update(self, name: str, progress: Progress | None = None) -> RepositoryReport:
        """Index the changes of a clone since the recorded commit, without pulling.

        If it raises an error, the old version remains.

        Raises:
            CollectionNotFoundError: The repository does not exist.
            SourceError: The clone is missing, or has no Markdown.
            ModelError: A page cannot be embedded.
            StoreError: The store cannot be written.
        """
        self._entry(name)  # checked first, so that no folder is created
        with entry_lock(self.root, name):
            entry = self._entry(name)
            folder = str(entry.metadata.get("path", ""))
            if not folder:
                raise SourceError(f"{name!r} was not made from a clone; remove it, and add the clone's folder")
            if not Path(folder).is_dir():
                raise SourceNotFoundError(
                    f"the clone of {name!r} is no longer in {folder!r}; put it back, or remove the repository and "
                    "add the clone again"
                )
            commit = head(folder)
            return self._index(entry, commit, _pages(commit), progress)

    def infos(self) -> list[CollectionInfo]:
        """List the repositories with their metadata and number of chunks, by name."""
        return list_collections(path=self.root)

    def remove(self, name: str) -> int:
        """Delete a repository's store. The clone does not change.

        Returns:
            Number of chunks deleted.

        Raises:
            CollectionNotFoundError: The repository does not exist.
        """
        self._entry(name)
        return delete_collection(name, path=self.root)

    def collection(self, name: str) -> Collection:
        """Open the repository as a collection of the contract.

        Raises:
            CollectionNotFoundError: The repository does not exist.
        """
        self._entry(name)
        return get_collection(name, path=self.root, embedder=self.embedder)

    def _entry(self, name: str) -> RepositoryEntry:
        entry = read_entry(self.root, name)
        if entry is None:
            known = names(self.root)
            raise CollectionNotFoundError(
                f"no repository {name!r}{did_you_mean(name, known)}; there are {listed(known)}; "
                "add one with `ragistry repo add PATH`"
            )
        return entry

    def _index(
        self, entry: RepositoryEntry, commit: Commit, blobs: list[Blob], progress: Progress | None
    ) -> RepositoryReport:
        """Build a new version, and replace the recorded one. The caller holds the lock."""
        folder = new_folder(self.root, entry.name)
        try:
            if entry.folder:
                with closing(open_version(self.root / entry.folder)) as present:
                    present.copy_to(folder)
            with closing(open_local(folder, exclusive=True)) as store:
                try:
                    check_embedder(store, self.embedder.fingerprint)
                except EmbeddingMismatchError:  # another model: begin with an empty store
                    store.clear_collection()
                files, renamed = self._fill(store, entry.name, commit, blobs, progress)
                same = unchanged(commit, str(entry.metadata.get("commit_hash", "")), blobs)
                known = same.intersection(files.skipped)  # an earlier run reported their warnings
                files.warnings = [warning for warning in files.warnings if warning.partition(": ")[0] not in known]
                totals = {"total_documents": len(store.sources(entry.name)), "total_chunks": store.count()}
            is_new = bool(files.added or files.updated or files.deleted) or not entry.folder
            origin = {"repository_url": commit.url, "commit_hash": commit.id}
            if is_new or any(entry.metadata.get(key) != value for key, value in origin.items()):
                place = {"last_updated": now(), "path": str(commit.folder)}
                metadata = {**entry.metadata, **origin, **place, **totals}
                entry = RepositoryEntry(entry.name, folder.name if is_new else entry.folder, metadata)
                put_entry(self.root, entry)
        finally:
            sweep(self.root, entry.name)
        return RepositoryReport(CollectionInfo(entry.name, totals["total_chunks"], entry.metadata), files, renamed)

    def _fill(
        self, store: LibraryStore, name: str, commit: Commit, blobs: list[Blob], progress: Progress | None
    ) -> tuple[IngestReport, dict[str, str]]:
        """Ingest the pages, and delete the others; return the report, and the old paths with their new ones."""
        earlier = {info.source_file: info.source_hash for info in store.sources(name)}
        processed_at = now()
        pages = [
            RepositoryPage("", blob.path, commit=commit, blob=blob, repository=name, processed_at=processed_at)
            for blob in blobs
        ]
        report = Ingest(store, self.embedder, self.reading, name).run(pages, progress)
        if report.failed:
            head(commit.folder)  # raises if the clone vanished meanwhile, so that not only some pages are new
        if not store.count():
            reasons = "; ".join(failure.error for failure in report.failed[:3]) or "the files are empty"
            raise SourceError(f"no file of {str(commit.folder)!r} could be indexed: {reasons}")
        present = {page.source_file: page.content_hash(self.reading) for page in pages}
        gone = [path for path in earlier if path not in present]
        for path in gone:
            store.replace_source(name, path, [])
        report.deleted.extend(gone)
        moved = {hash: path for path, hash in present.items() if path not in earlier}
        return report, {path: moved[earlier[path]] for path in gone if earlier[path] in moved}


def name_of(folder: Path) -> str:
    """Make a repository name from a folder name: ``Istio.io`` becomes ``istio-io``."""
    name = re.sub(r"[^a-z0-9]+", "-", folder.name.removesuffix(".git").lower()).strip("-")[:63].rstrip("-")
    if not name:
        raise InvalidCollectionNameError(
            f"the folder name {folder.name!r} has no valid characters; give --name: {NAME_RULE}"
        )
    return name


def _pages(commit: Commit) -> list[Blob]:
    blobs = markdown_files(commit)
    if not blobs:
        raise SourceError(
            f"{str(commit.folder)!r} has no Markdown files at commit {commit.id[:12]}; commit some, or add another "
            "folder of the clone"
        )
    return blobs


def _description(commit: Commit, blobs: list[Blob], name: str) -> str:
    """Return the description on the front page.

    The front page is the one nearest to the root; ``_index.md`` has priority.
    """
    pages = [blob for blob in blobs if _FRONT_PAGE.fullmatch(blob.path.rpartition("/")[2]) and blob.size < 1_000_000]
    front = min(
        pages, key=lambda blob: (blob.path.count("/"), not blob.path.endswith("_index.md"), blob.path), default=None
    )
    about: Mapping[str, Any] = {}
    if front is not None:
        with suppress(ExtractionError):  # reported like any other file
            about = read_page(content(commit, front), front.path).metadata
    parts = [str(about[key]) for key in ("title", "description") if key in about]
    return ": ".join(parts) or f"Documentation of {name}"


Build = Callable[[LibraryStore], Technique]
"""Builds a technique over a store, such as one of a `TechniqueRegistry`."""


class RepositoryTechnique:
    """A technique over the current version of a repository.

    After an update, the next search uses the new version.
    """

    def __init__(self, collection: Collection, build: Build) -> None:
        self.collection = collection
        self._build = build
        self._over: tuple[LibraryStore, Technique] | None = None
        self._lock = Lock()

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        """Search the repository; see `ragistry.protocols.Technique`.

        A repository without chunks has no results.

        Raises:
            CollectionNotFoundError: The repository was removed.
        """
        nothing: list[Document] = []
        found = self.collection.read(
            lambda store: self._technique(store).retrieve(query, top_k=top_k, where=where), nothing
        )
        return list(map(without_json, found))

    def _technique(self, store: LibraryStore) -> Technique:
        with self._lock:
            if self._over is None or self._over[0] is not store:
                self._over = store, self._build(store)
            return self._over[1]


def search_repository(technique: Technique, query: str, top_k: int) -> RetrievalResult:
    """Run a technique, and return its results with their trace.

    Raises:
        QueryError: The query or ``top_k`` is invalid.
    """
    start = perf_counter()
    with collect() as trace:
        documents = technique.retrieve(query, top_k=top_k)
    elapsed = (perf_counter() - start) * 1000
    return RetrievalResult(query, documents, len(documents), elapsed, trace.stages())
