"""Clients are told when the collections change, whoever changed them."""

from __future__ import annotations

from collections import deque
from typing import Any

import anyio
from anyio.to_thread import run_sync
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourcesListChanged, ToolsListChanged

from ragistry.tools.search_library import SearchLibraryTool

SESSIONS = 256
"""Clients of the older protocol that are told at most; the latest ones."""
PATIENCE = 5.0
"""Seconds that one client may take to hear of it."""


class Changes:
    """What the collections were when clients were last told.

    Clients of the protocol from 2026 on subscribe on ``bus``. Those before are told without being asked: each is
    noted when it has begun (`add`).
    """

    def __init__(self, tool: SearchLibraryTool) -> None:
        self.bus = InMemorySubscriptionBus()
        self._tool = tool
        self._sessions: deque[ServerSession] = deque(maxlen=SESSIONS)
        self._told = self._now()

    def add(self, session: ServerSession) -> None:
        """Tell this client too."""
        self._sessions.append(session)

    async def watch(self, interval: float) -> None:
        """Look every ``interval`` seconds, for ever."""
        while True:
            await anyio.sleep(interval)
            await self.announce()

    async def announce(self) -> None:
        """Tell every client what has changed since the last time, if anything has."""
        now = await run_sync(self._now)
        (tools, resources), self._told = self._told, now
        if tools != now[0]:
            await self.bus.publish(ToolsListChanged())
            for session in list(self._sessions):
                with anyio.move_on_after(PATIENCE):
                    await session.send_tool_list_changed()
        if resources != now[1]:
            await self.bus.publish(ResourcesListChanged())
            for session in list(self._sessions):
                with anyio.move_on_after(PATIENCE):
                    await session.send_resource_list_changed()

    def _now(self) -> tuple[dict[str, Any], list[Any]]:
        return self._tool.schema(), list(self._tool.reach.entries())
