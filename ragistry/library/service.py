"""The document library: named collections of sources that are ingested from files and searched."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ragistry.config.collections import CollectionsFile
from ragistry.errors import (
    CollectionNotFoundError,
    ConfigError,
    EmbeddingMismatchError,
    EngineError,
    ModelError,
    RagistryError,
    SourceNotFoundError,
    StoreError,
)
from ragistry.library import moving
from ragistry.library.condition_checks import ValueKinds, check_condition
from ragistry.library.ingest.methods import IngestMethods, IngestObserver, ObservedEmbedder, ProgressObserver
from ragistry.library.ingest.source import ReadOptions
from ragistry.library.ingest.source_metadata import set_metadata
from ragistry.library.scope import Names, Scope, collection_rows
from ragistry.library.search_methods import SearchMethods
from ragistry.library.unsearchable import (
    UnsearchableMethods,
    entries_named,
    forget_collection,
    unsearchable_counts,
)
from ragistry.models.queries import embedded_together
from ragistry.protocols import Embedder, Engine, Generator, LibraryStore
from ragistry.readers.extracted import ExtractLimits
from ragistry.readers.formats import AddedReader
from ragistry.stores.records import keeping
from ragistry.techniques.folding import COPIES, COPY_PLACES, folded, folds, identity, place_name
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.text.phrases import parse_query
from ragistry.trace import collect, degraded, span, stage
from ragistry.types import (
    TOP_K_LIMIT,
    Document,
    RetrievalResult,
    SearchRequest,
    SourceInfo,
    Where,
    is_outside,
)
from ragistry.utils.dataclass_json import to_json
from ragistry.utils.ids import composed
from ragistry.utils.limits import check_previous, check_queries
from ragistry.utils.where import Condition, normalise
from ragistry.utils.wording import did_you_mean

if TYPE_CHECKING:
    from ragistry.answers.answer import AnswerStream
    from ragistry.library.asked import QuestionLog
    from ragistry.library.ingest.plan import IngestPlan
    from ragistry.library.ingest.report import IngestReport
    from ragistry.techniques.registered import RegisteredTechnique


ATTEMPTS = 3
"""Number of attempts of a search during which the embedder of the store is replaced."""


def technique_of(request: SearchRequest, registry: TechniqueRegistry) -> RegisteredTechnique:
    """Return the technique of a search, which for a follow-up also searches with the question before it."""
    chosen, previous = registry.chosen(request.technique), check_previous(request.previous)
    if previous is None:
        return chosen
    from ragistry.library.follow_up import FollowUp  # not at the top, because few searches need it

    return chosen.around(FollowUp(chosen.without_phrases(), previous))


class DocumentService(UnsearchableMethods, IngestMethods, SearchMethods):
    """The collections of documents.yaml, stored in one store.

    Args:
        collections: The file documents.yaml.
        store: Store of all collections.
        embedder: Embeds the chunks.
        registry: Techniques for searches.
        reading: Settings for reading and chunking sources.
        n_results: Default number of results.
        after_write: Called after chunks were added or deleted.
        after_erase: Called after chunks were deleted or replaced.
        generator: Returns the generator for answers, or None if none is configured.
        questions: Keeps the questions that people ask; None to keep none.
    """

    def __init__(
        self,
        collections: CollectionsFile,
        store: LibraryStore,
        embedder: Embedder,
        registry: TechniqueRegistry,
        reading: ReadOptions,
        n_results: int = 5,
        *,
        after_write: Callable[[], object] = lambda: None,
        after_erase: Callable[[], object] = lambda: None,
        generator: Callable[[], Generator | None] = lambda: None,
        questions: QuestionLog | None = None,
    ) -> None:
        self.collections = collections
        self.store = store
        self.embedder = embedder
        self.registry = registry
        self.reading = reading
        self.n_results = n_results
        self._kinds = ValueKinds(store)
        self._after_write = after_write
        self._after_erase = after_erase
        self.generator = generator
        self.questions = questions
        self.scope = Scope(collections, store)
        self._finish_removal()

    def _wrote(self, *collections: str, erased: bool = False) -> None:
        """Report that chunks of these collections were added or changed; ``erased``: some were deleted or replaced."""
        self._kinds.forget(*collections)
        if erased:
            self._after_erase()
        self._after_write()

    def carry_out(
        self, plan: IngestPlan, *, observer: IngestObserver | None = None, engine: Engine | None = None
    ) -> IngestReport:
        """See `IngestMethods.carry_out`."""
        from ragistry.library.ingest.report import say_written, without_missing
        from ragistry.library.ingest.run import Ingest  # not at the top, because searches do not need it

        observer, collection, report = observer or ProgressObserver(None), plan.collection, plan.report
        self._complete_renames()
        is_observed = observer.detailed and engine is None  # a worker cannot call the observer
        missing = self._missing_files(plan)
        missing.begin()
        ingest = Ingest(
            self.store,
            ObservedEmbedder(self.embedder, observer) if is_observed else self.embedder,
            self.reading,
            collection,
            missing.lock,
            replace=plan.replace,
            on_workers=None if engine is None else engine.map,
            report=report,
            missing=missing,
        )
        try:
            ingest.run(plan.all_sources, observer.progress, observer.waiting, observer.planned)
            for folder in plan.folders:
                report.failed = without_missing(report.failed, folder.root)
            for name in plan.gone if plan.prune else ():
                self.store.replace_source(collection, name, [])
                report.deleted.append(name)
        except BaseException as error:  # the sources written before must be searchable too
            with suppress(RagistryError):
                missing.flush()
            with suppress(RagistryError):
                self._wrote(collection, erased=bool(report.updated or report.deleted))
            if isinstance(error, StoreError | ModelError | EngineError) and not isinstance(
                error, CollectionNotFoundError
            ):
                say_written(error, report)
            raise
        self._wrote(collection, erased=bool(report.updated or report.deleted))
        return report

    def _check_collection(self, name: str) -> None:
        self.collections.entry(name)

    def _stored_below(self, folder: Path, collection: str) -> Sequence[SourceInfo]:  # noqa: ARG002, the sources have places
        return self.store.sources(collection)

    def _kept_patterns(self, folder: Path, collection: str) -> Sequence[str] | None:
        if "unsearchable" not in self.store.abilities:
            return None
        place = os.path.realpath(folder)
        return next((one.exclude for one in self.ingested_folders(collection) if one.folder == place), ())

    def _limits(self) -> ExtractLimits:
        return self.reading.limits

    def _readers(self) -> Mapping[str, AddedReader]:
        return self.reading.readers

    def run_search(self, request: SearchRequest) -> RetrievalResult:
        names = self.scope.current_names()
        where = normalise(request.where)
        scope = self.scope.condition(names, request.collection)
        condition = names.joined(scope, where)
        registry = self.registry.current()
        chosen = technique_of(request, registry)
        start = perf_counter()
        with span("ragistry.search", technique=chosen.name), collect() as trace:
            # The caller's number of results, else that of the technique's entry, else that of documents.yaml
            top_k = request.top_k if request.top_k is not None or chosen.sets_top_k else self.n_results
            token, tried = folds.set(True), 0
            try:
                while True:
                    try:
                        documents = chosen.retrieve(request.query, top_k=top_k, where=condition)
                        break
                    except EmbeddingMismatchError:
                        tried, other = tried + 1, self.registry.with_recorded_embedder(registry)
                        if other is None or tried == ATTEMPTS:
                            raise
                        registry, chosen = other, technique_of(request, other)
            finally:
                folds.reset(token)
            if names.is_renaming:
                documents = names.with_current_names(documents)
            if [one for one in documents if COPIES in one.metadata]:
                documents = [self._with_all_copies(document, names, condition) for document in documents]
            if where is not None:
                self._check_where(where, scope, found=bool(documents))
            unknown = self._unknown_words(request.query, documents, condition)
        elapsed = (perf_counter() - start) * 1000
        return RetrievalResult(request.query, documents, len(documents), elapsed, trace.stages(), unknown)

    def _unknown_words(self, query: str, documents: Sequence[Document], condition: Where | None) -> tuple[str, ...]:
        if "text" not in self.store.abilities or any(map(is_outside, documents)):
            return ()
        parsed = parse_query(query)
        return tuple(self.store.unknown_words(parsed.words if parsed else query, where=condition))

    def run_searches(self, queries: Sequence[str], options: SearchRequest) -> list[RetrievalResult]:
        texts = check_queries(queries)
        with embedded_together(self.embedder, texts):
            return [self.run_search(replace(options, query=text)) for text in texts]

    def run_answer_stream(self, request: SearchRequest) -> AnswerStream:
        result = self.run_search(request)
        generator = self.generator()
        if generator is None:
            raise ConfigError(
                "no generator is configured; add one to config/models.yaml, and name it `default` if there are several"
            )
        from ragistry.answers.answer import Answerer

        answerer = Answerer(generator, self.embedder, language=self.reading.language)
        return answerer.stream(
            request.query,
            result.documents,
            degraded=result.degraded,
            unknown_words=result.unknown_words,
            previous=check_previous(request.previous),
        )

    def _with_all_copies(self, document: Document, names: Names, condition: Where | None) -> Document:
        """Add the places of the same text that were ranked too low to be retrieved, if the store searches words."""
        if COPIES not in document.metadata or "text" not in self.store.abilities:
            return document
        known, own = {place_name(document), *document.metadata[COPY_PLACES]}, identity(document)
        found = self.store.search_text(own[0], TOP_K_LIMIT, where=condition, every=True)
        others = [
            one for one in names.with_current_names(found) if identity(one) == own and place_name(one) not in known
        ]
        return folded(document, others)

    def _check_where(self, where: Condition, scope: Condition | None, *, found: bool) -> None:
        for said in (check_condition(self.store, where, scope, found=found), self._kinds.uncompared(where, scope)):
            if said:
                with stage("where"):
                    degraded(said)

    def list_sources(self, collection: str | None = None) -> list[str]:
        """List the names of the sources, sorted and without duplicates."""
        return sorted({info.source_file for info in self.sources(collection)})

    def list_sources_detail(self, collection: str | None = None) -> list[dict[str, Any]]:
        """List the sources as mappings, for display.

        Returns:
            For each source ``source_file``, ``collection``, ``chunk_count``, ``ingested_at`` (seconds since 1970, or 0
            if unknown), ``source``, ``source_path``, ``source_hash``, ``lost``, ``metadata``, ``set_keys``.
        """
        return [source_row(info) for info in self.sources(collection)]

    def sources(self, collection: str | None = None) -> list[SourceInfo]:
        """List the sources of one collection, or of all collections.

        Returns:
            The sources with their number of chunks, ordered by collection and name.
        """
        return self.scope.sources(collection)

    def source(self, source: str, collection: str) -> SourceInfo:
        """Find a source by its name, in composed or decomposed Unicode.

        Raises:
            SourceNotFoundError: The collection has no such source.
            CollectionNotFoundError: The collection does not exist.
        """
        known = {info.source_file: info for info in self.sources(collection)}
        found = known.get(source) or {composed(name): info for name, info in known.items()}.get(composed(source))
        if found is None:
            raise SourceNotFoundError(
                f"no source {source!r} in collection {collection!r}{did_you_mean(source, list(known))}; "
                "list the sources to see their names"
            )
        return found

    def list_collections(self) -> list[dict[str, Any]]:
        """List the collections with their number of sources, of chunks and of files that are not searchable."""
        return collection_rows(self.collections.entries(), self.sources(), unsearchable_counts(self.scope))

    def orphans(self) -> list[SourceInfo]:
        """List the sources whose collection was removed from documents.yaml by hand.

        They are stored, but not searched.
        """
        return self.scope.orphans()

    def create_collection(self, name: str, description: str = "", display_name: str | None = None) -> None:
        """Add a collection to documents.yaml.

        If the store still has sources under this name, the collection includes them.

        Args:
            name: Name of the collection.
            description: Description for people and models that choose a collection.
            display_name: Name for display; None to display ``name``.

        Raises:
            CollectionAlreadyExistsError: The name is already used.
            InvalidCollectionNameError: The name is invalid.
        """
        self._complete_renames()
        self.collections.add(name, description, display_name)

    def rename_collection(self, name: str, new_name: str) -> int:
        """Rename a collection without embedding it again.

        Searches find all chunks during the rename. The next write finishes an interrupted rename.

        Returns:
            Number of chunks moved.

        Raises:
            CollectionNotFoundError: The collection does not exist.
            CollectionAlreadyExistsError: The new name is already used.
            InvalidCollectionNameError: The new name is invalid.
            StoreError: The store cannot be written. If another process holds its write lock, nothing was changed.
        """
        return moving.rename(self.collections, self.store, name, new_name)

    def update_description(self, name: str, description: str | None = None, *, display_name: str | None = None) -> None:
        """Change the description of a collection, its display name, or both.

        Args:
            name: Name of the collection.
            description: New description; None to keep the old one.
            display_name: New name for display; None to keep the old one.

        Raises:
            CollectionNotFoundError: The collection does not exist.
            ConfigError: Neither a description nor a display name was passed.
        """
        if description is None and display_name is None:
            raise ConfigError(f"nothing to change in collection {name!r}; give a description, a display_name, or both")
        self.collections.update(name, description=description, display_name=display_name)

    def delete_collection(self, name: str) -> int:
        """Delete a collection and its chunks.

        A collection that is missing from documents.yaml can be deleted too, if the store has chunks of it.

        Returns:
            Number of chunks deleted.

        Raises:
            CollectionNotFoundError: The collection does not exist.
        """
        self._complete_renames()
        removed = 0

        def remove_chunks() -> None:
            nonlocal removed
            forget_collection(self.store, name)
            if self.store.count({"collection": name}):  # an empty one can be deleted while another process writes
                removed += self.store.delete(where={"collection": name})

        with self.collections.file_lock():
            if name not in self.scope.current_names().current:
                remove_chunks()
        if not removed:
            self.collections.remove(name, before=remove_chunks)
        self.scope.forget()
        self._wrote(name, erased=True)
        return removed

    def delete_source(self, source: str, collection: str) -> int:
        """Delete a source; or forget a file that is not searchable, if no source has its name.

        Returns:
            Number of chunks deleted.

        Raises:
            SourceNotFoundError: The collection has no such source.
        """
        return self.delete_sources([source], collection)

    def delete_sources(self, sources: Sequence[str], collection: str) -> int:
        """Delete several sources; see `delete_source`.

        Returns:
            Number of chunks deleted.

        Raises:
            SourceNotFoundError: The collection lacks one of the sources; nothing was deleted.
        """
        self._complete_renames()
        known = {info.source_file: info for info in self.sources(collection)}
        found, missing = list[SourceInfo](), list[int]()
        for source in sources:
            try:
                found.append(known.get(source) or self.source(source, collection))
            except SourceNotFoundError:
                if not (numbers := entries_named(self.scope, source, collection)):
                    raise
                missing += numbers
        if missing:
            keeping(self.store).record_unsearchable(gone=missing)
        for info in found:
            self.store.replace_source(collection, info.source_file, [])
        self._wrote(collection, erased=True)
        return sum(info.chunks for info in found)

    def move_source(self, source: str, from_col: str, to_col: str, *, overwrite: bool = False) -> int:
        """Move a source to another collection without embedding it again.

        Args:
            source: Name of the source, as `list_sources` returns it.
            from_col: Collection that contains the source.
            to_col: Target collection. It must exist.
            overwrite: Replace a source of the same name in the target collection.

        Returns:
            Number of chunks moved.

        Raises:
            SourceNotFoundError: ``from_col`` has no such source.
            CollectionNotFoundError: One of the collections does not exist.
            SourceError: Both collections are the same, or the target has a source of this name and ``overwrite`` is
                false.
        """
        self._complete_renames()
        with self.collections.collection_lock(to_col):
            chunks = moving.move(self.store, self.source(source, from_col), to_col, overwrite=overwrite)
        self._wrote(from_col, to_col, erased=overwrite)
        return chunks

    def set_metadata(self, source: str, collection: str, metadata: Mapping[str, Any]) -> SourceInfo:
        """Change metadata of a source without its file. Nothing is embedded again.

        Args:
            source: Name of the source, as `list_sources` returns it.
            collection: Name of the collection.
            metadata: Keys to set; None removes a key. See `ingest_text`.

        Returns:
            The source with its new metadata.

        Raises:
            InvalidMetadataError: A key is reserved, or a key or value is not allowed.
            SourceNotFoundError: The collection has no such source.
            CollectionNotFoundError: The collection does not exist.
        """
        self._complete_renames()
        with self.collections.collection_lock(collection):
            set_metadata(self.store, self.source(source, collection), metadata)
        self._wrote(collection)
        return self.source(source, collection)

    def count(self, collection: str | None = None) -> int:
        """Count the chunks of one collection, or of all collections."""
        return self.store.count(self.scope.condition(self.scope.current_names(), collection))

    def _finish_removal(self) -> None:
        self.collections.finish_removal(lambda name: not self.store.count({"collection": name}))

    def _complete_renames(self) -> None:
        self._finish_removal()
        moving.complete_renames(self.collections, self.store)


def source_row(info: SourceInfo) -> dict[str, Any]:
    """Convert a source to a mapping with its number of chunks as ``chunk_count``."""
    row: dict[str, Any] = to_json(info)
    return row
