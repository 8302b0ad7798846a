"""Ingest files and folders of this machine in a background job, which the page adds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragistry.chunking.chunker import chunk_extracted
from ragistry.errors import SourceError
from ragistry.library.ingest.folder import is_folder
from ragistry.library.ingest.methods import IngestObserver
from ragistry.library.ingest.report import Failure, IngestReport, left_out_line, report_as_mapping
from ragistry.library.ingest.source import ReadOptions
from ragistry.library.service import DocumentService
from ragistry.readers.extract import extract
from ragistry.server.jobs import RunningJob, SavedJob


def ingest_paths(library: DocumentService, running: RunningJob, whole: IngestReport) -> None:
    """Ingest one path after the other, so that each file can be searched as soon as it is shown as searchable.

    The request of the job is ``{"paths", "label", "prune", "replace", "refused", "unneeded"}``: the files and folders,
    the name that is shown, the options of the ingest, names and reasons of files that were not accepted, and uploaded
    files that no source needs after the job. ``whole`` gets the reports of all paths.
    """
    job = running.job
    paths = [Path(path) for path in job.request["paths"]]
    job.total = len(paths)
    for path in paths:
        running.check()
        report = _ingest_path(path, library, running)
        whole.merge(report)
        job.stages[path.name] = _result(path, report)
        _add_notes(job, _other_messages(job, path, report))
        job.done, job.inside = job.done + 1, 0.0
    if gone := [name for name in whole.vanished if name not in whole.deleted]:
        listed = ", ".join(gone[:5])
        _add_notes(job, [f"{len(gone)} no longer in the folder: {listed}; tick Remove, and add the folder again"])


def has_lines(job: SavedJob) -> bool:
    """Return whether each file has a line of its own, because there are several."""
    return len(job.request["paths"]) + len(job.request["refused"]) > 1


def summary(report: Mapping[str, Any]) -> str:
    """Return the numbers of a report in one line."""
    kinds = ("added", "updated", "skipped", "deleted", "failed")
    counts = [f"{len(report[kind])} {kind}" for kind in kinds if report[kind]]
    return ", ".join(counts) or "nothing to ingest"


class _PathObserver(IngestObserver):
    """Record the progress of the current path in its job: sources read, then chunks embedded."""

    def __init__(self, running: RunningJob, path: Path) -> None:
        self._job, self._path = running.job, path
        self.check = running.check  # type: ignore[method-assign]
        self._before = self._here = self._embedded = 0
        self._read = self._sources = 0
        self._record("reading", 0.0)

    def planned(self, report: IngestReport) -> None:
        own = () if self._path.is_dir() else (self._path.name,)  # which the line of a file has
        _add_notes(self._job, [line for line in report.warnings if not line.startswith(own)])

    def progress(self, source_file: str, done: int, total: int) -> None:
        self.check()
        self._before, self._here = self._before + self._here, 0
        self._read, self._sources = done, total
        if source_file:
            stage = "reading" if total == 1 else f"reading {done + 1:,} of {total:,}: {source_file}"
            self._record(stage, done / total)

    def counted(self, texts: int) -> None:
        self._here = texts  # called again if a source is split again to fit the model; the last count is valid

    def embedded(self, texts: int) -> None:
        self._embedded += texts
        total = max(self._before + self._here, self._embedded)
        stage, share = f"embedding {self._embedded:,} of {total:,}", self._embedded / total
        if self._sources > 1:
            read = min(self._read + 1, self._sources)
            stage = f"{stage}, {read:,} of {self._sources:,} files read"
            share = share if read == self._sources else self._read / self._sources
        self._record(stage, share)

    def _record(self, stage: str, inside: float) -> None:
        self._job.current, self._job.inside = stage, inside


def _add_notes(job: SavedJob, notes: list[str]) -> None:
    job.notes = list(dict.fromkeys([*job.notes, *notes]))


def _ingest_path(path: Path, library: DocumentService, running: RunningJob) -> IngestReport:
    collection, request = running.job.collection or "", running.job.request
    prune, replace = request["prune"], request["replace"]
    try:
        is_replacement = replace and path.name in library.list_sources(collection) and path.is_file()
        if is_replacement and _is_blank(path, library.reading):
            raise SourceError(
                f"{path.name!r} has no text, so the existing source of this name stays; delete it if you do not need it"
            )
        observer = _PathObserver(running, path)
        return library.ingest_paths([path], collection, prune=prune, replace=replace, observer=observer)
    except SourceError as error:
        return IngestReport(failed=[Failure(str(path), error)])


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
        return f"searchable: {summary(report_as_mapping(report, ''))}"
    if report.failed:
        return f"failed: {_with_name(report.failed[0].error, path)}"
    notes = [line.removeprefix(f"{path.name}: ") for line in report.warnings if line.startswith(path.name)]
    if report.added or report.updated:
        return "; ".join(["searchable", *notes])
    return "; ".join(notes) or "unchanged, searchable"


def _other_messages(job: SavedJob, path: Path, report: IngestReport) -> list[str]:
    """Return the messages about a path that are not shown in its line."""
    if has_lines(job) and not is_folder(path):
        return [line for line in report.warnings if not line.startswith(f"{path.name}:")]
    errors = [failure.error for failure in report.failed]
    if has_lines(job) and not (report.added or report.updated or report.skipped):
        errors = errors[1:]  # the line has the first one
    line = left_out_line(report)
    left_out = [f"left out of {path.name}: {line}"] if line else []
    return [*(_with_name(line, path) for line in (*errors, *report.warnings)), *left_out]


def _with_name(error: str, path: Path) -> str:
    return error if path.is_dir() else error.replace(str(path), path.name)
