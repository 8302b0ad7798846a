"""Background jobs, saved to disk before they are acknowledged and resumed after a restart.

They run in threads, one job of each kind at a time, in the order in which they were added. A job is a folder:
``job.json``, the reports of a comparison, and ``files/`` until the uploaded files of an ended job are deleted. Earlier
versions saved uploaded files there; now they are in a folder of the same name below that of `Uploads`.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock, Thread
from time import time
from typing import Any, Literal
from uuid import uuid4

from filelock import FileLock, Timeout

from ragistry import errors
from ragistry.config.replacing import flush, replace_text
from ragistry.errors import JobNotFoundError, RagistryError, ServerBusyError, StoreLockedError
from ragistry.http.errors import HIDDEN, detail_of, is_hidden
from ragistry.server.access import Caller
from ragistry.server.uploads import Uploads
from ragistry.utils.disk import remedy

_log = logging.getLogger(__name__)

Kind = Literal["ingest", "comparison"]
State = Literal["waiting", "running", "done", "failed", "cancelled"]
ENDED = frozenset({"done", "failed", "cancelled"})
NICENESS = 10
"""Niceness of the threads of jobs: during an ingest, a search gets nine tenths of a core."""
MAX_OPEN = 1_000
"""Maximum number of jobs that have not ended."""
KEPT = 1_000
"""Number of ended jobs that are remembered."""
STATE_FILE, FILES = "job.json", "files"


class StoppedError(RagistryError):
    """The job was cancelled, or the server stops."""


@dataclass(slots=True, eq=False)
class SavedJob:
    """A job of the server.

    Attributes:
        id: Name of its folder.
        kind: Kind of job.
        owner: Name of the token that started it.
        collection: Collection that an ingest writes to.
        request: Arguments of the task.
        created: Time of the request, in seconds since 1970.
        current: Source or stage that is processed.
        done: Number of processed items.
        total: Number of all items.
        report: Result, also of a cancelled or failed ingest.
        error: ``{"type", "message"}`` of a failed job.
        inside: Progress within the current item, 0 to 1.
        stages: Result of each processed path of an ingest, by file name.
        notes: Errors and warnings of an ingest that are not in ``stages``.
        state: State of the job.
        finished: Time of its end, in seconds since 1970.
        cancelled: Set when the job is cancelled.
    """

    id: str
    kind: Kind
    owner: str
    collection: str | None
    request: dict[str, Any]
    created: float
    current: str = ""
    done: int = 0
    total: int = 0
    report: dict[str, Any] | None = None
    error: dict[str, str] | None = None
    inside: float = 0.0
    stages: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    state: State = "waiting"
    finished: float | None = None
    cancelled: Event = field(default_factory=Event)

    @property
    def ended(self) -> bool:
        """Whether the job is done, failed or cancelled."""
        return self.state in ENDED

    def text(self) -> str:
        """Return the job as JSON."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "cancelled"}
        return json.dumps(values, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class RunningJob:
    """Arguments of a task: the job, its folder, the folder of its uploaded files, and ``check``.

    ``check`` raises `StoppedError` when the job must end.
    """

    job: SavedJob
    folder: Path
    files: Path
    check: Callable[[], None]

    def progress(self, current: str, done: int, total: int) -> None:
        """Check, and record the progress; see `types.Progress`."""
        self.check()
        self.job.current, self.job.done, self.job.total = current, done, total


Task = Callable[[RunningJob], Mapping[str, Any]]
"""Does a job and returns its report. It may run again after an interruption."""


class SavedJobs:
    """Run jobs whose files and state are saved in folders.

    Args:
        folder: Folder that contains the folders of the jobs.
        uploads: The uploaded files of the jobs.
        tasks: The task of each kind.

    Raises:
        StoreLockedError: Another server or page runs the jobs of this folder.
    """

    def __init__(self, folder: Path, uploads: Uploads, tasks: Mapping[Kind, Task]) -> None:
        self.folder = folder
        self.uploads = uploads
        self._jobs: list[SavedJob] = []
        self._lock = Lock()
        self._stopping = Event()
        self._is_closed = False
        self._queues: dict[Kind, SimpleQueue[SavedJob | None]] = {}
        self._threads: list[Thread] = []
        self._tasks = tasks
        self._unsaved: dict[str, SavedJob] = {}
        folder.mkdir(parents=True, exist_ok=True)
        self._folder_lock = FileLock(folder / "lock", timeout=0, thread_local=False)
        try:
            self._folder_lock.acquire()
        except Timeout as error:
            raise StoreLockedError(
                f"another `ragistry serve` or `ragistry ui` runs the jobs in {str(folder)!r}; stop it or use it"
            ) from error

    def start(self) -> None:
        """Load all jobs, and resume those that have not ended."""
        for place in self.folder.glob("*.new"):  # not acknowledged
            self._discard(place)
        for job in sorted(_read_all(self.folder), key=lambda job: (job.created, job.id)):
            if job.ended:
                self._remove_files(job)
            else:
                job.state = "waiting"
            self._submit(job)

    @contextmanager
    def new_folder(self) -> Iterator[Path]:
        """Create a folder for the uploaded files of a new job. It is removed if the block does not `add` the job."""
        id = uuid4().hex
        files, place = self.uploads.folder / id, self.folder / f"{id}.new"
        try:
            (place / FILES).mkdir(parents=True)
            files.mkdir(parents=True)
            yield files
        finally:
            if place.exists():
                self._discard(place)

    def _discard(self, place: Path) -> None:
        shutil.rmtree(self.uploads.folder / place.stem, ignore_errors=True)
        shutil.rmtree(place, ignore_errors=True)

    def add(self, files: Path, kind: Kind, caller: Caller, collection: str | None, request: dict[str, Any]) -> SavedJob:
        """Save a job and run it in the background. It survives a crash from then on.

        Args:
            files: Folder with its uploaded files, from `new_folder`.
            kind: Kind of job.
            caller: Caller that starts it.
            collection: Collection that an ingest writes to.
            request: Arguments of the task.

        Raises:
            ServerBusyError: Too many jobs have not ended.
        """
        job = SavedJob(files.name, kind, caller.name, collection, request, time())
        if len(self.unfinished()) >= MAX_OPEN:
            raise ServerBusyError(f"{MAX_OPEN:,} jobs have not ended; wait until some of them end")
        for path in (*files.iterdir(), files, files.parent):
            flush(path)
        place = self.folder / f"{job.id}.new"
        replace_text(place / STATE_FILE, job.text())
        place.rename(self.folder / job.id)
        flush(self.folder)
        self._submit(job)  # if the server is closing, the next one runs it
        return job

    def visible(self, caller: Caller) -> list[SavedJob]:
        """Return the jobs that the caller may see, newest first."""
        is_owner_of_all = caller.may("admin") and not caller.limited
        found = [
            job
            for job in self.all()
            if (job.owner == caller.name or is_owner_of_all)
            and (caller.collections is None or job.collection in caller.collections)
        ]
        return sorted(found, key=lambda job: (job.created, job.id), reverse=True)

    def get(self, id: str, caller: Caller) -> SavedJob:
        """Return a job by its id.

        Raises:
            JobNotFoundError: The job does not exist, or the caller may not see it.
        """
        job = next((job for job in self.visible(caller) if job.id == id), None)
        if job is None:
            raise JobNotFoundError(f"job {id[:100]!r} does not exist; the server forgets old jobs")
        return job

    def all(self) -> list[SavedJob]:
        """Return the jobs, in the order in which they were added or loaded."""
        with self._lock:
            return list(self._jobs)

    def unfinished(self) -> list[SavedJob]:
        """Return the jobs that have not ended, oldest first."""
        return [job for job in self.all() if not job.ended]

    def cancel(self, job: SavedJob) -> None:
        """End a job at its next check; a restart does not resume it. Data that it has written stays."""
        with self._lock:
            before = job.state
            if before == "waiting":
                job.state = "cancelled"
        job.cancelled.set()
        if before == "waiting":
            self._end(job, "cancelled", None)
        elif before == "running":
            self._is_saved(job, "cancelled")

    def remove(self, job: SavedJob) -> None:
        """Remove a job that has ended."""
        with self._lock:
            if job in self._jobs:
                self._jobs.remove(job)
                self._remove_folder(job)

    def stop(self) -> None:
        """End running jobs at their next check, and start no other jobs."""
        self._stopping.set()

    def close(self, *, finish: bool = False) -> None:
        """Stop, and wait until running jobs have ended. The next server resumes them.

        Args:
            finish: Do not stop, but run all jobs to their end.
        """
        if not finish:
            self.stop()
        with self._lock:
            self._is_closed = True
            for queue in self._queues.values():
                queue.put(None)
        for thread in self._threads:
            thread.join()
        self._save_again()
        self._folder_lock.release()

    def _submit(self, job: SavedJob) -> None:
        """Remember a job, and run it after earlier jobs of its kind unless the server is closing."""
        with self._lock:
            self._jobs.append(job)
            if self._is_closed or job.ended:
                return
            if job.kind not in self._queues:
                self._queues[job.kind] = SimpleQueue()
                self._threads.append(
                    Thread(target=self._run_all, args=(job.kind,), daemon=True, name=f"job-{job.kind}")
                )
                self._threads[-1].start()
            self._queues[job.kind].put(job)

    def _run_all(self, kind: Kind) -> None:
        lower_priority()
        queue = self._queues[kind]
        while (job := queue.get()) is not None:
            self._run(job)

    def _run(self, job: SavedJob) -> None:
        def check() -> None:
            if self._stopping.is_set() or job.cancelled.is_set():
                raise StoppedError("the job was stopped")

        with self._lock:
            if job.ended or self._stopping.is_set():
                return
            job.state = "running"
        try:
            folder = self.folder / job.id
            has_own = any((folder / FILES).glob("*"))  # a job of an earlier version
            files = folder / FILES if has_own else self.uploads.folder / job.id
            job.report = dict(self._tasks[job.kind](RunningJob(job, folder, files, check)))
        except StoppedError:
            if not job.cancelled.is_set():
                return
            self._end(job, "cancelled", None)
        except Exception as error:  # noqa: BLE001, the job reports it, and the next job still runs
            self._end(job, "failed", error)
        else:
            self._end(job, "done", None)
        self._forget_old()

    def _forget_old(self) -> None:
        with self._lock:
            ended = sorted((job for job in self._jobs if job.ended), key=lambda job: job.finished or 0.0)
            for job in ended[: max(0, len(ended) - KEPT)]:
                self._jobs.remove(job)
                self._remove_folder(job)

    def _end(self, job: SavedJob, state: State, error: Exception | None) -> None:
        """Save the end of a job, and remove its files."""
        if error is not None:
            _log.error("job %s failed", job.id, exc_info=None if isinstance(error, RagistryError) else error)
            job.error = detail_of(error).model_dump()
        job.current, job.finished = "", time()
        if self._is_saved(job, state):
            self._remove_files(job)
        job.state = state  # the last step: when clients see the end of a job, its files are gone
        self._save_again(but=job)

    def _remove_folder(self, job: SavedJob) -> None:
        shutil.rmtree(self.folder / job.id, ignore_errors=True)

    def _remove_files(self, job: SavedJob) -> None:
        files = self.folder / job.id / FILES
        if files.exists():
            self.uploads.forget_job(job.id, job.request)
            shutil.rmtree(files, ignore_errors=True)

    def _is_saved(self, job: SavedJob, state: State) -> bool:
        """Write the end of a job, and return whether its files are no longer needed.

        If the end cannot be written, a restart does the job again, which is harmless but needs the files.
        """
        try:
            replace_text(self.folder / job.id / STATE_FILE, replace(job, state=state).text())
        except OSError as error:
            _log.error("the end of job %s cannot be written: %s; %s", job.id, error, remedy(error))
            with self._lock:
                self._unsaved[job.id] = job
            return False
        with self._lock:
            self._unsaved.pop(job.id, None)
        return True

    def _save_again(self, but: SavedJob | None = None) -> None:
        """Write the ends that could not be written before."""
        with self._lock:
            unsaved = [job for job in self._unsaved.values() if job is not but and job.ended]
        for job in unsaved:
            if self._is_saved(job, job.state):
                self._remove_files(job)


def _read_all(folder: Path) -> Iterator[SavedJob]:
    known = {one.name for one in fields(SavedJob)}
    for place in sorted(folder.iterdir()):
        if place.is_dir():
            try:
                values = json.loads((place / STATE_FILE).read_text(encoding="utf-8"))
                yield SavedJob(**{name: value for name, value in values.items() if name in known})
            except (OSError, ValueError, TypeError) as error:
                _log.error("%s is not readable as a job (%s); it is ignored", place, error)


def as_mapping(job: SavedJob, caller: Caller) -> dict[str, Any]:
    """Return a job as plain values, without its request, and without a message that the caller must not see."""
    hidden = ("cancelled", "request", "inside", "stages", "notes")
    values = {one.name: getattr(job, one.name) for one in fields(job) if one.name not in hidden}
    if caller.limited and job.error and is_hidden(getattr(errors, job.error["type"])):
        values["error"] = job.error | {"message": HIDDEN}
    return values


def lower_priority() -> None:
    """Give the current thread a lower priority. On Linux, the threads that it starts inherit it."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
