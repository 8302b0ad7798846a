"""The page as a web application, and its server."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from fastapi import FastAPI
from nicegui import core, ui

from ragistry.http.guard import LOOPBACK
from ragistry.server.app import create_app
from ragistry.server.jobs import SavedJobs
from ragistry.web import (
    collections_page,
    compare_page,
    files,
    search_page,
    sources_page,
    techniques_page,
)
from ragistry.web.app_state import AppState
from ragistry.web.security import guard_page
from ragistry.web.socket_messages import SocketMessages
from ragistry.workspace import Workspace

PAGES = (search_page, files, collections_page, sources_page, compare_page, techniques_page)
RECONNECT = 20.0
"""Seconds for which the state of a disconnected window is kept: the machine may be busy or change its network."""
FAVICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#2457c5"/>'
    '<circle cx="14" cy="14" r="6.5" fill="none" stroke="#fff" stroke-width="3"/>'
    '<path d="M19 19l7 7" stroke="#fff" stroke-width="3.4" stroke-linecap="round"/></svg>'
)


def page_app(workspace: Workspace, roots: Sequence[Path], saved: SavedJobs) -> FastAPI:
    """Create the application of all pages. A process can create only one, because NiceGUI registers pages globally.

    Args:
        workspace: The open workspace.
        roots: Folders from which folders may be added.
        saved: The jobs of the workspace.
    """
    state = AppState(workspace, tuple(roots), saved)
    for page in PAGES:
        page.register(state)
    app = FastAPI(openapi_url=None)
    app.add_middleware(SocketMessages)
    ui.run_with(
        app, title="Ragistry", favicon=FAVICON, dark=None, language="en-US", show_welcome_message=False,
        reconnect_timeout=RECONNECT, binding_refresh_interval=None,
    )  # fmt: skip
    core.sio.eio.cors_allowed_origins = []  # NiceGUI allows every site; no header of CORS is sent, see `OriginGuard`
    return app


def local_page(workspace: Workspace, saved: SavedJobs) -> FastAPI:
    """Create the page for another server on this machine, with its guards."""
    app = page_app(workspace, (Path.home(), workspace.root), saved)
    app.add_middleware(guard_page, hosts=LOOPBACK, megabytes=saved.uploads.megabytes)
    return app


def page_server(
    workspace: Workspace, roots: Sequence[Path], host: str, names: Collection[str] = ()
) -> tuple[FastAPI, str]:
    """Create a server with the page, and return it with the query string of its address.

    On a loopback address without a proxy, no token is needed. Otherwise a token is generated for this run.

    Args:
        workspace: The open workspace.
        roots: Folders from which folders may be added.
        host: Address on which the server listens.
        names: Names of the page behind a proxy.

    Raises:
        StoreLockedError: Another server or page runs the jobs of this workspace.
    """
    is_loopback = host in LOOPBACK
    token = None if is_loopback and not names else secrets.token_urlsafe(24)
    hosts = LOOPBACK if is_loopback else {*LOOPBACK, host, socket.gethostname(), *_addresses(host)}
    guard = partial(guard_page, hosts=hosts, names=names, token=token)
    app = create_app(workspace, page=partial(page_app, workspace, roots), guard=guard)
    return app, f"?token={token}" if token else ""


def _addresses(host: str) -> set[str]:
    """Return the addresses of this machine if the server listens on all of them."""
    if host not in ("0.0.0.0", "::"):
        return set()
    with suppress(OSError):
        return {str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None)}
    return set()
