"""What is being taken in: one after the other in the background, seen by every window, and after a reload."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import Event, Lock
from typing import Literal

from ragistry.errors import RagistryError, SourceError
from ragistry.library.ingest.methods import IngestObserver
from ragistry.library.ingest.report import Failure, IngestReport
from ragistry.library.service import DocumentService
from ragistry.web.blank import blank_replacements, refusal
from ragistry.web.uploads import Uploads

State = Literal["waiting", "running", "done", "failed"]
NICENESS = 10
"""Of the thread that takes in: beside it, a question gets nine tenths of a core."""
KEPT = 20
"""Jobs that are remembered after they ended."""
STOPPED = "the page was stopped; add the files again when it runs"


class StoppedError(RagistryError):
    """The page ends before the job does."""


@dataclass(slots=True)
class Job:
    """Files or folders on their way into a collection.

    ``done``: paths that have ended; ``stage``: what happens to the next one, ``inside``: which share of that is done.
    ``stages``: of each file that has ended, by its name. ``error``: why the job ended early; ``failures``: of files,
    and what else is to be known.
    """

    number: int
    collection: str
    label: str
    paths: list[Path]
    prune: bool = False
    replace: bool = False
    state: State = "waiting"
    stage: str = ""
    done: int = 0
    inside: float = 0.0
    error: str = ""
    summary: str = ""
    stages: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    @property
    def ended(self) -> bool:
        return self.state in ("done", "failed")

    @property
    def share(self) -> float:
        """How much of it is done, 0 to 1."""
        return min(1.0, (self.done + self.inside) / max(1, len(self.paths)))

    def files(self) -> list[tuple[str, str]]:
        """Where several files were given, the name of each and how far it is."""
        if len(self.paths) < 2:
            return []
        return [(path.name, self._stage_of(place, path.name)) for place, path in enumerate(self.paths)]

    def _stage_of(self, place: int, name: str) -> str:
        if name in self.stages:
            return self.stages[name]
        if self.ended:
            return "not added"
        return self.stage if self.state == "running" and place == self.done else "waiting"


class _Steps(IngestObserver):
    """Writes into a job how far the path is that is being taken in: sources read, then their chunks embedded."""

    def __init__(self, job: Job, check: Callable[[], None]) -> None:
        self._job = job
        self.check = check  # type: ignore[method-assign]
        self._before = self._here = self._embedded = 0
        self._read = self._sources = 0
        self._say("reading", 0.0)

    def progress(self, name: str, done: int, total: int) -> None:
        self.check()
        self._before, self._here = self._before + self._here, 0
        self._read, self._sources = done, total
        if name:
            self._say("reading" if total == 1 else f"reading {done + 1:,} of {total:,}: {name}", done / total)

    def counted(self, texts: int) -> None:
        self._here = texts  # more than once for a source that is cut again to fit the model: the last count holds

    def embedded(self, texts: int) -> None:
        self._embedded += texts
        total = max(self._before + self._here, self._embedded)
        said, share = f"embedding {self._embedded:,} of {total:,}", self._embedded / total
        if self._sources > 1:
            said, share = f"{said}, {self._read + 1:,} of {self._sources:,} files read", self._read / self._sources
        self._say(said, share)

    def _say(self, stage: str, inside: float) -> None:
        self._job.stage, self._job.inside = stage, inside


class Jobs:
    """Takes in, one job at a time: the library has one writer."""

    def __init__(self, library: Callable[[], DocumentService], uploads: Uploads) -> None:
        self._library = library
        self._uploads = uploads
        self._numbers = count(1)
        self._jobs: list[Job] = []
        self._lock = Lock()
        self._closing = Event()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="ingest", initializer=give_way)

    def add(self, collection: str, paths: list[Path], label: str, *, prune: bool = False, replace: bool = False) -> Job:
        """Take in files and folders as soon as what was added before has ended."""
        job = Job(next(self._numbers), collection, label, paths, prune, replace)
        with self._lock:
            ended = [known for known in self._jobs if known.ended]
            forgotten = {known.number for known in ended[: max(0, len(ended) - KEPT)]}
            self._jobs = [known for known in self._jobs if known.number not in forgotten] + [job]
        try:
            self._worker.submit(self._run, job)
        except RuntimeError:  # closed: a file may arrive in the last moment
            self._drop(job)
        return job

    def of(self, collection: str | None = None) -> list[Job]:
        """The jobs of a collection, or of all, the newest first."""
        with self._lock:
            return [job for job in reversed(self._jobs) if collection in (None, job.collection)]

    def pending(self, collection: str) -> list[Path]:
        """What is on its way into a collection, or waits for it."""
        return [path for job in self.of(collection) if not job.ended for path in job.paths]

    def forget(self, number: int) -> None:
        """No longer show a job that has ended."""
        with self._lock:
            self._jobs = [job for job in self._jobs if job.number != number or not job.ended]

    def open(self) -> list[Job]:
        """The jobs that have not ended, in their order."""
        with self._lock:
            return [job for job in self._jobs if not job.ended]

    def stopped(self) -> list[Job]:
        """Those that did not come to their end because the page was stopped."""
        with self._lock:
            return [job for job in self._jobs if job.error == STOPPED]

    def stop(self) -> None:
        """End the job that runs before its next source or batch of chunks, and start no other."""
        self._closing.set()

    def close(self) -> None:
        """Stop, and wait until the job that runs has ended; what is written by then is whole."""
        self.stop()
        self._worker.shutdown(wait=True, cancel_futures=True)
        for job in self.open():
            self._drop(job)

    def _drop(self, job: Job) -> None:
        """Say that it was stopped before it began, and remove its files."""
        self._uploads.forget(job.paths)
        job.error, job.state = STOPPED, "failed"

    def _check(self) -> None:
        if self._closing.is_set():
            raise StoppedError(STOPPED)

    def _run(self, job: Job) -> None:
        try:
            job.state = "running"
            library = self._library()
            with self._uploads.swept(library.store, job.collection, job.paths):
                report = self._take_in(job, library)
        except RagistryError as error:
            job.error, job.state = str(error), "failed"
        except Exception as error:  # noqa: BLE001, the page reports what nobody foresaw, and the next job still runs
            job.error, job.state = f"{type(error).__name__}: {error}", "failed"
        else:
            job.failures = list(dict.fromkeys([*_said_of_no_file(job, report), *_vanished(report)]))
            job.summary, job.state = summary(report), "done"
        job.stage = ""

    def _take_in(self, job: Job, library: DocumentService) -> IngestReport:
        """One path after the other, so that each file can be found as soon as it is said to be."""
        whole = IngestReport()
        for path in job.paths:
            self._check()
            steps = _Steps(job, self._check)
            report = self._taken(job, path, library, steps)
            whole.merge(report)
            job.stages[path.name] = _stage(path, report)
            job.done += 1
        return whole

    def _taken(self, job: Job, path: Path, library: DocumentService, steps: _Steps) -> IngestReport:
        try:
            if job.replace and blank_replacements([path], job.collection, library):
                raise refusal(path)
            return library.ingest_paths([path], job.collection, prune=job.prune, replace=job.replace, observer=steps)
        except SourceError as error:
            return IngestReport(failed=[Failure(str(path), error)])


def _stage(path: Path, report: IngestReport) -> str:
    """What became of one path, in words; a file is called by its own name, wherever it is kept."""
    if report.failed:
        return f"failed: {_by_name(report.failed[0].error, path)}"
    notes = [line.removeprefix(f"{path.name}: ") for line in report.warnings if line.startswith(path.name)]
    if report.added or report.updated:
        return "; ".join(["searchable", *notes])
    return "; ".join(notes) or "unchanged, searchable"


def _said_of_no_file(job: Job, report: IngestReport) -> list[str]:
    """What the stages of several files do not say: of one file or of a folder, everything."""
    names = tuple(f"{path.name}:" for path in job.paths) if len(job.paths) > 1 else ()
    failed = [] if names else [_by_name(failure.error, job.paths[0]) for failure in report.failed]
    return failed + [line for line in report.warnings if not line.startswith(names)]


def _by_name(error: str, path: Path) -> str:
    return error if path.is_dir() else error.replace(str(path), path.name)


def _vanished(report: IngestReport) -> list[str]:
    gone = [name for name in report.vanished if name not in report.deleted]
    if not gone:
        return []
    return [f"{len(gone)} no longer in the folder: {', '.join(gone[:5])}; tick Remove, and add it again"]


def give_way() -> None:
    """Let questions go first: on Linux niceness belongs to a thread, and the threads that it starts inherit it."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


def summary(report: IngestReport) -> str:
    """What came of it, in one line."""
    kinds = ("added", "updated", "skipped", "deleted", "failed")
    counts = [f"{len(getattr(report, kind))} {kind}" for kind in kinds if getattr(report, kind)]
    return ", ".join(counts) or "nothing to take in"
