"""Values that are polled once and shared by all windows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf
from time import monotonic
from typing import Generic, TypeVar

from nicegui import ui

from ragistry.errors import RagistryError

Value = TypeVar("Value")

EVERY = 1.0
"""Seconds between two updates of a window."""
SHARE = 5
"""A slow read is followed by a pause of this many times its duration."""


class PolledValue(Generic[Value]):
    """The last result of ``read``. If a new result is equal, ``value`` stays the same object.

    Only one window reads at a time, and at most once in half of `EVERY` seconds. If a read fails, ``trouble`` is its
    message and ``value`` the result before.
    """

    def __init__(self, read: Callable[[], Value]) -> None:
        self.value: Value | None = None
        self.trouble = ""
        self._read = read
        self._began, self._pause = -inf, EVERY / 2
        self._turn = asyncio.Lock()

    async def refresh(self, *, fresh: bool = False) -> None:
        """Read again unless the value is recent. ``fresh`` includes everything written before this call."""
        begun_since = monotonic() - (0 if fresh else self._pause)
        async with self._turn:
            if self._began > begun_since:
                return
            began, self.trouble = monotonic(), ""
            try:
                value = await asyncio.to_thread(self._read)
                if value != self.value:
                    self.value = value
            except RagistryError as error:
                self.trouble = str(error)
            # Set after the read: if the window that reads is closed meanwhile, the next one reads.
            self._began, self._pause = began, max(EVERY / 2, SHARE * (monotonic() - began))


class Follower(Generic[Value]):
    """Show a `PolledValue` in one window. Errors are shown where the object is created."""

    def __init__(self, shared: PolledValue[Value]) -> None:
        self._shared = shared
        self._shown: Value | None = None
        self._show: Callable[[Value], None] | None = None
        self._trouble = ui.label().classes("rg-failure").props("role=alert")

    async def begin(self, show: Callable[[Value], None]) -> None:
        """Call ``show`` with the current value, and again after each change."""
        self._show = show
        await self.refresh()
        ui.timer(EVERY, self._follow)

    async def refresh(self) -> None:
        """Read again and show the value, after a change by this window."""
        await self._shared.refresh(fresh=True)
        self.show()

    def show(self) -> None:
        """Show the last value, unless it is already shown."""
        if self._trouble.is_deleted or self._show is None:
            return  # the window was closed meanwhile
        self._trouble.set_text(self._shared.trouble)
        value = self._shared.value
        if value is not None and value is not self._shown:
            self._shown = value
            self._show(value)

    async def _follow(self) -> None:
        await self._shared.refresh()
        self.show()
