"""The document library: named collections of sources, taken in from files and searched by a technique."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from ragistry.config.collections import CollectionsFile
from ragistry.errors import CollectionNotFoundError, SourceError, SourceNotFoundError
from ragistry.library.ingest import Ingest, IngestSource, Progress
from ragistry.library.report import Failure, IngestReport
from ragistry.library.source import Reading, SourceText, nothing_readable, one_file, readable_files
from ragistry.protocols import Embedder, SourceStore
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.trace import collect
from ragistry.types import RetrievalResult, SourceInfo, Where
from ragistry.utils.limits import check_query, check_top_k
from ragistry.utils.suggest import did_you_mean
from ragistry.utils.where import normalise


class DocumentService:
    """Collections as documents.yaml defines them, over one store."""

    def __init__(
        self,
        collections: CollectionsFile,
        store: SourceStore,
        embedder: Embedder,
        registry: TechniqueRegistry,
        reading: Reading,
        n_results: int = 5,
    ) -> None:
        self.collections = collections
        self.store = store
        self.embedder = embedder
        self.registry = registry
        self.reading = reading
        self.n_results = n_results

    def ingest_file(self, path: str | Path, collection: str) -> int:
        """Take in one file and return the number of chunks written: 0 where it has not changed.

        Raises `SourceError` where the file cannot be read, `CollectionNotFoundError`.
        """
        return _chunks_or_raise(self._ingest([one_file(path)], collection))

    def ingest_text(self, text: str, source: str, collection: str) -> int:
        """Take in a text under a name and return the number of chunks written: 0 where it has not changed."""
        return _chunks_or_raise(self._ingest([SourceText(text, source)], collection))

    def ingest_folder(
        self, path: str | Path, collection: str, *, prune: bool = False, progress: Progress | None = None
    ) -> IngestReport:
        """Take in every readable file below a folder; a bad one is reported, and the rest goes on.

        What is in the collection from this folder but no longer in it is reported as vanished, and removed with
        ``prune``.
        """
        self._check_collection(collection)
        files = readable_files(path)
        present = {file.source_file for file in files}
        vanished = [
            info.source_file
            for info in self.store.sources(collection)
            if info.source_file not in present and _lies_below(info, Path(path))
        ]
        if not files and not vanished:
            raise nothing_readable(path)
        report = self._ingest(files, collection, progress)
        report.vanished = vanished
        for name in vanished if prune else ():
            self.store.replace_source(collection, name, [])
            report.deleted.append(name)
        return report

    def ingest_paths(
        self, paths: Sequence[str | Path], collection: str, *, prune: bool = False, progress: Progress | None = None
    ) -> IngestReport:
        """Take in files and folders; a folder with nothing readable in it is reported as failed.

        Raises for a path that does not exist before anything is read, and where there is nothing but such a folder.
        """
        self._check_collection(collection)
        for path in paths:
            if not Path(path).exists():
                raise SourceNotFoundError(f"no such file or folder: {str(path)!r}; check the path")
        report = self._ingest([one_file(path) for path in paths if not Path(path).is_dir()], collection, progress)
        for path in paths:
            if Path(path).is_dir():
                try:
                    report.merge(self.ingest_folder(path, collection, prune=prune, progress=progress))
                except SourceError as error:
                    if len(paths) == 1:
                        raise
                    report.failed.append(Failure(str(path), error))
        return report

    def _ingest(
        self, sources: Sequence[IngestSource], collection: str, progress: Progress | None = None
    ) -> IngestReport:
        self._check_collection(collection)
        return Ingest(self.store, self.embedder, self.reading, collection).run(sources, progress)

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
        check_query(query)
        top_k = None if n is None else check_top_k(n)
        condition = self._condition(collection, where)
        chosen = self.registry.get(technique or self.registry.default)
        start = perf_counter()
        with collect() as trace:
            documents = chosen.retrieve(query, top_k=self._top_k(chosen.name, top_k), where=condition)
        elapsed = (perf_counter() - start) * 1000
        return RetrievalResult(query, documents, len(documents), elapsed, trace.stages())

    def _top_k(self, technique: str, asked: int | None) -> int | None:
        """What the caller asks, else what the technique's entry says, else what documents.yaml says."""
        if asked is not None or "top_k" in self.registry.entry(technique).config:
            return asked
        return self.n_results

    def _condition(self, collection: str | None, where: Where | None) -> Where | None:
        parts: list[Where] = []
        if collection is not None:
            self._check_collection(collection)
            parts.append({"collection": collection})
        if where is not None:
            parts.append(normalise(where))
        return normalise({"$and": parts}) if parts else None

    def list_sources(self, collection: str | None = None) -> list[str]:
        """The names of the sources, each once, in order."""
        return sorted({info.source_file for info in self.list_sources_detail(collection)})

    def list_sources_detail(self, collection: str | None = None) -> list[SourceInfo]:
        """The sources with their number of chunks."""
        if collection is not None:
            self._check_collection(collection)
        return self.store.sources(collection)

    def list_collections(self) -> list[dict[str, Any]]:
        """Every collection of documents.yaml, empty ones included, with its sources and chunks counted."""
        counts: dict[str, list[int]] = {}
        for info in self.store.sources():
            counts.setdefault(info.collection, []).append(info.chunks)
        return [
            {
                "name": entry.name,
                "display_name": entry.display_name or entry.name,
                "description": entry.description,
                "source_count": len(counts.get(entry.name, [])),
                "chunk_count": sum(counts.get(entry.name, [])),
            }
            for entry in self.collections.entries()
        ]

    def create_collection(self, name: str, description: str = "", display_name: str | None = None) -> None:
        """Write a new collection to documents.yaml."""
        self.collections.add(name, description, display_name)

    def delete_source(self, source: str, collection: str) -> int:
        """Remove a source and return the number of chunks that it had. Raises `SourceNotFoundError`."""
        self._check_collection(collection)
        for info in self.store.sources(collection):
            if info.source_file == source:
                self.store.replace_source(collection, source, [])
                return info.chunks
        names = [info.source_file for info in self.store.sources(collection)]
        raise SourceNotFoundError(f"no source {source!r} in collection {collection!r}{did_you_mean(source, names)}")

    def count(self, collection: str | None = None) -> int:
        """How many chunks there are, in one collection or in all."""
        return self.store.count(self._condition(collection, None))

    def _check_collection(self, name: str) -> None:
        known = [entry.name for entry in self.collections.entries()]
        if name not in known:
            raise CollectionNotFoundError(
                f"no collection {name!r}{did_you_mean(str(name), known)}; there are {', '.join(known) or 'none'} in "
                f"{self.collections.path}; create it there, or with `ragistry ingest … --create DESCRIPTION`"
            )


def _chunks_or_raise(report: IngestReport) -> int:
    if report.failed:
        raise report.failed[0].cause
    return report.chunks


def _lies_below(info: SourceInfo, folder: Path) -> bool:
    """Whether a source was taken in from this folder: its path is the folder's and its own name."""
    return bool(info.source_path) and Path(info.source_path) == folder.resolve() / info.source_file
