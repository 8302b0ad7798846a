"""Background jobs of the page that ingest files and folders. All windows show them, also after a reload."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from time import time

from ragistry.chunking.chunker import chunk_extracted
from ragistry.errors import SourceError
from ragistry.http.jobs import Job, JobRunner, State, error_text
from ragistry.library.ingest.folder import is_folder
from ragistry.library.ingest.methods import IngestObserver
from ragistry.library.ingest.report import Failure, IngestReport, left_out_line
from ragistry.library.ingest.source import ReadOptions
from ragistry.library.service import DocumentService
from ragistry.readers.extract import extract
from ragistry.web.uploads import Uploads

KEPT = 20
"""Number of ended jobs that are shown."""
STOPPED = "the page was stopped; start it again and add the files again"


@dataclass(slots=True, eq=False)
class IngestJob(Job):
    """An ingest of files or folders.

    Attributes:
        number: Number of the job.
        collection: Target collection.
        label: Name that is shown.
        paths: Files and folders.
        prune: Delete sources whose files are no longer in the folder.
        replace: Replace sources of the same name.
        refused: Name and reason of each file that was not accepted.
        stage: What happens to the current path.
        done: Number of processed paths.
        inside: Progress of the current path, 0 to 1.
        error: Reason of a failed job.
        summary: Numbers of added, updated and other sources.
        stages: Result of each processed path, by file name.
        failures: Errors and warnings that are not in ``stages``.
    """

    number: int
    collection: str
    label: str
    paths: list[Path]
    prune: bool = False
    replace: bool = False
    refused: Sequence[tuple[str, str]] = ()
    stage: str = ""
    done: int = 0
    inside: float = 0.0
    error: str = ""
    summary: str = ""
    stages: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Progress of the job, 0 to 1."""
        return min(1.0, (self.done + self.inside) / max(1, len(self.paths)))

    @property
    def has_lines(self) -> bool:
        """Whether each file has a line of its own, because there are several."""
        return len(self.paths) + len(self.refused) > 1

    def files(self) -> list[tuple[str, str]]:
        """Return name and stage of each file, if there are several."""
        if not self.has_lines:
            return []
        stages = [(path.name, self._stage_of(place, path.name)) for place, path in enumerate(self.paths)]
        return stages + [(name, f"not added: {reason}") for name, reason in self.refused]

    def _stage_of(self, place: int, name: str) -> str:
        if name in self.stages:
            return self.stages[name]
        if self.ended:
            return "not added"
        return self.stage if self.state == "running" and place == self.done else "waiting"


class _JobProgress(IngestObserver):
    """Record the progress of the current path in its job: sources read, then chunks embedded."""

    def __init__(self, job: IngestJob, check: Callable[[], None]) -> None:
        self._job = job
        self.check = check  # type: ignore[method-assign]
        self._before = self._here = self._embedded = 0
        self._read = self._sources = 0
        self._record("reading", 0.0)

    def planned(self, report: IngestReport) -> None:
        if self._job.paths[self._job.done].is_dir():
            self._job.failures = list(dict.fromkeys([*self._job.failures, *report.warnings]))

    def progress(self, name: str, done: int, total: int) -> None:
        self.check()
        self._before, self._here = self._before + self._here, 0
        self._read, self._sources = done, total
        if name:
            self._record("reading" if total == 1 else f"reading {done + 1:,} of {total:,}: {name}", done / total)

    def counted(self, texts: int) -> None:
        self._here = texts  # called again if a source is split again to fit the model; the last count is valid

    def embedded(self, texts: int) -> None:
        self._embedded += texts
        total = max(self._before + self._here, self._embedded)
        stage, share = f"embedding {self._embedded:,} of {total:,}", self._embedded / total
        if self._sources > 1:
            stage, share = f"{stage}, {self._read + 1:,} of {self._sources:,} files read", self._read / self._sources
        self._record(stage, share)

    def _record(self, stage: str, inside: float) -> None:
        self._job.stage, self._job.inside = stage, inside


