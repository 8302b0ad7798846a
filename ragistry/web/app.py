"""The page as a web application, and its server."""

from __future__ import annotations

import logging
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from nicegui import core, ui
from starlette.types import Lifespan

from ragistry.http.guard import LOOPBACK
from ragistry.web import (
    collections_page,
    compare_page,
    files,
    manual_page,
    search_page,
    sources_page,
    techniques_page,
)
from ragistry.web.app_state import AppState
from ragistry.web.security import guard_page
from ragistry.web.socket_messages import SocketMessages
from ragistry.workspace import Workspace

PAGES = (search_page, files, collections_page, sources_page, compare_page, techniques_page, manual_page)
RECONNECT = 20.0
"""Seconds for which the state of a disconnected window is kept: the machine may be busy or change its network."""
FAVICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#2457c5"/>'
    '<circle cx="14" cy="14" r="6.5" fill="none" stroke="#fff" stroke-width="3"/>'
    '<path d="M19 19l7 7" stroke="#fff" stroke-width="3.4" stroke-linecap="round"/></svg>'
)


def application(
    state: AppState,
    *,
    hosts: Collection[str],
    names: Collection[str] = (),
    token: str | None = None,
    lifespan: Lifespan[FastAPI] | None = None,
) -> FastAPI:
    """Create the application of all pages. A process can create only one, because NiceGUI registers pages globally.

    Args:
        state: State of the pages.
        hosts: Host names that the page serves.
        names: Names of the page behind a proxy.
        token: Token that visitors need; None: no token is needed.
        lifespan: Lifespan of the application.
    """
    for page in PAGES:
        page.register(state)
    app = FastAPI(openapi_url=None, lifespan=lifespan)
    app.add_middleware(SocketMessages)
    app.add_middleware(guard_page, hosts=hosts, names=names, token=token)
    ui.run_with(
        app, title="Ragistry", favicon=FAVICON, dark=None, language="en-US", show_welcome_message=False,
        reconnect_timeout=RECONNECT, binding_refresh_interval=None,
    )  # fmt: skip
    core.sio.eio.cors_allowed_origins = []  # NiceGUI allows every site; no header of CORS is sent, see `OriginGuard`
    return app


def mountable(workspace: Workspace) -> FastAPI:
    """Create the page as a part of another server on this machine. The workspace stays open."""
    state = AppState(workspace, (Path.home(), workspace.root))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        state.close_jobs()

    return application(state, hosts=LOOPBACK, lifespan=lifespan)


def serve(
    state: AppState,
    listener: socket.socket,
    host: str,
    *,
    names: Collection[str] = (),
    ready: Callable[[str], None],
    stopping: Callable[[], None],
) -> None:
    """Serve the page until interrupted.

    On a loopback address without a proxy, no token is needed. Otherwise a token is generated for this run.

    Args:
        state: State of the pages. It is closed at the end.
        listener: Socket that is bound to ``host``.
        host: Address on which the page listens.
        names: Names of the page behind a proxy.
        ready: Called when the page is ready, with the query string of its address.
        stopping: Called when the server begins to stop.

    Raises:
        KeyboardInterrupt: The page was stopped by Ctrl+C.
    """
    loopback = host in LOOPBACK
    token = None if loopback and not names else secrets.token_urlsafe(24)
    hosts = LOOPBACK if loopback else {*LOOPBACK, host, socket.gethostname(), *_addresses(host)}
    try:
        app = application(state, hosts=hosts, names=names, token=token)
        ready(f"?token={token}" if token else "")
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=3)
        _Server(config, state, stopping).run(sockets=[listener])
    finally:
        state.close()


class _Server(uvicorn.Server):
    """Stop the jobs while running requests end."""

    def __init__(self, config: uvicorn.Config, state: AppState, stopping: Callable[[], None]) -> None:
        super().__init__(config)
        self._state = state
        self._stopping = stopping

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopping()
        self._state.stop()
        # Uvicorn would log a traceback for each request that is cut off, such as an upload.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        await super().shutdown(sockets)


def _addresses(host: str) -> set[str]:
    """Return the addresses of this machine if the server listens on all of them."""
    if host not in ("0.0.0.0", "::"):
        return set()
    with suppress(OSError):
        return {str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None)}
    return set()
