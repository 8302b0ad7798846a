"""Parallel calls to servers, each in its own thread and with a time limit."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future, wait
from contextvars import copy_context
from dataclasses import dataclass, field
from threading import Thread
from typing import Generic, TypeVar

from ragistry.errors import RagistryError

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class LateError(RagistryError, TimeoutError):
    """A call did not return in time."""

    __str__ = Exception.__str__


@dataclass(frozen=True, slots=True)
class Outcomes(Generic[Key, Value]):
    """The result of each job, or its error."""

    values: dict[Key, Value] = field(default_factory=dict)
    errors: dict[Key, RagistryError] = field(default_factory=dict)


def concurrently(jobs: Mapping[Key, Callable[[], Value]], seconds: float) -> Outcomes[Key, Value]:
    """Run jobs in parallel, with a time limit for each.

    A job that has not returned in time gets a `LateError`. It continues in its daemon thread, which does not delay the
    end of the process. Errors other than `RagistryError` are raised.

    Args:
        jobs: Functions to call, by a key.
        seconds: The time limit.
    """
    outcomes: Outcomes[Key, Value] = Outcomes()
    futures = {key: _started(job) for key, job in jobs.items()}
    done, _ = wait(futures.values(), timeout=seconds)
    for key, future in futures.items():
        if future not in done:
            outcomes.errors[key] = LateError(f"no answer within {seconds:g} s; try again, or increase the time limit")
            continue
        try:
            outcomes.values[key] = future.result()
        except RagistryError as error:
            outcomes.errors[key] = error
    return outcomes


def in_time(job: Callable[[], Value], seconds: float) -> Value:
    """Return the result of a job.

    Raises:
        LateError: The job has not returned within ``seconds``.
    """
    outcomes = concurrently({"": job}, seconds)
    for error in outcomes.errors.values():
        raise error
    return outcomes.values[""]


def _started(job: Callable[[], Value]) -> Future[Value]:
    """Start the job in its own thread, so that a hanging job does not block others.

    The thread records to the caller's trace. Executors are unsuitable, because their threads delay the end of the
    process.
    """
    future: Future[Value] = Future()

    def run() -> None:
        try:
            future.set_result(job())
        except BaseException as error:  # noqa: BLE001, raised when the future is read
            future.set_exception(error)

    Thread(target=copy_context().run, args=(run,), name="archive", daemon=True).start()
    return future
