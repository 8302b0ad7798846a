"""Calls of servers in threads of their own, none of which is waited for longer than its time."""

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
    """A call had not returned in time."""

    __str__ = Exception.__str__


@dataclass(frozen=True, slots=True)
class Outcomes(Generic[Key, Value]):
    """What each job returned, or the error that it raised."""

    values: dict[Key, Value] = field(default_factory=dict)
    errors: dict[Key, RagistryError] = field(default_factory=dict)


def concurrently(jobs: Mapping[Key, Callable[[], Value]], seconds: float) -> Outcomes[Key, Value]:
    """Run the jobs at once; one that has not returned after ``seconds`` has a `LateError`.

    It goes on in its thread, which nobody waits for, not even the end of the process. Errors other than `RagistryError`
    are raised.
    """
    outcomes: Outcomes[Key, Value] = Outcomes()
    futures = {key: _started(job) for key, job in jobs.items()}
    done, _ = wait(futures.values(), timeout=seconds)
    for key, future in futures.items():
        if future not in done:
            outcomes.errors[key] = LateError(f"no answer within {seconds:g} s; try again, or allow more time")
            continue
        try:
            outcomes.values[key] = future.result()
        except RagistryError as error:
            outcomes.errors[key] = error
    return outcomes


def in_time(job: Callable[[], Value], seconds: float) -> Value:
    """What the job returns, or raises; `LateError` where it has not returned after ``seconds``."""
    outcomes = concurrently({"": job}, seconds)
    for error in outcomes.errors.values():
        raise error
    return outcomes.values[""]


def _started(job: Callable[[], Value]) -> Future[Value]:
    """The job in a thread of its own, so that one that hangs takes none from the next; it reports to our trace.

    Not by an executor, for whose threads a process waits when it ends.
    """
    future: Future[Value] = Future()

    def run() -> None:
        try:
            future.set_result(job())
        except BaseException as error:  # noqa: BLE001, raised where the future is asked
            future.set_exception(error)

    Thread(target=copy_context().run, args=(run,), name="archive", daemon=True).start()
    return future
