"""The page as a server: its routes, guarded."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from contextlib import suppress

import uvicorn
from fastapi import FastAPI
from nicegui import ui

from ragistry.web import collections_page, compare_page, report_page, search_page, sources_page, techniques_page
from ragistry.web.security import LOOPBACK, Guard
from ragistry.web.site import Site

PAGES = (collections_page, sources_page, search_page, compare_page, report_page, techniques_page)
RECONNECT = 20.0
"""Seconds for which a page waits for a window whose line broke: a machine that is busy, or changes its network."""
FAVICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#2457c5"/>'
    '<circle cx="14" cy="14" r="6.5" fill="none" stroke="#fff" stroke-width="3"/>'
    '<path d="M19 19l7 7" stroke="#fff" stroke-width="3.4" stroke-linecap="round"/></svg>'
)


def application(site: Site, *, hosts: frozenset[str], token: str | None) -> FastAPI:
    """Every page over ``site``; one a process, because NiceGUI keeps its routes for the whole process."""
    for page in PAGES:
        page.register(site)
    app = FastAPI(openapi_url=None)
    app.add_middleware(Guard, hosts=hosts, token=token)
    ui.run_with(
        app, title="Ragistry", favicon=FAVICON, dark=None, language="en-US", show_welcome_message=False,
        reconnect_timeout=RECONNECT, binding_refresh_interval=None,
    )  # fmt: skip
    return app


def serve(site: Site, listener: socket.socket, host: str, *, ready: Callable[[str], None]) -> None:
    """Serve until interrupted, on a ``listener`` that is bound to ``host``.

    ``ready`` is called with what follows the port in the address to open: the token, where one is needed. On a loopback
    address none is; on any other one is made for this run.
    """
    loopback = host in LOOPBACK
    token = None if loopback else secrets.token_urlsafe(24)
    hosts = LOOPBACK if loopback else frozenset({*LOOPBACK, host, socket.gethostname().lower(), *_addresses(host)})
    try:
        app = application(site, hosts=hosts, token=token)
        ready(f"?token={token}" if token else "")
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=3)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listener])
    finally:
        site.close()


def _addresses(host: str) -> set[str]:
    """The addresses of this machine, where it listens on all of them."""
    if host not in ("0.0.0.0", "::"):
        return set()
    with suppress(OSError):
        return {str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None)}
    return set()
