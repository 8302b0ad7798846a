"""What takes long, in the background: written to disk before it is acknowledged, and taken up again after a restart.

A job is a folder: ``job.json``, and ``files/`` with what was uploaded until the job ends.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from threading import Event, Lock
from time import time
from typing import Any, Literal
from uuid import uuid4

from filelock import FileLock, Timeout

from ragistry.config.replacing import replace_text
from ragistry.errors import JobNotFoundError, RagistryError, ServerBusyError, StoreLockedError
from ragistry.server.access import Caller
from ragistry.server.answers import detail_of
from ragistry.utils.disk import remedy
from ragistry.web.jobs import give_way

_log = logging.getLogger(__name__)

Kind = Literal["ingest", "comparison"]
State = Literal["waiting", "running", "done", "failed", "cancelled"]
MOST_OPEN = 1_000
"""Jobs that have not ended; more are refused."""
KEPT = 1_000
"""Jobs that are remembered after they ended."""
STATE_FILE, FILES = "job.json", "files"


class StoppedError(RagistryError):
    """The job was cancelled, or the server stops."""


@dataclass(slots=True)
class Job:
    """One job. ``request``: what was asked for. ``report``: what came of it, also of one that was cancelled.

    ``owner``: the token that started it. ``created``, ``finished``: seconds since 1970. ``current``, ``done``,
    ``total``: how far it is. ``error``: ``{"type", "message"}`` of what ended it early.
    """

    id: str
    kind: Kind
    owner: str
    collection: str | None
    request: dict[str, Any]
    created: float
    state: State = "waiting"
    finished: float | None = None
    current: str = ""
    done: int = 0
    total: int = 0
    report: dict[str, Any] | None = None
    error: dict[str, str] | None = None
    cancelled: Event = field(default_factory=Event)

    @property
    def ended(self) -> bool:
        return self.state in ("done", "failed", "cancelled")

    def text(self) -> str:
        """The job as JSON."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "cancelled"}
        return json.dumps(values, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Running:
    """What a job's work is given: the job, its folder, and ``check``, which raises `StoppedError` when it must end."""

    job: Job
    folder: Path
    check: Callable[[], None]

    def progress(self, current: str, done: int, total: int) -> None:
        """As `types.Progress`: remembered for whoever asks, and checked."""
        self.check()
        self.job.current, self.job.done, self.job.total = current, done, total


Work = Callable[[Running], Mapping[str, Any]]
"""Does a job and returns its report. Doing it again after an interruption must be harmless."""


class Jobs:
    """The jobs below ``folder``: of each kind one at a time, in the order in which they came.

    ``work``: what each kind does. Raises `StoreLockedError` where another server runs the jobs of this folder.
    """

    def __init__(self, folder: Path, work: Mapping[Kind, Work]) -> None:
        self.folder = folder
        self._work = work
        self._jobs: dict[str, Job] = {}
        self._unsaved: dict[str, Job] = {}
        self._lock = Lock()
        self._closing = Event()
        folder.mkdir(parents=True, exist_ok=True)
        self._mine = FileLock(folder / "lock", timeout=0, thread_local=False)
        try:
            self._mine.acquire()
        except Timeout as error:
            raise StoreLockedError(
                f"another server runs the jobs in {str(folder)!r}; stop it, or give this one another data_dir"
            ) from error
        self._workers = {
            kind: ThreadPoolExecutor(1, thread_name_prefix=f"job-{kind}", initializer=give_way) for kind in work
        }

    def start(self) -> None:
        """Take up the jobs that had not ended when the server stopped."""
        for job in sorted(_read_all(self.folder), key=lambda job: (job.created, job.id)):
            self._jobs[job.id] = job
            if job.ended:
                shutil.rmtree(self.folder / job.id / FILES, ignore_errors=True)
            else:
                job.state = "waiting"
                self._workers[job.kind].submit(self._run, job)

    @contextmanager
    def new_folder(self) -> Iterator[Path]:
        """A folder for the files of a new job, which the block then adds; it is removed if the block raises."""
        place = self.folder / f"{uuid4().hex}.new"
        try:
            (place / FILES).mkdir(parents=True)
            yield place
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise

    def add(self, folder: Path, kind: Kind, caller: Caller, collection: str | None, request: dict[str, Any]) -> Job:
        """Acknowledge a job whose files are in ``folder``, from `new_folder`: it survives a crash from now on.

        Raises `ServerBusyError` if too many jobs are open.
        """
        job = Job(folder.stem, kind, caller.name, collection, request, time())
        if len(self.open()) >= MOST_OPEN:
            raise ServerBusyError(f"{MOST_OPEN:,} jobs have not ended; wait for some of them")
        for path in (folder / FILES).iterdir():
            _make_safe(path)
        _make_safe(folder / FILES)
        replace_text(folder / STATE_FILE, job.text())
        folder.rename(self.folder / job.id)
        _make_safe(self.folder)
        with self._lock:
            self._jobs[job.id] = job
        with suppress(RuntimeError):  # the server stops; the job is on disk
            self._workers[kind].submit(self._run, job)
        return job

    def all(self, kind: Kind, caller: Caller) -> list[Job]:
        """The jobs of a kind that the caller may see, the newest first."""
        with self._lock:
            found = [job for job in self._jobs.values() if job.kind == kind and _sees(caller, job)]
        return sorted(found, key=lambda job: (job.created, job.id), reverse=True)

    def get(self, id: str, kind: Kind, caller: Caller) -> Job:
        """A job by its id. Raises `JobNotFoundError`, also for one that the caller may not see."""
        job = self._jobs.get(id)
        if job is None or job.kind != kind or not _sees(caller, job):
            raise JobNotFoundError(f"no {kind} {id[:100]!r}; it may have ended long ago")
        return job

    def cancel(self, job: Job) -> None:
        """End a job before its next source or batch; what was written stays. One that has ended stays as it is."""
        with self._lock:
            if job.ended:
                return
            waiting = job.state == "waiting"
            if waiting:
                job.state, job.finished = "cancelled", time()
        job.cancelled.set()
        # At once, so that a restart does not take it up again.
        if self._is_saved(job, "cancelled") and waiting:
            shutil.rmtree(self.folder / job.id / FILES, ignore_errors=True)

    def open(self) -> list[Job]:
        """The jobs that have not ended."""
        with self._lock:
            return [job for job in self._jobs.values() if not job.ended]

    def counted(self) -> Counter[tuple[Kind, State]]:
        """How many jobs there are of each kind and state."""
        with self._lock:
            return Counter((job.kind, job.state) for job in self._jobs.values())

    def stop(self) -> None:
        """End the jobs that run before their next source or batch, and start no other; all are taken up again."""
        self._closing.set()

    def close(self) -> None:
        """Stop, and wait until what runs has ended."""
        self.stop()
        for worker in self._workers.values():
            worker.shutdown(wait=True, cancel_futures=True)
        self._save_again()
        self._mine.release()

    def _run(self, job: Job) -> None:
        def check() -> None:
            if self._closing.is_set() or job.cancelled.is_set():
                raise StoppedError("the job was stopped")

        place = self.folder / job.id
        state: State = "done"
        with self._lock:
            if job.ended or self._closing.is_set():
                return
            job.state = "running"
        try:
            job.report = dict(self._work[job.kind](Running(job, place, check)))
        except StoppedError:
            if not job.cancelled.is_set():
                return  # taken up again by the next server
            state = "cancelled"
        except Exception as error:  # noqa: BLE001, the job says what nobody foresaw, and the next one still runs
            _log.error("job %s failed", job.id, exc_info=None if isinstance(error, RagistryError) else error)
            state, job.error = "failed", detail_of(error).model_dump()
        job.current, job.finished = "", time()
        if self._is_saved(job, state):
            shutil.rmtree(place / FILES, ignore_errors=True)
        job.state = state  # the last step: whoever sees that a job has ended finds none of its files
        self._save_again(but=job)
        self._forget_old()

    def _is_saved(self, job: Job, state: State) -> bool:
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

    def _save_again(self, but: Job | None = None) -> None:
        """Write the ends that could not be written before."""
        with self._lock:
            unsaved = [job for job in self._unsaved.values() if job is not but and job.ended]
        for job in unsaved:
            if self._is_saved(job, job.state):
                shutil.rmtree(self.folder / job.id / FILES, ignore_errors=True)

    def _forget_old(self) -> None:
        with self._lock:
            ended = sorted((job for job in self._jobs.values() if job.ended), key=lambda job: job.finished or 0.0)
            for job in ended[: max(0, len(ended) - KEPT)]:
                del self._jobs[job.id]
                shutil.rmtree(self.folder / job.id, ignore_errors=True)


def _sees(caller: Caller, job: Job) -> bool:
    if caller.limited and job.collection not in (caller.collections or ()):
        return False
    return job.owner == caller.name or (caller.may("admin") and not caller.limited)


def _read_all(folder: Path) -> Iterator[Job]:
    known = {one.name for one in fields(Job)}
    for place in sorted(folder.iterdir()):
        if place.suffix == ".new":  # never acknowledged
            shutil.rmtree(place, ignore_errors=True)
        elif place.is_dir():
            try:
                values = json.loads((place / STATE_FILE).read_text(encoding="utf-8"))
                yield Job(**{name: value for name, value in values.items() if name in known})
            except (OSError, ValueError, TypeError) as error:
                _log.error("%s is not readable as a job (%s); it is left alone", place, error)


def _make_safe(path: Path) -> None:
    """Have the system write a file, or the entries of a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def as_mapping(job: Job) -> dict[str, Any]:
    """A job as plain values, without what was uploaded."""
    return {one.name: getattr(job, one.name) for one in fields(job) if one.name not in ("cancelled", "request")}
