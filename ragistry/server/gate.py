"""A bound on what runs at the same time: so many requests run, so many wait, and more are refused at once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from ragistry.errors import ServerBusyError

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Limits:
    """``concurrency``: searches that run at the same time. ``queue``: how many wait. ``timeout``: seconds for one, its
    wait included. ``upload_megabytes``: of one request that brings files."""

    concurrency: int = 16
    queue: int = 64
    timeout: float = 30.0
    upload_megabytes: int = 500


class Gate:
    """Runs coroutines within `Limits`; ``running`` and ``waiting`` count them now."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.waiting = 0
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._running: set[asyncio.Task[Any]] = set()

    @property
    def running(self) -> int:
        """How many run now, those included whose callers were refused meanwhile."""
        return len(self._running)

    async def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of ``work``.

        Raises `ServerBusyError` where too many wait, or the time is over. What runs in a thread cannot be stopped: it
        keeps its place until it ends.
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

    async def _enter(self) -> None:
        if self._slots.locked() and self.waiting >= self.limits.queue:
            raise ServerBusyError(f"{self.waiting} requests are waiting already; try again later")
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
            task.exception()  # looked at, so that one that came too late is not reported as never retrieved
