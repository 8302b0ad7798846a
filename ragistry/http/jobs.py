"""Run jobs in background threads, one job of each kind at a time, in the order in which they were added."""

from __future__ import annotations

import os
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Event, Lock, Thread
from time import time
from typing import Generic, Literal, TypeVar

from ragistry.errors import RagistryError

State = Literal["waiting", "running", "done", "failed", "cancelled"]
NICENESS = 10
"""Niceness of the threads of jobs: during an ingest, a search gets nine tenths of a core."""


class StoppedError(RagistryError):
    """The job was cancelled, or its runner stops."""


@dataclass(slots=True, kw_only=True, eq=False)
class Job:
    """State of a job. Subclasses describe the task. ``finished``: seconds since 1970."""

    state: State = "waiting"
    finished: float | None = None
    cancelled: Event = field(default_factory=Event)

    @property
    def ended(self) -> bool:
        """Whether the job is done, failed or cancelled."""
        return self.state in ("done", "failed", "cancelled")


AnyJob = TypeVar("AnyJob", bound=Job)


class JobRunner(ABC, Generic[AnyJob]):
    """Run jobs in memory. A subclass implements `work`, and may override `end`, `interrupted` and `forgotten`.

    Args:
        kept: Number of ended jobs that are remembered.
    """

    def __init__(self, *, kept: int) -> None:
        self._kept = kept
        self._jobs: list[AnyJob] = []
        self._lock = Lock()
        self._stopping = Event()
        self._is_closed = False
        self._queues: dict[str, SimpleQueue[AnyJob | None]] = {}
        self._threads: list[Thread] = []

    @abstractmethod
    def work(self, job: AnyJob, check: Callable[[], None]) -> None:
        """Do a job. Call ``check`` often: it raises `StoppedError` when the job must end."""

    def end(self, job: AnyJob, state: State, error: Exception | None) -> None:  # noqa: ARG002, for subclasses
        """Record the end of a job. ``error`` is the reason if it failed."""
        job.finished, job.state = time(), state

    def interrupted(self, job: AnyJob) -> None:
        """Handle a job that ended early because the runner stops."""

    def forgotten(self, job: AnyJob) -> None:
        """Handle a job that the runner forgets."""

    def all(self) -> list[AnyJob]:
        """Return the jobs, oldest first."""
        with self._lock:
            return list(self._jobs)

    def open(self) -> list[AnyJob]:
        """Return the jobs that have not ended, oldest first."""
        return [job for job in self.all() if not job.ended]

    def submit(self, job: AnyJob, kind: str = "job") -> bool:
        """Remember a job and run it after earlier jobs of its kind. Return whether the runner is still open."""
        with self._lock:
            self._jobs.append(job)
            if self._is_closed:
                return False
            if kind not in self._queues and not job.ended:
                self._queues[kind] = SimpleQueue()
                self._threads.append(Thread(target=self._run_all, args=(kind,), daemon=True, name=f"job-{kind}"))
                self._threads[-1].start()
            if not job.ended:
                self._queues[kind].put(job)
        return True

    def cancel(self, job: AnyJob) -> State:
        """End a job at its next check, and return its state before. Data that it has written stays."""
        with self._lock:
            before = job.state
            if before == "waiting":
                job.state = "cancelled"
        job.cancelled.set()
        if before == "waiting":
            self.end(job, "cancelled", None)
        return before

    def remove(self, job: AnyJob) -> None:
        """Remove a job that has ended."""
        with self._lock:
            if job in self._jobs:
                self._jobs.remove(job)
                self.forgotten(job)

    def stop(self) -> None:
        """End running jobs at their next check, and start no other jobs."""
        self._stopping.set()

    def close(self, timeout: float | None = None, *, finish: bool = False) -> None:
        """Stop, and wait until running jobs have ended.

        Args:
            timeout: Maximum seconds to wait; None: no limit.
            finish: Do not stop, but run all jobs to their end.
        """
        if not finish:
            self.stop()
        with self._lock:
            self._is_closed = True
            for queue in self._queues.values():
                queue.put(None)
        for thread in self._threads:
            thread.join(timeout)

    def _run_all(self, kind: str) -> None:
        lower_priority()
        queue = self._queues[kind]
        while (job := queue.get()) is not None:
            self._run(job)

    def _run(self, job: AnyJob) -> None:
        def check() -> None:
            if self._stopping.is_set() or job.cancelled.is_set():
                raise StoppedError("the job was stopped")

        with self._lock:
            if job.ended or self._stopping.is_set():
                return
            job.state = "running"
        try:
            self.work(job, check)
        except StoppedError:
            if not job.cancelled.is_set():
                self.interrupted(job)
                return
            self.end(job, "cancelled", None)
        except Exception as error:  # noqa: BLE001, the job reports it, and the next job still runs
            self.end(job, "failed", error)
        else:
            self.end(job, "done", None)
        self._forget_old()

    def _forget_old(self) -> None:
        with self._lock:
            ended = sorted((job for job in self._jobs if job.ended), key=lambda job: job.finished or 0.0)
            for job in ended[: max(0, len(ended) - self._kept)]:
                self._jobs.remove(job)
                self.forgotten(job)


def error_text(error: Exception) -> str:
    """Describe an error in one line, with its type unless it is one of `ragistry.errors`."""
    return str(error) if isinstance(error, RagistryError) else f"{type(error).__name__}: {error}"


def lower_priority() -> None:
    """Give the current thread a lower priority. On Linux, the threads that it starts inherit it."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
