"""Several calls at once, none of which is waited for longer than the others."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
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

    It goes on in its thread, which nobody waits for but the end of the process: let every job end by itself. Errors
    other than `RagistryError` are raised.
    """
    outcomes: Outcomes[Key, Value] = Outcomes()
    if not jobs:
        return outcomes
    # Threads of this call alone: one that hangs takes none from the next call.
    pool = ThreadPoolExecutor(len(jobs), thread_name_prefix="archive")
    futures = {key: pool.submit(job) for key, job in jobs.items()}
    done, _ = wait(futures.values(), timeout=seconds)
    pool.shutdown(wait=False, cancel_futures=True)
    for key, future in futures.items():
        if future not in done:
            outcomes.errors[key] = LateError(f"no answer within {seconds:g} s; try again, or allow more time")
            continue
        try:
            outcomes.values[key] = future.result()
        except RagistryError as error:
            outcomes.errors[key] = error
    return outcomes
