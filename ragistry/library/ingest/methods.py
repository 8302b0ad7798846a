"""The ingest methods of local and remote libraries, which create and carry out a plan."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, ClassVar

from ragistry.errors import ConfigError, RagistryError, SourceError
from ragistry.library.ingest.source import SourceText
from ragistry.protocols import Embedder
from ragistry.readers.extracted import ExtractLimits
from ragistry.readers.formats import AddedReader, with_readers
from ragistry.types import EmbedderFingerprint, Progress, Role, SourceInfo

if TYPE_CHECKING:  # ingest methods import these modules when they are called
    from typing import Unpack

    from ragistry.library.ingest.plan import Given, IngestOptions, IngestPlan
    from ragistry.library.ingest.report import IngestReport
    from ragistry.protocols import Engine, Vectors


class IngestObserver:
    """Follows an ingest. Subclasses override the methods that they need.

    An error that a method raises ends the ingest. ``detailed`` is true if other methods than `progress` are overridden;
    then texts are embedded in smaller batches.
    """

    detailed: ClassVar[bool] = True

    def planned(self, report: IngestReport) -> None:
        """Called with the warnings so far: of the files, before the first is read; of their language, before the first
        texts are embedded.
        """

    def progress(self, source_file: str, done: int, total: int) -> None:
        """Called before each source is read, and at the end with an empty name."""

    def counted(self, texts: int) -> None:
        """Called with the number of chunks of a source, again after it is split further."""

    def embedded(self, texts: int) -> None:
        """Called with the number of chunks in a finished batch."""

    def waiting(self, name: str, done: int, total: int) -> None:
        """Called while chunks that are already found by their words get their vectors."""

    def check(self) -> None:
        """Called about once a second; raises an error to cancel."""


class ProgressObserver(IngestObserver):
    """Passes the progress to a function."""

    detailed = False

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress

    def progress(self, source_file: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(source_file, done, total)

    def waiting(self, name: str, done: int, total: int) -> None:
        self.progress(name, done, total)


class CancelledIngest(BaseException):
    """Ends an ingest whose task was cancelled; no `Exception`, which would be the failure of one source."""


class CancellingObserver(IngestObserver):
    """Passes everything on to another observer, until the ingest is cancelled."""

    def __init__(self, observer: IngestObserver) -> None:
        self._observer = observer
        self.cancelled = Event()

    def planned(self, report: IngestReport) -> None:
        self._observer.planned(report)

    def progress(self, source_file: str, done: int, total: int) -> None:
        self.check()
        self._observer.progress(source_file, done, total)

    def counted(self, texts: int) -> None:
        self._observer.counted(texts)

    def embedded(self, texts: int) -> None:
        self._observer.embedded(texts)

    def waiting(self, name: str, done: int, total: int) -> None:
        self.check()
        self._observer.waiting(name, done, total)

    def check(self) -> None:
        if self.cancelled.is_set():
            raise CancelledIngest
        self._observer.check()


class IngestMethods(ABC):
    """Ingest methods of a library. Subclasses carry out plans and list sources."""

    @abstractmethod
    def carry_out(
        self, plan: IngestPlan, *, observer: IngestObserver | None = None, engine: Engine | None = None
    ) -> IngestReport:
        """Carry out a plan.

        Args:
            plan: The plan. Its report is completed.
            observer: Follows the ingest, and may cancel it.
            engine: Engine that reads files and embeds texts; None for this process.

        Returns:
            The report of the plan.

        Raises:
            CollectionNotFoundError: The collection does not exist.
            ModelError: No text can be embedded.
            StoreError: The store cannot be written.
            EngineError: The engine does not work.
        """

    @abstractmethod
    def _forget_missing(self, plan: IngestPlan) -> None:
        """Forget files that were not searchable and are not in the folders that a plan has listed."""

    @abstractmethod
    def _check_collection(self, name: str) -> None:
        """Raise `CollectionNotFoundError` if the collection does not exist."""

    @abstractmethod
    def _stored_below(self, folder: Path, collection: str) -> Sequence[SourceInfo]:
        """Return the sources that may come from a folder of this machine."""

    @abstractmethod
    def _kept_patterns(self, folder: Path, collection: str) -> Sequence[str] | None:
        """Return the patterns that are kept with a folder of this machine; None if the store keeps none."""

    @abstractmethod
    def _limits(self) -> ExtractLimits:
        """Return the limits of web pages."""

    def _readers(self) -> Mapping[str, AddedReader]:
        """Return the readers of the configuration, by suffix; a server may have some that a client does not know."""
        return {}

    def ingest_file(self, path: str | Path, collection: str, **options: Unpack[IngestOptions]) -> int:
        """Ingest one file, named after the file, or the files of a zip file.

        If another file or a text has this name, it is replaced only with ``replace``. A file that was moved is not
        another file.

        Args:
            path: Path of the file.
            collection: Name of the collection.
            options: See `IngestOptions`.

        Returns:
            Number of chunks written; 0 if the file has not changed.

        Raises:
            SourceError: The file cannot be read, or its name is already used.
            InvalidMetadataError: See `ingest_text`.
            EmbeddingGenerationError: The model refuses a chunk.
            CollectionNotFoundError: The collection does not exist.
        """
        if os.path.isdir(path):  # noqa: PTH112, which is false for a name that is too long
            raise SourceError(f"{str(path)!r} is a folder; ingest it with `ingest_folder`")
        return _chunks_or_raise(self.ingest_paths([path], collection, **options))

    def ingest_text(self, text: str, source: str, collection: str, **options: Unpack[IngestOptions]) -> int:
        """Ingest a text under a name.

        Args:
            text: The text.
            source: Name of the source, such as ``notes.md``.
            collection: Name of the collection.
            options: See `IngestOptions`.

        Returns:
            Number of chunks written; 0 if the text has not changed.

        Raises:
            SourceError: The name is empty, or belongs to another source.
            InvalidMetadataError: A key is reserved, or a key or value is not allowed.
            EmbeddingGenerationError: The model refuses a chunk.
            CollectionNotFoundError: The collection does not exist.
        """
        if not source:
            raise SourceError("the name of the source is empty; give a name such as 'notes.md'")
        return _chunks_or_raise(self.ingest_paths([SourceText(text, source)], collection, **options))

    def ingest_folder(self, path: str | Path, collection: str, **options: Unpack[IngestOptions]) -> IngestReport:
        """Ingest every readable file below a folder; see `ingest_paths`."""
        return self.ingest_paths([path], collection, **options)

    def ingest_paths(
        self, paths: Sequence[Given] | Given, collection: str, **options: Unpack[IngestOptions]
    ) -> IngestReport:
        """Ingest files, folders and web pages.

        A file that cannot be read is reported, and the other files are ingested.

        Args:
            paths: Paths of files, folders and zip files, URLs, `SourceText` and `SourceBytes`. Pages are fetched as far
                as robots.txt allows. A folder without readable files is reported as failed, unless it is the only path.
            collection: Name of the collection.
            options: See `IngestOptions`.

        Raises:
            InvalidMetadataError: See `ingest_text`. Nothing is ingested.
            SourceNotFoundError: A path does not exist. Nothing is ingested.
            SourceError: The only path is a folder that cannot be read, or has no readable file.
            ModelError: No text can be embedded.
            EngineError: The engine does not work.
        """
        from ragistry.library.ingest.plan import Given, IngestOptions, IngestPlan, plan_ingest

        self._check_collection(collection)
        if unknown := options.keys() - IngestOptions.__annotations__.keys():
            raise TypeError(f"an ingest has no option {min(unknown)!r}; its options are those of `IngestOptions`")
        engine, observer = options.get("engine"), options.get("observer")
        if isinstance(engine, str):
            raise ConfigError(
                f"engine must be an engine, such as RayEngine(), got {engine!r}; leave it out for this process"
            )
        plan = IngestPlan(collection, replace=options.get("replace", False), prune=options.get("prune", False))
        try:
            with with_readers(self._readers()):
                plan_ingest(
                    plan,
                    [paths] if isinstance(paths, Given) else paths,
                    lambda folder: self._stored_below(folder, collection),
                    lambda folder: self._kept_patterns(folder, collection),
                    self._limits(),
                    options,
                )
        except SourceError:
            with suppress(RagistryError):
                self._forget_missing(plan)
            raise
        observer = observer or ProgressObserver(options.get("progress"))
        observer.planned(plan.report)
        return self.carry_out(plan, observer=observer, engine=engine)

    async def aingest_paths(
        self, paths: Sequence[Given] | Given, collection: str, **options: Unpack[IngestOptions]
    ) -> IngestReport:
        """Run `ingest_paths` in a thread of a pool. If the task is cancelled, the sources written so far stay."""
        from ragistry.library.pool import run_cancellable

        cancelling = CancellingObserver(options.get("observer") or ProgressObserver(options.get("progress")))
        options["observer"] = cancelling
        return await run_cancellable(
            lambda: self.ingest_paths(paths, collection, **options), cancelling.cancelled.set, CancelledIngest
        )


def _chunks_or_raise(report: IngestReport) -> int:
    if report.failed:
        raise report.failed[0].cause
    return report.chunks


TEXTS_AT_ONCE = 32
"""About a second of work for a model on a small machine, and several batches for each core."""


class ObservedEmbedder:
    """Embeds texts in small batches, and reports each batch to an observer.

    The observer's ``check`` may raise an error to end the call.
    """

    def __init__(self, embedder: Embedder, observer: IngestObserver) -> None:
        self.embedder = embedder
        self._observer = observer

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        return self.embedder.fingerprint

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Vectors:
        """See `Embedder.embed`."""
        import numpy as np

        rows = []
        for first in range(0, max(1, len(texts)), TEXTS_AT_ONCE):
            self._observer.check()
            rows.append(self.embedder.embed(texts[first : first + TEXTS_AT_ONCE], role=role))
            self._observer.embedded(len(rows[-1]))
        return np.concatenate(rows)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """See `Embedder.count_tokens`."""
        self._observer.counted(len(texts))
        return self.embedder.count_tokens(texts)
