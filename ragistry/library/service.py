"""The document library: named collections of sources, ingested from files and searched by a technique."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ragistry.config.collections import CollectionsFile
from ragistry.config.files import CollectionEntry
from ragistry.errors import (
    CollectionNotFoundError,
    ConfigError,
    EngineError,
    ModelError,
    RagistryError,
    SourceNotFoundError,
    StoreError,
)
from ragistry.library import moving
from ragistry.library.ingest.methods import IngestMethods, IngestObserver, ObservedEmbedder, ProgressObserver
from ragistry.library.ingest.source import Reading
from ragistry.library.scope import Scope
from ragistry.library.search_methods import SearchMethods
from ragistry.library.unknown_keys import unknown_keys
from ragistry.protocols import Embedder, Engine, Generator, LibraryStore
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.trace import collect, degraded, span, stage
from ragistry.types import RetrievalResult, SearchRequest, SourceInfo, Where
from ragistry.utils.documents.extracted import ExtractLimits
from ragistry.utils.where import normalise
from ragistry.utils.wording import did_you_mean

if TYPE_CHECKING:
    from ragistry.library.ingest.plan import IngestPlan
    from ragistry.library.ingest.report import IngestReport
    from ragistry.pipelines.answer import Answer


class DocumentService(IngestMethods, SearchMethods):
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

    def carry_out(
        self, plan: IngestPlan, *, observer: IngestObserver | None = None, engine: Engine | None = None
    ) -> IngestReport:
        """As `IngestMethods.carry_out`."""
        from ragistry.library.ingest.report import say_written, without_missing
        from ragistry.library.ingest.run import Ingest  # not at the top: a search needs none of it

        observer, collection, report = observer or ProgressObserver(None), plan.collection, plan.report
        self.collections.entry(collection)
        self._complete_renames()
        is_observed = observer.detailed and engine is None  # a worker cannot call the observer
        ingest = Ingest(
            self.store,
            ObservedEmbedder(self.embedder, observer) if is_observed else self.embedder,
            self.reading,
            collection,
            partial(self.collections.kept, collection),
            replace=plan.replace,
            engine=engine,
            report=report,
        )
        try:
            ingest.run(plan.all_sources, observer.progress)
            for folder in plan.folders:
                report.failed = without_missing(report.failed, folder.root)
            for name in plan.gone if plan.prune else ():
                self.store.replace_source(collection, name, [])
                report.deleted.append(name)
        except BaseException as error:  # what was written before is kept in step all the same
            with suppress(RagistryError):
                self.after_write()
            if isinstance(error, StoreError | ModelError | EngineError) and not isinstance(
                error, CollectionNotFoundError
            ):
                say_written(error, report)
            raise
        self.after_write()
        return report

    def _check_collection(self, name: str) -> None:
        self.collections.entry(name)

    def _stored_below(self, folder: Path, collection: str) -> Sequence[SourceInfo]:  # noqa: ARG002, places tell
        return self.store.sources(collection)

    def _limits(self) -> ExtractLimits:
        return self.reading.limits

    def run_search(self, request: SearchRequest) -> RetrievalResult:
        condition = self._condition(request.collection, request.where)
        chosen = self.registry.get(request.technique or self.registry.default)
        start = perf_counter()
        with span("ragistry.search", technique=chosen.name), collect() as trace:
            # The caller's number of results, else that of the technique's entry, else that of documents.yaml
            top_k = request.top_k if request.top_k is not None or chosen.sets_top_k else self.n_results
            found = chosen.retrieve(request.query, top_k=top_k, where=condition)
            documents = self.scope.named(found)
            if request.where is not None:
                self._report_unknown_keys(request.where, request.collection, found=bool(documents))
        elapsed = (perf_counter() - start) * 1000
        return RetrievalResult(request.query, documents, len(documents), elapsed, trace.stages())

    def run_answer(self, request: SearchRequest, on_piece: Callable[[str], object] | None = None) -> Answer:
        result = self.run_search(request)
        generator = self.generator()
        if generator is None:
            raise ConfigError(
                "no generator is configured that could write an answer; add one to config/models.yaml, and call it "
                "`default` where there are several"
            )
        from ragistry.pipelines.answer import Answerer

        answerer = Answerer(generator, self.embedder, language=self.reading.language)
        return answerer.answer(request.query, result.documents, on_piece=on_piece or (lambda _: None))

    def _report_unknown_keys(self, where: Where, collection: str | None, *, found: bool) -> None:
        scope = self.scope.of_all() if collection is None else self.scope.of(collection)
        if said := unknown_keys(self.store, where, scope, found=found):
            with stage("where"):
                degraded(said)

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
        return self.scope.sources(collection)

    def source(self, source: str, collection: str) -> SourceInfo:
        """A source by its name. Raises `SourceNotFoundError`, `CollectionNotFoundError`."""
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
        self._complete_renames()
        self.collections.add(name, description, display_name)

    def rename_collection(self, name: str, new_name: str) -> int:
        """Rename a collection and return the number of moved chunks. No model is called.

        Searches find all chunks at any time; the next write finishes an interrupted rename. If another process holds
        the write lock, nothing is started. Raises
        `CollectionNotFoundError`, `CollectionAlreadyExistsError`, `InvalidCollectionNameError`, `StoreError`.
        """
        return moving.rename(self.collections, self.store, name, new_name)

    def update_description(self, name: str, description: str | None = None, *, display_name: str | None = None) -> None:
        """Change the description, by which people and models choose, the display name, or both.

        Raises `CollectionNotFoundError`, and `ConfigError` without either.
        """
        if description is None and display_name is None:
            raise ConfigError(f"nothing to change in collection {name!r}; give a description, a display_name, or both")
        self.collections.update(name, description=description, display_name=display_name)

    def delete_collection(self, name: str) -> int:
        """Remove a collection's chunks, then the collection, and return its number of chunks.

        Also for one that is no longer in documents.yaml. Raises `CollectionNotFoundError`.
        """
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
        self._complete_renames()
        chunks = self.source(source, collection).chunks
        self.store.replace_source(collection, source, [])
        self.after_write()
        return chunks

    def delete_sources(self, sources: Sequence[str], collection: str) -> int:
        """Remove several sources and return their number of chunks.

        Raises `SourceNotFoundError`, and then removes none.
        """
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
        self._complete_renames()
        with self.collections.kept(to_col):
            chunks = moving.move(self.store, self.source(source, from_col), to_col, overwrite=overwrite)
        self.after_write()
        return chunks

    def count(self, collection: str | None = None) -> int:
        """Number of chunks in one collection or in all."""
        return self.store.count(self._condition(collection, None))

    def _complete_renames(self) -> None:
        moving.complete_renames(self.collections, self.store)


def collection_rows(entries: Sequence[CollectionEntry], sources: Iterable[SourceInfo]) -> list[dict[str, Any]]:
    """Each collection with the number of its sources and chunks."""
    counts = {entry.name: [0, 0] for entry in entries}
    for info in sources:
        count = counts.get(info.collection)
        if count is not None:  # else its collection was created while the sources were read
            count[0] += 1
            count[1] += info.chunks
    return [
        {
            "name": entry.name,
            "display_name": entry.display_name or entry.name,
            "description": entry.description,
            "source_count": counts[entry.name][0],
            "chunk_count": counts[entry.name][1],
        }
        for entry in entries
    ]


def source_row(info: SourceInfo) -> dict[str, Any]:
    """A source with the number of its chunks as ``chunk_count``."""
    fields = asdict(info)
    return {"source_file": fields.pop("source_file"), "chunk_count": fields.pop("chunks")} | fields
