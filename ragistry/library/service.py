"""The document library: named collections of sources, ingested from files and searched by a technique."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from ragistry.config.collections import CollectionsFile
from ragistry.errors import ConfigError, SourceError, SourceNotFoundError
from ragistry.library import moving
from ragistry.library.given import check_given, check_optional
from ragistry.library.ingest import Ingest
from ragistry.library.listing import (
    check_path,
    is_folder,
    list_folder,
    nothing_readable,
    one_file,
    without_covered,
)
from ragistry.library.overview import collection_rows, source_row
from ragistry.library.pages import fetched
from ragistry.library.report import Failure, IngestReport
from ragistry.library.scope import Scope
from ragistry.library.source import IngestSource, Reading, SourceBytes, SourceText
from ragistry.library.vanished import emptied, gone_from, vanished
from ragistry.pipelines.answer import Answer, Answerer
from ragistry.protocols import Embedder, Engine, Generator, LibraryStore
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.trace import collect, span
from ragistry.types import Progress, RetrievalResult, SourceInfo, Where
from ragistry.utils.suggest import did_you_mean
from ragistry.utils.urls import is_url
from ragistry.utils.where import normalise


class DocumentService:
    """The collections of documents.yaml, over one store.

    ``after_write`` is called after chunks were added or deleted. ``generator``: gives what writes answers, or None.
    """

    def __init__(
        self,
        collections: CollectionsFile,
        store: LibraryStore,
        embedder: Embedder,
        registry: TechniqueRegistry,
        reading: Reading,
        n_results: int = 5,
        *,
        after_write: Callable[[], object] = lambda: None,
        generator: Callable[[], Generator | None] = lambda: None,
    ) -> None:
        self.collections = collections
        self.store = store
        self.embedder = embedder
        self.registry = registry
        self.reading = reading
        self.n_results = n_results
        self.after_write = after_write
        self.generator = generator
        self.scope = Scope(collections, store)

    def ingest_file(self, path: str | Path, collection: str, *, replace: bool = False) -> int:
        """Ingest one file and return the number of chunks written: 0 if it has not changed.

        Its name in the collection is the bare file name. If another file or a text has that name, it is replaced only
        with ``replace``, or if it is the same file, moved. Raises `SourceError` if the file cannot be read or its name
        is taken, `EmbeddingGenerationError` if the model refuses a chunk, `ModelError`, `CollectionNotFoundError`.
        """
        check_given(path=path, collection=collection, replace=replace)
        return _chunks_or_raise(self._ingest([one_file(path)], collection, replace=replace))

    def ingest_text(self, text: str, source: str, collection: str) -> int:
        """Ingest a text under a name and return the number of chunks written: 0 if it has not changed."""
        check_given(text=text, source=source, collection=collection)
        return _chunks_or_raise(self._ingest([SourceText(text, source)], collection))

    def ingest_folder(
        self,
        path: str | Path,
        collection: str,
        *,
        prune: bool = False,
        follow_links: bool = False,
        replace: bool = False,
        progress: Progress | None = None,
        engine: Engine | None = None,
    ) -> IngestReport:
        """Take in every readable file below a folder; a bad one is reported, and the rest goes on.

        Sources whose files were below this folder and are there no longer are reported as vanished, and removed with
        ``prune``; nothing is where a part of the folder cannot be listed. With ``prune``, a folder that holds no file
        to take in is refused where sources came from it: so looks one whose disk is not mounted. To remove them all
        the same, give `delete_sources` what an ingest without ``prune`` reports as vanished. Links that lead out of the
        folder are left out with a warning, unless ``follow_links``; documents of other formats are counted in one.
        ``replace``: see `ingest_file`. ``engine``: where files are read and texts are embedded; None: in this process.
        Raises `SourceError`, `ModelError` where no text could be embedded, and `EngineError`.
        """
        check_given(path=path, collection=collection, prune=prune, follow_links=follow_links, replace=replace)
        check_optional(progress=progress, engine=engine)
        self.collections.entry(collection)
        self._check_path(path, collection, "folder")
        ingest = partial(self._ingest, collection=collection, progress=progress, replace=replace, engine=engine)
        return self._ingest_folder(path, collection, prune, follow_links, ingest)

    def _ingest_folder(
        self, path: str | Path, collection: str, prune: bool, follow_links: bool, ingest: Callable[..., IngestReport]
    ) -> IngestReport:
        listing = list_folder(path, follow_links=follow_links, config=self.collections.path.parent)
        stored = self.store.sources(collection) if listing.complete else []
        gone = vanished(listing, stored, follow_links=follow_links)
        if not (listing.files or listing.failed or listing.links or gone):
            raise nothing_readable(path)
        if prune and gone and not listing.files:
            raise emptied(path, collection, gone)
        report = ingest(listing.files)
        report.failed.extend(listing.failed)
        report.warnings.extend(listing.warnings())
        report.unread = dict(listing.unread)
        report.vanished = gone
        for name in gone if prune else ():
            self.store.replace_source(collection, name, [])
            report.deleted.append(name)
        if prune and gone:
            self.after_write()
        return report

    def ingest_paths(
        self,
        paths: Sequence[str | Path | SourceBytes],
        collection: str,
        *,
        prune: bool = False,
        follow_links: bool = False,
        replace: bool = False,
        allow_private: bool = False,
        changed: Collection[str] | None = None,
        progress: Progress | None = None,
        engine: Engine | None = None,
    ) -> IngestReport:
        """Take in files, web pages, and folders as `ingest_folder`; a folder or zip file with nothing readable in it is
        reported as failed.

        A text that begins with ``http://`` or ``https://`` is a page, which is fetched as its robots.txt allows, and
        not from private addresses unless ``allow_private``. ``changed``: of a folder only files at and below these
        paths are looked at, except to find out which are gone. Raises for a path that does not exist before anything
        is read, and where there is nothing but such a folder.
        """
        check_given(paths=paths, collection=collection, prune=prune, follow_links=follow_links, replace=replace)
        check_given(allow_private=allow_private)
        check_optional(changed=changed, progress=progress, engine=engine)
        self.collections.entry(collection)
        given = [path for path in paths if isinstance(path, SourceBytes)]
        urls = [path for path in paths if isinstance(path, str) and is_url(path)]
        named = [path for path in paths if not (isinstance(path, SourceBytes) or is_url(path))]
        for path in named:
            self._check_path(path, collection)
        named = without_covered(named, follow_links=follow_links, config=self.collections.path.parent)
        pages, failed = fetched(urls, self.reading.limits, allow_private=allow_private)
        ingest = partial(
            self._ingest, collection=collection, progress=progress, replace=replace, taken={}, engine=engine
        )
        report = ingest([*(one_file(path) for path in named if not is_folder(path)), *given, *pages])
        report.failed.extend(failed)
        of_folder = ingest if changed is None else _of_changed(ingest, changed)
        for path in named:
            if is_folder(path):
                try:
                    report.merge(self._ingest_folder(path, collection, prune, follow_links, of_folder))
                except SourceError as error:
                    if len(paths) == 1:
                        raise
                    report.failed.append(Failure(str(path), error))
        return report

    def _check_path(self, path: str | Path, collection: str, kind: str = "file or folder") -> None:
        """What `check_path` raises; of a folder that is gone, what to do about its sources."""
        try:
            check_path(path, kind)
        except SourceNotFoundError as error:
            raise gone_from(path, self.store.sources(collection), error) from error

    def _ingest(
        self,
        sources: Sequence[IngestSource],
        collection: str,
        progress: Progress | None = None,
        *,
        replace: bool = False,
        taken: dict[str, IngestSource] | None = None,
        engine: Engine | None = None,
    ) -> IngestReport:
        self.collections.entry(collection)
        self._complete_renames()
        kept = partial(self.collections.kept, collection)
        ingest = Ingest(
            self.store, self.embedder, self.reading, collection, kept, replace=replace, taken=taken, engine=engine
        )
        report = ingest.run(sources, progress)
        self.after_write()
        return report

    def search(
        self,
        query: str,
        collection: str | None = None,
        n: int | None = None,
        *,
        technique: str | None = None,
        where: Where | None = None,
    ) -> RetrievalResult:
        """Search one collection, or all of them, by a technique of techniques.yaml (default: its ``default``).

        Raises `QueryError`, `UnknownTechniqueError`, `CollectionNotFoundError`, `ModelError`, `StoreError`.
        """
        check_optional(collection=collection, technique=technique)
        condition = self._condition(collection, where)
        chosen = self.registry.get(technique or self.registry.default)
        start = perf_counter()
        with span("ragistry.search", technique=chosen.name), collect() as trace:
            found = chosen.retrieve(query, top_k=self._top_k(chosen.name, n), where=condition)
            documents = self.scope.named(found)
        elapsed = (perf_counter() - start) * 1000
        return RetrievalResult(query, documents, len(documents), elapsed, trace.stages())

    def answer(
        self,
        query: str,
        collection: str | None = None,
        n: int | None = None,
        *,
        technique: str | None = None,
        where: Where | None = None,
        on_piece: Callable[[str], object] | None = None,
    ) -> Answer:
        """Search, and let the generator answer from the results; the citations of each sentence are checked.

        ``on_piece`` is called with the text of the answer as it arrives. Raises the errors of `search`, and
        `ConfigError` without a configured generator.
        """
        check_optional(on_piece=on_piece)
        result = self.search(query, collection, n, technique=technique, where=where)
        generator = self.generator()
        if generator is None:
            raise ConfigError(
                "no generator is configured that could write an answer; add one to config/models.yaml, and call it "
                "`default` where there are several"
            )
        answerer = Answerer(generator, self.embedder, language=self.reading.language)
        return answerer.answer(query, result.documents, on_piece=on_piece or (lambda _: None))

    def _top_k(self, technique: str, asked: int | None) -> int | None:
        """The caller's number of results, else that of the technique's entry, else that of documents.yaml."""
        if asked is not None or "top_k" in self.registry.entry(technique).config:
            return asked
        return self.n_results

    def _condition(self, collection: str | None, where: Where | None) -> Where | None:
        scope = self.scope.of_all() if collection is None else self.scope.of(collection)
        meant = None if where is None else self.scope.meant(where)
        return meant if scope is None else normalise(scope if meant is None else {"$and": [scope, meant]})

    def list_sources(self, collection: str | None = None) -> list[str]:
        """The names of the sources without duplicates, in order."""
        return sorted({info.source_file for info in self.sources(collection)})

    def list_sources_detail(self, collection: str | None = None) -> list[dict[str, Any]]:
        """The `sources` as mappings, for display.

        ``source_file``, ``collection``, ``chunk_count``, ``ingested_at`` (seconds since 1970, 0 where not known),
        ``source``, ``source_path``, ``source_hash``.
        """
        return [source_row(info) for info in self.sources(collection)]

    def sources(self, collection: str | None = None) -> list[SourceInfo]:
        """The sources of one collection, or of all, with their number of chunks, ordered by collection and name."""
        check_optional(collection=collection)
        return self.scope.sources(collection)

    def source(self, source: str, collection: str) -> SourceInfo:
        """A source by its name. Raises `SourceNotFoundError`, `CollectionNotFoundError`."""
        check_given(source=source, collection=collection)
        known = {info.source_file: info for info in self.sources(collection)}
        if source not in known:
            raise SourceNotFoundError(
                f"no source {source!r} in collection {collection!r}{did_you_mean(source, list(known))}; "
                "`ragistry sources list` shows what is there"
            )
        return known[source]

    def list_collections(self) -> list[dict[str, Any]]:
        """Every collection of documents.yaml with the number of its sources and chunks."""
        return collection_rows(self.collections.entries(), self.sources())

    def orphans(self) -> list[SourceInfo]:
        """The sources whose collection was removed from documents.yaml by hand: stored, but not searched."""
        return self.scope.orphans()

    def create_collection(self, name: str, description: str = "", display_name: str | None = None) -> None:
        """Add a collection to documents.yaml; it includes sources that the store still has under its name.

        Raises `CollectionAlreadyExistsError`, `InvalidCollectionNameError`.
        """
        check_given(name=name, description=description)
        check_optional(display_name=display_name)
        self._complete_renames()
        self.collections.add(name, description, display_name)

    def rename_collection(self, name: str, new_name: str) -> int:
        """Rename a collection and return the number of moved chunks. No model is called.

        Searches find all chunks at any time; the next write finishes an interrupted rename. If another process holds
        the write lock, nothing is started. Raises
        `CollectionNotFoundError`, `CollectionAlreadyExistsError`, `InvalidCollectionNameError`, `StoreError`.
        """
        check_given(name=name, new_name=new_name)
        return moving.rename(self.collections, self.store, name, new_name)

    def update_description(self, name: str, description: str | None = None, *, display_name: str | None = None) -> None:
        """Change the description, by which people and models choose, the display name, or both.

        Raises `CollectionNotFoundError`, and `ConfigError` without either.
        """
        check_given(name=name)
        check_optional(description=description, display_name=display_name)
        if description is None and display_name is None:
            raise ConfigError(f"nothing to change in collection {name!r}; give a description, a display_name, or both")
        self.collections.update(name, description=description, display_name=display_name)

    def delete_collection(self, name: str) -> int:
        """Remove a collection's chunks, then the collection, and return its number of chunks.

        Also for one that is no longer in documents.yaml. Raises `CollectionNotFoundError`.
        """
        check_given(name=name)
        self._complete_renames()
        removed = 0

        def remove_chunks() -> None:
            nonlocal removed
            if self.store.count({"collection": name}):  # an empty one can be removed while another process writes
                removed += self.store.delete(where={"collection": name})

        with self.collections.unedited():
            if name not in self.scope.names():
                remove_chunks()
        if not removed:
            self.collections.remove(name, before=remove_chunks)
        self.scope.forget()
        self.after_write()
        return removed

    def delete_source(self, source: str, collection: str) -> int:
        """Remove a source and return its number of chunks. Raises `SourceNotFoundError`."""
        check_given(source=source, collection=collection)
        self._complete_renames()
        chunks = self.source(source, collection).chunks
        self.store.replace_source(collection, source, [])
        self.after_write()
        return chunks

    def delete_sources(self, sources: Sequence[str], collection: str) -> int:
        """Remove several sources and return their number of chunks.

        Raises `SourceNotFoundError`, and then removes none.
        """
        check_given(sources=sources, collection=collection)
        self._complete_renames()
        known = {info.source_file: info.chunks for info in self.sources(collection)}
        for source in sources:
            if source not in known:
                self.source(source, collection)
        for source in sources:
            self.store.replace_source(collection, source, [])
        self.after_write()
        return sum(known[source] for source in sources)

    def move_source(self, source: str, from_col: str, to_col: str, *, overwrite: bool = False) -> int:
        """Move a source to another collection, and return its number of chunks. No model is called.

        Raises `SourceNotFoundError`, `CollectionNotFoundError`, and `SourceError` if that collection has a source
        of this name, unless ``overwrite`` is set, and if both collections are the same.
        """
        check_given(source=source, from_col=from_col, to_col=to_col, overwrite=overwrite)
        self._complete_renames()
        with self.collections.kept(to_col):
            chunks = moving.move(self.store, self.source(source, from_col), to_col, overwrite=overwrite)
        self.after_write()
        return chunks

    def count(self, collection: str | None = None) -> int:
        """Number of chunks in one collection or in all."""
        check_optional(collection=collection)
        return self.store.count(self._condition(collection, None))

    def _complete_renames(self) -> None:
        moving.complete_renames(self.collections, self.store)


def _of_changed(ingest: Callable[..., IngestReport], changed: Collection[str]) -> Callable[..., IngestReport]:
    """An ingest of those files alone that are at or below changed paths."""
    starts = tuple(os.path.realpath(path) for path in changed)

    def below(place: str) -> bool:
        return any(place == start or place.startswith(start + os.sep) for start in starts)

    return lambda files: ingest([file for file in files if below(file.place)])


def _chunks_or_raise(report: IngestReport) -> int:
    if report.failed:
        raise report.failed[0].cause
    return report.chunks
