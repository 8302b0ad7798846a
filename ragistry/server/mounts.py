"""What else the server can carry: agents over MCP at ``/mcp``, and the page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Receive, Scope, Send

from ragistry.server.access import Caller, Tokens
from ragistry.server.answers import refusal
from ragistry.web.security import LOOPBACK
from ragistry.workspace import Workspace

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.applications import Starlette

    from ragistry.web.site import Site

MCP_PATH = "/mcp"

Limit = frozenset[str] | None
"""The collections that a token is for; None: every one."""


class Agents:
    """An MCP server for each list of collections that a token has, so that a session never sees another's.

    They are made when the server starts. A token that is made later is served where an earlier one has the same list.
    """

    def __init__(self, workspace: Workspace, tokens: Tokens) -> None:
        limits: Iterable[Limit] = {
            None if entry.collections is None else frozenset(entry.collections) for entry in tokens.entries().values()
        }
        self._apps = {limit: _agents(workspace, limit) for limit in {None, *limits}}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Sessions are kept as long as this block runs."""
        async with AsyncExitStack() as stack:
            for app in self._apps.values():
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller: Caller = scope["caller"]
        app: ASGIApp | None = self._apps.get(caller.collections)
        if not caller.may("read"):
            app = refusal(403, f"the token {caller.name!r} lacks the right 'read'; use one that has it")
        elif app is None:
            app = refusal(403, f"the token {caller.name!r} is newer than this server; restart it to use MCP")
        await app(scope, receive, send)


def _agents(workspace: Workspace, limit: Limit) -> Starlette:
    from mcp.server.transport_security import TransportSecuritySettings

    from ragistry.mcp.server import build_server
    from ragistry.tools.search_library import SearchLibraryTool

    known = [entry.name for entry in workspace.library.collections.entries()]
    allowed = None if limit is None else [name for name in known if name in limit]
    server = build_server(SearchLibraryTool(workspace.library, allowed=allowed))
    # Which hosts and origins may ask is the guard's to say.
    unguarded = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    return server.streamable_http_app(streamable_http_path=MCP_PATH, transport_security=unguarded)


def page(workspace: Workspace) -> tuple[FastAPI, AbstractContextManager[object]]:
    """The page for this machine alone, and what ends its jobs. One a process."""
    from ragistry.web.app import application
    from ragistry.web.site import Site

    site = Site(workspace, (Path.home(), workspace.root))
    return application(site, hosts=LOOPBACK, names=(), token=None), _ended(site)


@contextmanager
def _ended(site: Site) -> Iterator[None]:
    try:
        yield
    finally:  # the workspace stays open
        site.jobs.close()
        site.comparisons.close()