class IngestJobs(JobRunner[IngestJob]):
    """Run ingests one after the other.

    Args:
        library: Returns the library.
        uploads: The uploaded files of the page.
    """

    def __init__(self, library: Callable[[], DocumentService], uploads: Uploads) -> None:
        super().__init__(kept=KEPT)
        self._library = library
        self._uploads = uploads
        self._numbers = count(1)

    def add(
        self,
        collection: str,
        paths: list[Path],
        label: str,
        *,
        prune: bool = False,
        replace: bool = False,
        refused: Sequence[tuple[str, str]] = (),
    ) -> IngestJob:
        """Ingest files and folders after the jobs that were added before; see `IngestJob` for the arguments.

        If all files were refused, the job has ended already and only reports them.
        """
        job = IngestJob(next(self._numbers), collection, label, paths, prune, replace, refused)
        if not paths:
            job.failures = [] if job.has_lines else [f"not added: {reason}" for _, reason in refused]
            job.summary, job.state, job.finished = _refused_count(job), "done", time()
        if not self.submit(job) and paths:
            self._drop(job)
        return job

    def of(self, collection: str | None = None) -> list[IngestJob]:
        """Return the jobs of a collection, or all jobs, newest first."""
        return [job for job in reversed(self.all()) if collection in (None, job.collection)]

    def pending(self, collection: str) -> list[Path]:
        """Return the paths that are not yet ingested into a collection."""
        return [path for job in self.of(collection) if not job.ended for path in job.paths]

    def forget(self, number: int) -> None:
        """Stop showing a job that has ended."""
        with self._lock:
            self._jobs = [job for job in self._jobs if job.number != number or not job.ended]

    def stopped(self) -> list[IngestJob]:
        """Return the jobs that are incomplete because the page was stopped."""
        return [job for job in self.all() if job.error == STOPPED]

    def close(self, timeout: float | None = None, *, finish: bool = False) -> None:
        """Stop, wait until the running job has ended, and remove the files of waiting jobs."""
        super().close(timeout, finish=finish)
        for job in self.open():
            self._drop(job)

    def work(self, job: IngestJob, check: Callable[[], None]) -> None:
        """Ingest one path after the other, so that each file can be searched as soon as it is shown as searchable."""
        library, whole = self._library(), IngestReport()
        with self._uploads.swept(library.store, job.collection, job.paths):
            for path in job.paths:
                check()
                report = _ingest_path(job, path, library, _JobProgress(job, check))
                whole.merge(report)
                job.stages[path.name] = _result(path, report)
                job.failures = list(dict.fromkeys([*job.failures, *_other_messages(job, path, report)]))
                job.done += 1
        job.failures += _vanished(whole)
        job.summary = ", ".join(filter(None, (summary(whole), _refused_count(job))))

    def end(self, job: IngestJob, state: State, error: Exception | None) -> None:
        """Record the end of a job."""
        job.error = "" if error is None else error_text(error)
        super().end(job, state, error)
        job.stage = ""

    def interrupted(self, job: IngestJob) -> None:
        """Record that the page was stopped."""
        job.error, job.state, job.stage = STOPPED, "failed", ""

    def _drop(self, job: IngestJob) -> None:
        """Remove the files of a job that was stopped before it began."""
        self._uploads.forget(job.paths)
        self.interrupted(job)


def _ingest_path(job: IngestJob, path: Path, library: DocumentService, observer: IngestObserver) -> IngestReport:
    try:
        if job.replace and _is_blank_replacement(path, job.collection, library):
            raise SourceError(
                f"{path.name!r} has no text, so the existing source of this name stays; delete it if you do not need it"
            )
        return library.ingest_paths([path], job.collection, prune=job.prune, replace=job.replace, observer=observer)
    except SourceError as error:
        return IngestReport(failed=[Failure(str(path), error)])


def _is_blank_replacement(path: Path, collection: str, library: DocumentService) -> bool:
    """Return whether a file without text would replace a source."""
    is_replacement = path.name in library.list_sources(collection) and path.is_file()
    return is_replacement and _is_blank(path, library.reading)


def _is_blank(path: Path, reading: ReadOptions) -> bool:
    if path.suffix.lower() == ".pdf":
        return False  # a PDF without text fails later, and is slow to read twice
    try:
        extracted = extract(path, pdf_engine=reading.pdf_engine, limits=reading.limits)
    except SourceError:
        return False  # the ingest reports it and keeps the source
    return not chunk_extracted(extracted, reading.chunk_size, reading.chunk_overlap)


def _result(path: Path, report: IngestReport) -> str:
    """Describe the result of one path. Messages contain the file name instead of the path."""
    if is_folder(path) and (report.added or report.updated or report.skipped):
        return f"searchable: {summary(report)}"
    if report.failed:
        return f"failed: {_with_name(report.failed[0].error, path)}"
    notes = [line.removeprefix(f"{path.name}: ") for line in report.warnings if line.startswith(path.name)]
    if report.added or report.updated:
        return "; ".join(["searchable", *notes])
    return "; ".join(notes) or "unchanged, searchable"


def _other_messages(job: IngestJob, path: Path, report: IngestReport) -> list[str]:
    """Return the messages about a path that are not shown in its line."""
    if job.has_lines and not is_folder(path):
        return [line for line in report.warnings if not line.startswith(f"{path.name}:")]
    errors = [failure.error for failure in report.failed]
    if job.has_lines and not (report.added or report.updated or report.skipped):
        errors = errors[1:]  # the line has the first one
    line = left_out_line(report)
    left_out = [f"left out of {path.name}: {line}"] if line else []
    return [*(_with_name(line, path) for line in (*errors, *report.warnings)), *left_out]


def _refused_count(job: IngestJob) -> str:
    return f"{len(job.refused)} not added" if job.refused else ""


def _with_name(error: str, path: Path) -> str:
    return error if path.is_dir() else error.replace(str(path), path.name)


def _vanished(report: IngestReport) -> list[str]:
    gone = [name for name in report.vanished if name not in report.deleted]
    if not gone:
        return []
    return [f"{len(gone)} no longer in the folder: {', '.join(gone[:5])}; tick Remove, and add the folder again"]


def summary(report: IngestReport) -> str:
    """Return the numbers of a report in one line."""
    kinds = ("added", "updated", "skipped", "deleted", "failed")
    counts = [f"{len(getattr(report, kind))} {kind}" for kind in kinds if getattr(report, kind)]
    return ", ".join(counts) or "nothing to ingest"
