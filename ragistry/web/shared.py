"""One reading of what others change too, for every window that shows it."""

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
"""Seconds after which a window looks again."""
SHARE = 5
"""A reading that takes long is followed by a pause of that many times as long."""


class Shared(Generic[Value]):
    """What ``read`` gave last; a reading equal to the one before leaves the same object in ``value``.

    However many windows look, there is one reading at a time, and none within half of `EVERY` of the last.
    ``trouble``: the line of what the last reading raised; ``value`` is then that of the last one that succeeded.
    """

    def __init__(self, read: Callable[[], Value]) -> None:
        self.value: Value | None = None
        self.trouble = ""
        self._read = read
        self._began, self._pause = -inf, EVERY / 2
        self._turn = asyncio.Lock()

    async def look(self, *, fresh: bool = False) -> None:
        """Read again, where that was not just done; ``fresh``: what was written before this call is seen."""
        begun_since = monotonic() - (0 if fresh else self._pause)
        async with self._turn:
            if self._began <= begun_since:
                await self._look()

    async def _look(self) -> None:
        began = monotonic()
        try:
            value = await asyncio.to_thread(self._read)
        except RagistryError as error:
            self.trouble = str(error)
        else:
            self.trouble = ""
            if value != self.value:
                self.value = value
        # Not before: where the window that reads is closed meanwhile, the next one reads.
        self._began, self._pause = began, max(EVERY / 2, SHARE * (monotonic() - began))


class Following(Generic[Value]):
    """One window that shows a `Shared`, as long as it is open. What goes wrong is a line where this is made."""

    def __init__(self, shared: Shared[Value]) -> None:
        self._shared = shared
        self._shown: Value | None = None
        self._show: Callable[[Value], None] | None = None
        self._trouble = ui.label().classes("rg-failure").props("role=alert")

    async def begin(self, show: Callable[[Value], None]) -> None:
        """Call ``show`` with what is read now, and with what it has become after each change, whoever made it."""
        self._show = show
        await self.refresh()
        ui.timer(EVERY, self._follow)

    async def refresh(self) -> None:
        """Show at once what this window has changed."""
        await self._shared.look(fresh=True)
        self.show()

    def show(self) -> None:
        """Show what was read last, where it is another than what is shown."""
        if self._trouble.is_deleted or self._show is None:
            return  # the window was closed meanwhile
        self._trouble.set_text(self._shared.trouble)
        value = self._shared.value
        if value is not None and value is not self._shown:
            self._shown = value
            self._show(value)

    async def _follow(self) -> None:
        await self._shared.look()
        self.show()
