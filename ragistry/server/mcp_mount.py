"""Serve MCP at ``/mcp`` of the server, within the collections of each token."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

from starlette.types import ASGIApp, Receive, Scope, Send

from ragistry.http.errors import refusal
from ragistry.mcp.http import mcp_app
from ragistry.server.access import Caller, Tokens
from ragistry.tools.search_library import SearchLibraryTool
from ragistry.workspace import Workspace

Collections = frozenset[str] | None
"""The collections of a token; None: all."""


class McpMount:
    """ASGI application with one MCP server for each set of collections, so that sessions are never shared between them.

    The servers are built at start. A new token works only if an earlier one has the same collections.
    """

    def __init__(self, workspace: Workspace, tokens: Tokens) -> None:
        limits: Iterable[Collections] = {
            None if entry.collections is None else frozenset(entry.collections) for entry in tokens.entries().values()
        }
        known = [entry.name for entry in workspace.library.collections.entries()]
        self._apps = {
            limit: mcp_app(
                SearchLibraryTool(
                    workspace.library, allowed=None if limit is None else [name for name in known if name in limit]
                )
            )
            for limit in {None, *limits}
        }

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep sessions while this block runs."""
        async with AsyncExitStack() as stack:
            for app in self._apps.values():
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller: Caller = scope["caller"]
        app: ASGIApp | None = self._apps.get(caller.collections)
        if not caller.may("read"):
            app = refusal(403, f"token {caller.name!r} lacks the right 'read'; use a token that has it")
        elif app is None:
            app = refusal(403, f"token {caller.name!r} is newer than this server; restart the server to use MCP")
        await app(scope, receive, send)
