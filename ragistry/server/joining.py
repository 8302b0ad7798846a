"""Join searches that wait: a thread runs them one after the other, with their queries embedded in one call."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Any

MOST = 32
"""Maximum number of searches of a batch."""
THREADS = max(2, os.cpu_count() or 2)


@dataclass(frozen=True, slots=True)
class _Search:
    """A waiting search, with the context of its request."""

    query: str
    work: Callable[[], Any]
    context: Context
    future: asyncio.Future[Any]


class SearchJoiner:
    """Run searches in a few threads. While all are busy, further searches wait and become the next batch.

    Each search has its own result or error, which its request gets as soon as it is there. A search that waits for a
    slow model would delay the others of its batch, so only techniques in ``quick`` are joined.

    Args:
        together: Returns a block in which these queries are embedded in one call. It is entered once for each search.

    Attributes:
        quick: Names of techniques, as requests give them, that ask no model but the embedder.
    """

    def __init__(self, together: Callable[[Sequence[str]], AbstractContextManager[Any]]) -> None:
        self.quick: set[str | None] = set()
        self._together = together
        self._waiting: deque[_Search] = deque()
        self._running = 0

    async def run(self, query: str, work: Callable[[], Any]) -> Any:
        """Return what ``work`` returns in another thread, or raise what it raises."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(_Search(query, work, copy_context(), future))
        if self._running < THREADS:
            self._running += 1
            self._start()
        return await future

    def _start(self) -> None:
        """Run the waiting searches in a thread, and those that wait then; called in the event loop."""
        batch = [self._waiting.popleft() for _ in range(min(MOST, len(self._waiting)))]
        if not batch:
            self._running -= 1
            return
        loop = asyncio.get_running_loop()
        loop.run_in_executor(None, self._search, batch, loop).add_done_callback(lambda _: self._start())

    def _search(self, batch: Sequence[_Search], loop: asyncio.AbstractEventLoop) -> None:
        together = self._together([one.query for one in batch])
        for one in batch:
            result, error = one.context.run(_outcome, one.work, together)
            loop.call_soon_threadsafe(_deliver, one.future, result, error)


def _outcome(work: Callable[[], Any], together: AbstractContextManager[Any]) -> tuple[Any, Exception | None]:
    with together:
        try:
            return work(), None
        except Exception as error:  # noqa: BLE001, the request raises it
            return None, error


def _deliver(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.cancelled():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
