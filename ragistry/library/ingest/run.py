"""Ingest sources into a collection, each one completely or not at all.

A store with the ability ``"words_first"`` gets new sources with their words first; then all chunks that wait for their
vectors are embedded. Changed sources, and all of other stores, are embedded before they are written. Workers may read
and embed groups of sources (`prepare`). All other steps run here, in the order of the sources: comparison with the
stored sources, names, warnings, and writing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, TypeVar, cast

from ragistry.chunking.breadcrumb import searched_text
from ragistry.errors import (
    CollectionNotFoundError,
    EmbeddingGenerationError,
    ExtractionError,
    InvalidChunkError,
    ModelError,
    RagistryError,
    SourceError,
    StoreError,
    WorkerLostError,
)
from ragistry.library.embedding import PLAIN, embed_each, embed_waiting
from ragistry.library.fit import measure_if_due
from ragistry.library.ingest.folder_sync import check_same_source, earlier_names, is_same_file, taken
from ragistry.library.ingest.missing import MissingFiles, refused_error
from ragistry.library.ingest.report import Failure, IngestReport
from ragistry.library.ingest.source import IngestSource, ReadOptions, ReadResult, ToRead, look_at, read_source
from ragistry.models.known import fit_line, is_english
from ragistry.protocols import Embedder, LibraryStore, WordsFirstStore
from ragistry.readers.formats import with_readers
from ragistry.text.detection import detect_language, language_warnings
from ragistry.text.languages import AUTO
from ragistry.trace import span
from ragistry.types import Chunk, Document, EmbeddedChunk, Progress, SourceInfo
from ragistry.utils.ids import composed
from ragistry.utils.urls import is_url
from ragistry.utils.wording import agreeing, numbered

SAMPLES_OF_A_SOURCE = 4
"""Number of chunks of each source for detecting the language of an ingest."""
CHUNKS_AT_ONCE = 256
"""Maximum number of chunks embedded together; chunks of small sources share batches."""
AT_ONCE = 32
"""Number of new chunks up to which an ingest embeds them before it writes them: that takes about a second."""
CHANGED_AT_ONCE = 4_096
"""Number of chunks of changed sources that may be in memory until the words of all new sources are written."""
GROUP = 8
"""Number of sources that a worker prepares at once."""

Done = TypeVar("Done")
Result = ReadResult | RagistryError | None
"""What was read of a source, or its error; None if a worker sees another file."""
Map = Callable[[Callable[[list[ToRead]], list[Result]], Iterable[list[ToRead]]], Iterable[list[Result]]]
"""`map`, or one that works on workers: the result of a source that kills them is a `WorkerLostError`."""


def prepare(
    group: Sequence[ToRead], reading: ReadOptions, embedder: Embedder, *, on_worker: bool = False
) -> list[Result]:
    """Read and chunk sources. A worker embeds the chunks too, and leaves out a file that differs from the listed one.

    Raises:
        ModelError: The embedder does not work.
    """
    results: list[Result] = []
    with with_readers(reading.readers):
        for item in group:
            try:
                is_other = on_worker and look_at(item.source.path) != item.seen
                results.append(None if is_other else read_source(item, reading, embedder))
            except (SourceError, EmbeddingGenerationError) as error:
                results.append(error)
    if on_worker:
        read = [one for one in results if isinstance(one, ReadResult) and one.chunks]
        texts = dict.fromkeys(searched_text(*chunk) for one in read for chunk in one.chunks or ())
        vectors, _ = embed_each(list(texts), embedder.embed)
        for one in read:
            own = (searched_text(*chunk) for chunk in one.chunks or ())
            one.vectors.update((text, vectors[text]) for text in own if text in vectors)
    return results


@dataclass(slots=True)
class Prepared:
    """A source that was read, and compared with the stored ones.

    Attributes:
        source: The source.
        chunks: Its chunks.
        texts: The `searched_text` of each.
        stored: The stored source of this name; None if it is new.
        vectors: Known vectors by text.
        unknown: The other texts.
        made: Vectors that a worker has made.
        without_text: Why it has no chunks.
    """

    source: IngestSource
    chunks: list[Chunk]
    texts: list[str]
    stored: SourceInfo | None
    vectors: dict[str, Any]
    unknown: list[str]
    made: dict[str, Any]
    without_text: str


class Ingest:
    """Ingests sources into one collection of a store.

    Args:
        store: The store.
        embedder: Embeds the chunks.
        reading: Settings for reading and chunking sources.
        collection: Name of the collection.
        collection_lock: Returns a context manager for each write, which raises an error if the collection was deleted.
        replace: Overwrite a stored source of the same name.
        on_workers: Prepares the sources on workers; None for this process.
        report: Report that `run` completes; None for a new one.
        missing: Records files that are not searchable; None to record none.
    """

    def __init__(
        self,
        store: LibraryStore,
        embedder: Embedder,
        reading: ReadOptions,
        collection: str,
        collection_lock: Callable[[], AbstractContextManager[object]] = nullcontext,
        *,
        replace: bool = False,
        on_workers: Map | None = None,
        report: IngestReport | None = None,
        missing: MissingFiles | None = None,
    ) -> None:
        self.store = store
        self.embedder = embedder
        self.reading = reading
        self.collection = collection
        self.collection_lock = collection_lock
        self.replace = replace
        self.on_workers = on_workers
        self._words_first = "words_first" in store.abilities
        self.report = IngestReport() if report is None else report
        self.missing = missing or MissingFiles()
        self._given: set[tuple[str, str]] = set()
        self._taken: dict[str, IngestSource] = {}
        self._read_again = 0
        self._stored: dict[str, SourceInfo] = {}
        self._earlier: dict[str, SourceInfo] = {}
        self._languages: Counter[str] = Counter()
        self._samples: list[str] = []
        self._warn: Callable[[IngestReport], object] = lambda _: None
        self._is_warned = False

    @span("ragistry.ingest")
    def run(
        self,
        sources: Sequence[IngestSource],
        progress: Progress | None = None,
        waiting: Progress | None = None,
        warn: Callable[[IngestReport], object] | None = None,
    ) -> IngestReport:
        """Ingest all sources that are new or have changed.

        A source that cannot be read, or that the model refuses, is reported. If an error ends the ingest, the sources
        that were already written are complete; those that wait for their vectors are found by their words.

        Args:
            sources: The sources.
            progress: Called before each source is read, and at the end with an empty name.
            waiting: Called in the second pass with the number of chunks that have their vectors.
            warn: Called before the first texts are embedded, if they do not suit the model or the language setting.

        Raises:
            ModelError: No text can be embedded.
            StoreError: The store cannot be written.
            EngineError: The workers cannot be used.
        """
        self._warn = warn or self._warn
        self.store.use_embedder(self.embedder.fingerprint)
        infos = self.store.sources(self.collection)
        self._stored = {composed(info.source_file): info for info in infos} | {info.source_file: info for info in infos}
        self._earlier = earlier_names(sources, infos)
        if self.replace:
            self._given = {(source.source_file, source.place) for source in sources}
        self._read_and_write(sources, progress)
        if self._words_first:
            self._embed_waiting(waiting)
        self._drop_earlier_names()
        self.missing.end(self._taken.values())
        if self._read_again:
            files = numbered(self._read_again, "[file was|files were]")
            self.report.warnings.append(f"{files} updated without a change: a newer version of Ragistry reads them")
        if self.report.added or self.report.updated or self.report.embedded:
            if line := fit_line(measure_if_due(self.store, self.embedder)):
                self.report.warnings.append(line)
            self.store.flush()
        if progress is not None:
            progress("", len(sources), len(sources))
        return self.report

    def _read_and_write(self, sources: Sequence[IngestSource], progress: Progress | None) -> None:
        """Write each source: new ones with their words, others with their vectors.

        Before the first words, the model embeds a word: if it cannot, nothing is written. New sources of a few chunks
        are not worth two passes.
        """
        new: list[Prepared] = []
        others: list[Prepared] = []
        words_first = self._words_first and self.on_workers is None
        others_at_once = CHANGED_AT_ONCE if words_first else CHUNKS_AT_ONCE
        has_words = False
        results = self._results(sources)
        try:
            for done, source in enumerate(sources):
                if progress is not None:
                    progress(source.source_file, done, len(sources))
                if self.missing.is_due:
                    _patiently(self.missing.flush)
                prepared = self._prepared(source, next(results))
                if prepared is None:
                    continue
                if words_first and prepared.stored is None:
                    new.append(prepared)
                    if not has_words and sum(len(one.unknown) for one in new) > AT_ONCE:
                        self._embed([PLAIN])
                        has_words = True
                    if has_words:
                        for one in new:
                            _patiently(self._write, one)
                        new.clear()
                else:
                    others.append(prepared)
                    if sum(len(one.chunks) for one in others) >= others_at_once:
                        self._embed_and_write(others)
                        others.clear()
        finally:
            if has_words:
                self.store.flush()  # so that all of it is found before the model is asked, or after a stop
        self._embed_and_write([*others, *new])

    def _results(self, sources: Sequence[IngestSource]) -> Iterator[Result]:
        """Return what reading each source gives, in order, each when it is needed; workers read ahead."""
        items = map(self._to_read, sources)
        work = partial(prepare, reading=self.reading, embedder=self.embedder, on_worker=self.on_workers is not None)
        size = 1 if self.on_workers is None else GROUP
        groups = iter(lambda: list(islice(items, size)), [])
        return chain.from_iterable((self.on_workers or map)(work, groups))

    def _to_read(self, source: IngestSource) -> ToRead:
        info = self._stored_as(source.source_file)
        seen = None if self.on_workers is None else look_at(source.path)
        if info is None:
            return ToRead(source, seen=seen)
        # A file that was moved is written again, but not embedded again.
        is_kept = info.source_path == source.place and not source.metadata.changes(info)
        return ToRead(source, info.source_hash, is_kept, seen)

    def _stored_as(self, name: str) -> SourceInfo | None:
        """Return the stored source of this name, else of the same name in another Unicode form."""
        return self._stored.get(name) or self._stored.get(composed(name))

    def _prepared(self, source: IngestSource, read: Result) -> Prepared | None:
        """Compare a source with the stored one. None if there is nothing to write, which is reported."""
        info = self._stored_as(source.source_file)
        earlier = self._taken.get(composed(source.source_file))
        if earlier is not None and is_same_file(source.place, earlier.place):
            return None
        try:
            if earlier is not None:
                raise taken(source, self.collection, earlier.shown if earlier.place else "")
            if read is None:  # the worker sees another file, or none
                [read] = prepare([self._to_read(source)], self.reading, self.embedder)
            prepared = self._compared(source, info, read)
        except (SourceError, EmbeddingGenerationError) as error:
            self._fail(source, source.shown, error)
            return None
        self._taken[composed(source.source_file)] = source
        return prepared

    def _fail(self, source: IngestSource, name: str, error: RagistryError) -> None:
        self.report.failed.append(Failure(name, error))
        self.missing.add(source, error)

    def _compared(self, source: IngestSource, info: SourceInfo | None, read: Result) -> Prepared | None:
        if info is not None and (not self.replace or (info.source_file, info.source_path) in self._given):
            is_same = isinstance(read, ReadResult) and (read.is_read_again or read.content == info.source_hash)
            check_same_source(source, info, is_same)
        if isinstance(read, WorkerLostError):
            raise ExtractionError(f"{source.shown!r} cannot be read: {read}; check the file and the memory of workers")
        if not isinstance(read, ReadResult):
            raise cast("RagistryError", read)
        if read.chunks is None:
            self.report.skipped.append(source.source_file)
            return None
        chunks = read.chunks
        self._read_again += read.is_read_again
        self.report.warnings.extend(f"{source.source_file}: {warning}" for warning in read.warnings)
        why = "" if chunks else "; ".join(read.warnings) or "no text; nothing to search in it"
        if why and not read.warnings:
            self.report.warnings.append(f"{source.source_file}: {why}")
        if why and info is None:
            self.report.skipped.append(source.source_file)
            self.missing.add(source, why, "no text")
            return None
        lost = (*read.lost, *self._report_cuts(source.source_file, chunks))
        self._samples += [chunk.text for chunk in chunks[:SAMPLES_OF_A_SOURCE]]
        language = self._language_of(read) if self.reading.language == AUTO else ""
        now, place = time.time(), source.place
        for chunk in chunks:
            chunk.metadata.update(
                source=source.shown,
                source_file=source.source_file,
                collection=self.collection,
                source_hash=read.content,
                ingested_at=now,
                type="document",
            )
            if language:
                chunk.metadata["language"] = language
            if lost:
                chunk.metadata["lost"] = "; ".join(lost)
            if place:
                chunk.metadata["source_path"] = place
            if is_url(place):
                chunk.metadata["source_url"] = place
        stored = info or self._earlier.get(place)
        source.metadata.add_to(chunks, stored, source.path)
        name = source.source_file if stored is None else stored.source_file
        known = dict(_patiently(self.store.known_vectors, self.collection, name, chunks))
        texts = [searched_text(*chunk) for chunk in chunks]
        unknown = [text for text in texts if text not in known]
        return Prepared(source, chunks, texts, info, known, unknown, read.vectors, why)

    def _embed_waiting(self, waiting: Progress | None) -> None:
        """Embed all chunks of the store that wait for their vectors, also those of an interrupted ingest."""
        store = cast("WordsFirstStore", self.store)
        done = total = 0
        for made, refused in embed_waiting(store, self._embed):
            self.report.embedded += made
            done += made
            if waiting is not None:
                total = total or done + sum(info.waiting for info in store.sources())
                waiting("vectors", min(done, total), total)
            for document, error in refused:
                self._report_waiting(document, error)

    def _report_waiting(self, document: Document, error: ModelError) -> None:
        """Report a chunk that the model refused. Its source stays, and is found by its words."""
        name, collection = str(document.metadata.get("source_file")), document.metadata.get("collection")
        count = next((info.chunks for info in self.store.sources(collection) if info.source_file == name), 1)
        place = f"chunk {document.metadata.get('chunk_index', 0) + 1} of {count}"
        cause = refused_error(name, place, document.content, error, "; it is only found by words")
        self.missing.refused(str(collection), name, document.metadata.get("source_path", ""), cause)
        if collection != self.collection or composed(name) not in self._taken:
            self.report.warnings.append(str(cause))
            return
        for done in (self.report.added, self.report.updated, self.report.skipped):
            if name in done:
                done.remove(name)
                self.report.failed.append(Failure(name, cause))

    def _embed_and_write(self, prepared: Iterable[Prepared]) -> None:
        self._check_language()
        for group in _grouped(prepared):
            vectors = {text: vector for one in group for text, vector in one.made.items()}
            texts = list(dict.fromkeys(text for one in group for text in one.unknown if text not in vectors))
            refused: dict[str, ModelError] = {}
            for start in range(0, len(texts), CHUNKS_AT_ONCE):
                made, errors = embed_each(texts[start : start + CHUNKS_AT_ONCE], self._embed)
                vectors |= made
                refused |= errors
            embedded = set[str]()
            for one in group:
                name = one.source.source_file
                if (text := next((text for text in one.unknown if text in refused), "")) and not (
                    self._words_first and one.stored is None  # the second pass reports what it refuses again
                ):
                    place = f"chunk {one.texts.index(text) + 1} of {len(one.texts)}"
                    self._fail(one.source, name, refused_error(name, place, text, refused[text]))
                    continue
                one.vectors |= {text: vectors[text] for text in one.unknown if text in vectors}
                embedded.update(one.unknown)
                _patiently(self._write, one)
            self.report.embedded += len(embedded & vectors.keys())

    def _embed(self, texts: Sequence[str]) -> Any:
        return self.embedder.embed(texts, role="document")

    def _write(self, prepared: Prepared) -> None:
        """Write a source, if its collection exists before and after the write.

        If the collection is deleted during the write, a new source is removed again, because no search would find it.
        """
        name, is_written = prepared.source.source_file, False
        embedded = [
            EmbeddedChunk(*chunk, prepared.vectors.get(text))
            for chunk, text in zip(prepared.chunks, prepared.texts, strict=True)
        ]
        report, stored = self.report, prepared.stored
        try:
            if not embedded:
                self.missing.add(prepared.source, prepared.without_text, "no text")
            # A stored source may have its name in another Unicode form.
            written = name if embedded or stored is None else stored.source_file
            with self.collection_lock():
                self.missing.written_with(self.store.replace_source, self.collection, written, embedded)
                is_written = True
                if stored is not None and stored.source_file != written:
                    self.store.replace_source(self.collection, stored.source_file, [])
                report.chunks += len(embedded)
                done = report.added if stored is None else report.updated if embedded else report.deleted
                done.append(name)
        except InvalidChunkError as error:
            self._fail(prepared.source, name, error)
        except CollectionNotFoundError:
            if is_written and stored is None:
                self.store.replace_source(self.collection, name, [])
            raise

    def _drop_earlier_names(self) -> None:
        """Delete the stored versions of files that now have another name, if the new ones are complete."""
        if not self._earlier:
            return
        done = {*self.report.added, *self.report.updated, *self.report.skipped}
        for source in self._taken.values():
            name, info = source.source_file, self._earlier.get(source.place)
            if name in done and info is not None:
                self.store.replace_source(self.collection, info.source_file, [])
                self.report.deleted.append(info.source_file)
                self.report.warnings.append(f"{name}: was {info.source_file!r}; one file has one name in a collection")

    def _language_of(self, read: ReadResult) -> str:
        """Return the language of a source, or of its collection if the text is too short."""
        if read.language:
            self._languages[read.language] += 1
            return read.language
        if not self._languages:
            stored = next(iter(self.store.scan({"collection": self.collection}, batch=1)), None)
            self._languages[str(stored.metadata.get("language", "")) if stored else ""] += 1
        return self._languages.most_common(1)[0][0]

    def _check_language(self) -> None:
        """Warn once if the texts read so far do not suit the embedding model, or the language setting."""
        if self._is_warned:
            return
        model, detected = self.embedder.fingerprint.model, detect_language(self._samples)
        lines = language_warnings(
            detected, language=self.reading.language, embed_model=model, english_model=is_english(model)
        )
        if lines:
            self._is_warned = True
            self.report.warnings += lines
            self._warn(self.report)

    def _report_cuts(self, name: str, chunks: list[Chunk]) -> list[str]:
        """Warn of chunks that are longer than the model takes, and return the warning without the name."""
        limit = self.embedder.fingerprint.max_tokens
        longer = sum(chunk.metadata.get("token_count", 0) > limit for chunk in chunks) if limit else 0
        lines = [
            f"{longer:,} of {numbered(len(chunks), 'chunk[|s]')} {agreeing(longer, '[is|are]')} longer "
            f"than the model's limit of {limit} tokens, and only found by the beginning; set a smaller chunk_size"
        ]
        self.report.warnings += [f"{name}: {line}" for line in lines if longer]
        return lines if longer else []


def _patiently(call: Callable[..., Done], *arguments: Any) -> Done:
    """Call a method of a store up to five times while the store is unavailable."""
    import stamina  # not at the top, because loading it takes longer than a search

    retry = stamina.RetryingCaller(attempts=5, timeout=60.0, wait_initial=0.5, wait_max=8.0)
    return retry(_is_away, call, *arguments)


def _is_away(error: Exception) -> bool:
    return isinstance(error, StoreError) and isinstance(error, ConnectionError)


def _grouped(prepared: Iterable[Prepared]) -> Iterator[list[Prepared]]:
    group: list[Prepared] = []
    size = 0
    for item in prepared:
        group.append(item)
        size += len(item.unknown)
        if max(size, len(group)) >= CHUNKS_AT_ONCE:
            yield group
            group, size = [], 0
    if group:
        yield group
