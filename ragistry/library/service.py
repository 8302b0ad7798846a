"""The document library: named collections of sources, taken in from files and searched by a technique."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from ragistry.config.collections import CollectionsFile
from ragistry.errors import ConfigError, SourceError, SourceNotFoundError
from ragistry.library import moving
from ragistry.library.given import check_given, check_optional
from ragistry.library.ingest import Ingest
from ragistry.library.listing import check_path, list_folder, nothing_readable, one_file, without_covered
from ragistry.library.overview import collection_rows, source_row
from ragistry.library.report import Failure, IngestReport
from ragistry.library.scope import Scope
from ragistry.library.source import IngestSource, Reading, SourceText
from ragistry.library.vanished import emptied, gone_from, vanished
from ragistry.pipelines.answer import Answer, Answerer
from ragistry.protocols import Embedder, Engine, Generator, LibraryStore
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.trace import collect, span
from ragistry.types import Progress, RetrievalResult, SourceInfo, Where
from ragistry.utils.suggest import did_you_mean
from ragistry.utils.where import normalise


class DocumentService:
    """Collections as documents.yaml defines them, over one store.

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
        """Take in one file and return the number of chunks written: 0 where it has not changed.

        Its bare name is its name in the collection. Where another file or a text has that name, this one gets it only
        with ``replace``, or where it is that file, moved. Raises `SourceError` where the file cannot be read or its
        name is another's, `EmbeddingGenerationError` where the model refuses a chunk, `ModelError`,
        `CollectionNotFoundError`.
        """
        check_given(path=path, collection=collection, replace=replace)
        return _chunks_or_raise(self._ingest([one_file(path)], collection, replace=replace))

    def ingest_text(self, text: str, source: str, collection: str) -> int:
        """Take in a text under a name and return the number of chunks written: 0 where it has not changed."""
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
        report.vanished = gone
        for name in gone if prune else ():
            self.store.replace_source(collection, name, [])
            report.deleted.append(name)
        if prune and gone:
            self.after_write()
        return report

    def ingest_paths(
        self,
        paths: Sequence[str | Path],
        collection: str,
        *,
        prune: bool = False,
        follow_links: bool = False,
        replace: bool = False,
        progress: Progress | None = None,
        engine: Engine | None = None,
    ) -> IngestReport:
        """Take in files and folders as `ingest_folder`; one with nothing readable in it is reported as failed.

        Raises for a path that does not exist before anything is read, and where there is nothing but such a folder.
        """
        check_given(paths=paths, collection=collection, prune=prune, follow_links=follow_links, replace=replace)
        check_optional(progress=progress, engine=engine)
        self.collections.entry(collection)
        for path in paths:
            self._check_path(path, collection)
        paths = without_covered(paths, follow_links=follow_links, config=self.collections.path.parent)
        files = [one_file(path) for path in paths if not Path(path).is_dir()]
        ingest = partial(
            self._ingest, collection=collection, progress=progress, replace=replace, taken={}, engine=engine
        )
        report = ingest(files)
        for path in paths:
            if Path(path).is_dir():
                try:
                    report.merge(self._ingest_folder(path, collection, prune, follow_links, ingest))
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
        """Search, and let the generator answer from what was found, each sentence with citations that are checked.

        ``on_piece`` is called with the text of the answer as it arrives. Raises what `search` raises, and `ConfigError`
        where no generator is configured.
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
        """What the caller asks, else what the technique's entry says, else what documents.yaml says."""
        if asked is not None or "top_k" in self.registry.entry(technique).config:
            return asked
        return self.n_results

    def _condition(self, collection: str | None, where: Where | None) -> Where | None:
        scope = self.scope.of_all() if collection is None else self.scope.of(collection)
        meant = None if where is None else self.scope.meant(where)
        return meant if scope is None else normalise(scope if meant is None else {"$and": [scope, meant]})

    def list_sources(self, collection: str | None = None) -> list[str]:
        """The names of the sources, each once, in order."""
        return sorted({info.source_file for info in self.sources(collection)})

    def list_sources_detail(self, collection: str | None = None) -> list[dict[str, Any]]:
        """The `sources` as mappings, for programs that show them.

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
        """Every collection of documents.yaml, empty ones included, with its sources and chunks counted."""
        return collection_rows(self.collections.entries(), self.sources())

    def orphans(self) -> list[SourceInfo]:
        """The sources whose collection was taken out of documents.yaml by hand: stored, but not searched."""
        return self.scope.orphans()

    def create_collection(self, name: str, description: str = "", display_name: str | None = None) -> None:
        """Write a new collection to documents.yaml; sources that the store still has under its name are its own.

        Raises `CollectionAlreadyExistsError`, `InvalidCollectionNameError`.
        """
        check_given(name=name, description=description)
        check_optional(display_name=display_name)
        self._complete_renames()
        self.collections.add(name, description, display_name)

    def rename_collection(self, name: str, new_name: str) -> int:
        """Rename a collection and return how many chunks followed. No model is called.

        Searches find all of it at any time; an interrupted rename is finished by the next write. If another process
        holds the right to write, nothing is begun. Raises
        `CollectionNotFoundError`, `CollectionAlreadyExistsError`, `InvalidCollectionNameError`, `StoreError`.
        """
        check_given(name=name, new_name=new_name)
        return moving.rename(self.collections, self.store, name, new_name)

    def update_description(self, name: str, description: str | None = None, *, display_name: str | None = None) -> None:
        """Write another description, by which people and models choose, or another name to show, or both.

        Raises `CollectionNotFoundError`, and `ConfigError` where neither is given.
        """
        check_given(name=name)
        check_optional(description=description, display_name=display_name)
        if description is None and display_name is None:
            raise ConfigError(f"nothing to write of collection {name!r}; give a description, a display_name, or both")
        self.collections.update(name, description=description, display_name=display_name)

    def delete_collection(self, name: str) -> int:
        """Remove a collection's chunks, then the collection itself, and return how many chunks it had.

        Also for one that is in documents.yaml no more. Raises `CollectionNotFoundError`.
        """
        check_given(name=name)
        self._complete_renames()
        removed = 0

        def remove_chunks() -> None:
            nonlocal removed
            if self.store.count({"collection": name}):  # an empty one is removed also while another process writes
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
        """Remove a source and return the number of chunks that it had. Raises `SourceNotFoundError`."""
        check_given(source=source, collection=collection)
        self._complete_renames()
        chunks = self.source(source, collection).chunks
        self.store.replace_source(collection, source, [])
        self.after_write()
        return chunks

    def delete_sources(self, sources: Sequence[str], collection: str) -> int:
        """Remove several sources and return the number of chunks that they had.

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
        """Give a source to another collection, and return how many chunks it has. No model is called.

        Raises `SourceNotFoundError`, `CollectionNotFoundError`, and `SourceError` where that collection has a source
        of this name, unless ``overwrite`` lets this one take its place, and where both collections are the same.
        """
        check_given(source=source, from_col=from_col, to_col=to_col, overwrite=overwrite)
        self._complete_renames()
        with self.collections.kept(to_col):
            chunks = moving.move(self.store, self.source(source, from_col), to_col, overwrite=overwrite)
        self.after_write()
        return chunks

    def count(self, collection: str | None = None) -> int:
        """How many chunks there are, in one collection or in all."""
        check_optional(collection=collection)
        return self.store.count(self._condition(collection, None))

    def _complete_renames(self) -> None:
        moving.complete_renames(self.collections, self.store)


def _chunks_or_raise(report: IngestReport) -> int:
    if report.failed:
        raise report.failed[0].cause
    return report.chunks
