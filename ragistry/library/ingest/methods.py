"""The ingest methods of a library, here and over HTTP: each makes a plan and carries it out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ragistry.errors import ConfigError, SourceError
from ragistry.library.ingest.source import SourceBytes, SourceText
from ragistry.protocols import Embedder
from ragistry.types import EmbedderFingerprint, Progress, Role, SourceInfo
from ragistry.utils.documents.extracted import ExtractLimits

if TYPE_CHECKING:  # what only an ingest needs is imported by it
    from ragistry.library.ingest.plan import IngestPlan
    from ragistry.library.ingest.report import IngestReport
    from ragistry.protocols import Engine, Vectors


class IngestObserver:
    """Follows an ingest. Subclasses override what they need; an error that a method raises ends the ingest.

    ``detailed``: whether it overrides more than `progress`, so that texts are embedded in smaller batches.
    """

    detailed: ClassVar[bool] = True

    def progress(self, source_file: str, done: int, total: int) -> None:
        """Called before each source is read, and at the end with an empty name."""

    def counted(self, texts: int) -> None:
        """Called with the number of chunks of a source; again if it is split into smaller ones."""

    def embedded(self, texts: int) -> None:
        """Called with the number of chunks that were embedded now."""

    def check(self) -> None:
        """Called between two steps of a second or so; raises to cancel."""


class ProgressObserver(IngestObserver):
    """Calls a function of progress."""

    detailed = False

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress

    def progress(self, source_file: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(source_file, done, total)


class IngestMethods:
    """Plans ingests. Subclasses carry them out and know what is stored."""

    def carry_out(
        self, plan: IngestPlan, *, observer: IngestObserver | None = None, engine: Engine | None = None
    ) -> IngestReport:
        """Carry out a plan and return its report.

        Args:
            plan: The plan; its report is completed.
            observer: Follows and may cancel.
            engine: Where files are read and texts embedded; None for this process.

        Raises:
            CollectionNotFoundError: The collection does not exist.
            ModelError: No text can be embedded.
            StoreError: The store cannot be written.
            EngineError: The engine cannot work.
        """
        raise NotImplementedError

    def _check_collection(self, name: str) -> None:
        """Raise `CollectionNotFoundError` if the collection does not exist."""
        raise NotImplementedError

    def _stored_below(self, folder: Path, collection: str) -> Sequence[SourceInfo]:
        """The sources that may have come from a folder of this machine, with their places."""
        raise NotImplementedError

    def _limits(self) -> ExtractLimits:
        """The limits of web pages."""
        raise NotImplementedError

    def ingest_file(self, path: str | Path, collection: str, *, replace: bool = False) -> int:
        """Ingest one file and return the number of chunks written: 0 if it has not changed.

        Its name in the collection is the bare file name. If another file or a text has that name, it is replaced only
        with ``replace``, or if it is the same file, moved.

        Raises:
            SourceError: The file cannot be read, or its name is taken.
            EmbeddingGenerationError: The model refuses a chunk.
            CollectionNotFoundError: The collection does not exist.
        """
        from ragistry.library.ingest.folder import check_path, one_file
        from ragistry.library.ingest.own_files import refuse_own_file
        from ragistry.library.ingest.plan import IngestPlan

        check_path(path, "file")
        refuse_own_file(path)
        return self._chunks_or_raise(IngestPlan(collection, [one_file(path)], replace=replace))

    def ingest_text(self, text: str, source: str, collection: str) -> int:
        """Ingest a text under a name and return the number of chunks written: 0 if it has not changed."""
        from ragistry.library.ingest.plan import IngestPlan

        if not source:
            raise SourceError("the name of the source is empty; give it one, such as 'notes.md'")
        return self._chunks_or_raise(IngestPlan(collection, [SourceText(text, source)]))

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
        """Ingest every readable file below a folder. A file that cannot be read is reported, and the rest goes in.

        Args:
            path: The folder, or a zip file.
            collection: Name of the collection.
            prune: Delete sources whose files were below this folder and are gone. Otherwise they are only reported, in
                ``vanished``. Nothing is deleted if a part of the folder cannot be listed, or if the folder has no file:
                an unmounted disk looks the same.
            follow_links: Enter links that lead out of the folder; otherwise they are left out with a warning.
            replace: See `ingest_file`.
            progress: Called before each source.
            engine: Where files are read and texts embedded; None for this process.

        Raises:
            SourceError: The folder cannot be read, or nothing in it.
            ModelError: No text can be embedded.
            EngineError: The engine cannot work.
        """
        from ragistry.library.ingest.folder import check_path

        check_path(path, "folder")
        return self.ingest_paths(
            [path],
            collection,
            prune=prune,
            follow_links=follow_links,
            replace=replace,
            progress=progress,
            engine=engine,
        )

    def ingest_paths(
        self,
        paths: Sequence[str | Path | SourceBytes] | str | Path | SourceBytes,
        collection: str,
        *,
        prune: bool = False,
        follow_links: bool = False,
        replace: bool = False,
        allow_private: bool = False,
        changed: Collection[str] | None = None,
        progress: Progress | None = None,
        observer: IngestObserver | None = None,
        engine: Engine | None = None,
    ) -> IngestReport:
        """Ingest files, folders and web pages; see `ingest_folder`.

        Args:
            paths: Paths of files, folders and zip files, URLs, and bytes that are on no disk. A page is fetched as its
                robots.txt allows. A folder with nothing readable is reported as failed, if it is not the only path.
            collection: Name of the collection.
            prune: See `ingest_folder`.
            follow_links: See `ingest_folder`.
            replace: See `ingest_file`.
            allow_private: Fetch pages from private addresses too.
            changed: Read only the files of folders at and below these paths; None to read all.
            progress: Called before each source.
            observer: Follows the ingest in detail and may cancel it; instead of ``progress``.
            engine: See `ingest_folder`.

        Raises:
            SourceNotFoundError: A path does not exist. Nothing is ingested then.
        """
        from ragistry.library.ingest.plan import plan_ingest

        self._check_collection(collection)
        if isinstance(engine, str):
            raise ConfigError(
                f"engine must be an engine, such as RayEngine(), got {engine!r}; leave it out for this process"
            )
        plan = plan_ingest(
            [paths] if isinstance(paths, str | Path | SourceBytes) else paths,
            collection,
            lambda folder: self._stored_below(folder, collection),
            limits=self._limits(),
            prune=prune,
            follow_links=follow_links,
            replace=replace,
            allow_private=allow_private,
            changed=changed,
        )
        return self.carry_out(plan, observer=observer or ProgressObserver(progress), engine=engine)

    def _chunks_or_raise(self, plan: IngestPlan) -> int:
        report = self.carry_out(plan)
        if report.failed:
            raise report.failed[0].cause
        return report.chunks


TEXTS_AT_ONCE = 32
"""A second or two of work for a model on a small machine, and several batches for each of its cores."""


class ObservedEmbedder:
    """Tells an observer about every few texts; what its ``check`` raises ends the call."""

    def __init__(self, embedder: Embedder, observer: IngestObserver) -> None:
        self.embedder = embedder
        self._observer = observer

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        return self.embedder.fingerprint

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Vectors:
        """As `Embedder.embed`."""
        import numpy as np

        rows = []
        for first in range(0, max(1, len(texts)), TEXTS_AT_ONCE):
            self._observer.check()
            rows.append(self.embedder.embed(texts[first : first + TEXTS_AT_ONCE], role=role))
            self._observer.embedded(len(rows[-1]))
        return np.concatenate(rows)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """As `Embedder.count_tokens`."""
        self._observer.counted(len(texts))
        return self.embedder.count_tokens(texts)
