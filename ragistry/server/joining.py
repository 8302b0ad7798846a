"""Join searches that wait: a few threads take one at a time, and embed the queries of those behind it in one call."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from itertools import islice
from threading import Lock
from typing import Any

MOST = 32
"""Maximum number of queries embedded in one call."""
THREADS = max(2, os.cpu_count() or 2)


@dataclass(slots=True)
class _Search:
    """A waiting search, with the context of its request; ``together`` once it shares a call of the embedder."""

    query: str
    work: Callable[[], Any]
    future: Future[Any] = field(default_factory=Future)
    context: Context = field(default_factory=copy_context)
    together: AbstractContextManager[Any] | None = None


class SearchJoiner:
    """Run searches in a few threads. While all are busy, further searches wait; a free thread takes the next one.

    Each search has its own result or error, which its request gets as soon as it is there. Searches that wait for a
    slow model would keep the threads, so only techniques in ``quick`` are joined.

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
        self._lock = Lock()

    async def run(self, query: str, work: Callable[[], Any]) -> Any:
        """Return what ``work`` returns in another thread, or raise what it raises."""
        one = _Search(query, work)
        with self._lock:
            self._waiting.append(one)
        if self._running < THREADS:
            self._running += 1
            self._start()
        return await asyncio.wrap_future(one.future)

    def _start(self) -> None:
        """Run the waiting searches in a thread; called in the event loop."""
        if not self._waiting:
            self._running -= 1
            return
        asyncio.get_running_loop().run_in_executor(None, self._search).add_done_callback(lambda _: self._start())

    def _search(self) -> None:
        while (one := self._next()) is not None:
            if one.future.set_running_or_notify_cancel():
                one.context.run(_run, one)

    def _next(self) -> _Search | None:
        """Take the search that waits longest; its query is embedded with those behind it."""
        with self._lock:
            if self._waiting and self._waiting[0].together is None:
                batch = list(islice(self._waiting, MOST))
                together = self._together([one.query for one in batch])
                for one in batch:
                    one.together = together
            return self._waiting.popleft() if self._waiting else None


def _run(one: _Search) -> None:
    with one.together or nullcontext():
        try:
            one.future.set_result(one.work())
        except Exception as error:  # noqa: BLE001, the request raises it
            one.future.set_exception(error)
