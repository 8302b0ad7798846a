"""Limit concurrent requests: some run, some wait, and further ones are refused immediately."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from ragistry.errors import ServerBusyError
from ragistry.server.uploads import UPLOAD_MEGABYTES

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Limits of the server.

    Attributes:
        concurrency: Maximum number of concurrent searches.
        queue: Maximum number of waiting searches.
        timeout: Seconds for one search, including its wait.
        upload_megabytes: Maximum size of a request with files.
    """

    concurrency: int = 16
    queue: int = 64
    timeout: float = 30.0
    upload_megabytes: int = UPLOAD_MEGABYTES


class Gate:
    """Run coroutines within `ServerLimits`."""

    def __init__(self, limits: ServerLimits) -> None:
        self.limits = limits
        self.waiting = 0
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._running: set[asyncio.Task[Any]] = set()

    @property
    def running(self) -> int:
        """Number of running coroutines, including those whose callers have timed out."""
        return len(self._running)

    async def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine and return its result.

        A thread cannot be stopped. It keeps its slot until it ends.

        Raises:
            ServerBusyError: Too many coroutines wait, or the time is over.
        """
        deadline = asyncio.get_running_loop().time() + self.limits.timeout
        try:
            await self._enter()
        except BaseException:
            work.close()
            raise
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._leave)
        left = deadline - asyncio.get_running_loop().time()
        done, _ = await asyncio.wait({task}, timeout=max(0.0, left))
        if not done:
            raise ServerBusyError(f"no answer within {self.limits.timeout:g} seconds; try again later")
        return task.result()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Run the block within the limits, however long it takes. Raises `ServerBusyError`."""
        await self._enter()
        try:
            yield
        finally:
            self._slots.release()

    async def _enter(self) -> None:
        if self._slots.locked() and self.waiting >= self.limits.queue:
            raise ServerBusyError(f"{self.waiting} requests are already waiting; try again later")
        self.waiting += 1
        try:
            await asyncio.wait_for(self._slots.acquire(), self.limits.timeout)
        except TimeoutError as error:
            raise ServerBusyError(
                f"the server is busy: no free slot within {self.limits.timeout:g} seconds; try again later"
            ) from error
        finally:
            self.waiting -= 1

    def _leave(self, task: asyncio.Task[Any]) -> None:
        self._slots.release()
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved, because asyncio logs exceptions that are not
