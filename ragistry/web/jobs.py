"""What is being taken in: one after the other in the background, seen by every window, and after a reload."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import Event, Lock
from typing import Literal

from ragistry.errors import RagistryError
from ragistry.library.report import Failure, IngestReport
from ragistry.library.service import DocumentService
from ragistry.web.blank import blank_replacements, refusal
from ragistry.web.stoppable import Stoppable
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

    ``outcome``: what became of each source, by the name of its file; ``error``: why it ended early; ``failures``: of
    single files, and what else is to be known.
    """

    number: int
    collection: str
    label: str
    paths: list[Path]
    prune: bool = False
    replace: bool = False
    state: State = "waiting"
    current: str = ""
    done: int = 0
    total: int = 0
    error: str = ""
    summary: str = ""
    outcome: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    @property
    def ended(self) -> bool:
        return self.state in ("done", "failed")

    def files(self) -> list[tuple[str, str]]:
        """Where several files were given, the name of each and how far it is."""
        if len(self.paths) < 2:
            return []
        return [(path.name, self._state_of(place, path.name)) for place, path in enumerate(self.paths)]

    def _state_of(self, place: int, name: str) -> str:
        if self.state != "running":
            return self.outcome.get(name, self.state)
        return "waiting" if place > self.done else "being read" if place == self.done else "read"


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
        job = Job(next(self._numbers), collection, label, paths, prune, replace, total=len(paths))
        with self._lock:
            ended = [known for known in self._jobs if known.ended]
            forgotten = {known.number for known in ended[: max(0, len(ended) - KEPT)]}
            self._jobs = [known for known in self._jobs if known.number not in forgotten] + [job]
        try:
            self._worker.submit(self._run, job)
        except RuntimeError:  # closed: a file may arrive in the last moment
            self._drop(job)
        return job

    def of(self, collection: str) -> list[Job]:
        """The jobs of a collection, the newest first."""
        with self._lock:
            return [job for job in reversed(self._jobs) if job.collection == collection]

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
            library = copy(self._library())
            library.embedder = Stoppable(library.embedder, self._check)
            with self._uploads.swept(library.store, job.collection, job.paths):
                report = self._take_in(job, library)
        except RagistryError as error:
            job.error, job.state = str(error), "failed"
        except Exception as error:  # noqa: BLE001, the page reports what nobody foresaw, and the next job still runs
            job.error, job.state = f"{type(error).__name__}: {error}", "failed"
        else:
            job.failures = [failure.error for failure in report.failed] + report.warnings + _vanished(report)
            job.summary, job.outcome = summary(report), _outcome(report)
            job.state = "done"
        job.current = ""

    def _take_in(self, job: Job, library: DocumentService) -> IngestReport:
        def progress(name: str, done: int, total: int) -> None:
            self._check()
            job.current, job.done, job.total = name, done, total

        self._check()
        blank = blank_replacements(job.paths, job.collection, library) if job.replace else []
        paths = [path for path in job.paths if path not in blank]
        job.paths = paths + blank
        report = library.ingest_paths(paths, job.collection, prune=job.prune, replace=job.replace, progress=progress)
        report.failed.extend(Failure(str(path), refusal(path)) for path in blank)
        return report


def _outcome(report: IngestReport) -> dict[str, str]:
    kinds = ("added", "updated", "skipped")
    taken = {name: kind for kind in kinds for name in getattr(report, kind)}
    return taken | {Path(failure.source).name: "failed" for failure in report.failed}


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
