"""The page as a server: its routes, guarded."""

from __future__ import annotations

import logging
import secrets
import socket
from collections.abc import Callable, Collection
from contextlib import suppress

import uvicorn
from fastapi import FastAPI
from nicegui import ui

from ragistry.web import collections_page, compare_page, files, report_page, search_page, sources_page, techniques_page
from ragistry.web.security import LOOPBACK, Guard
from ragistry.web.site import Site
from ragistry.web.socket_messages import SocketMessages

PAGES = (search_page, files, collections_page, sources_page, compare_page, report_page, techniques_page)
RECONNECT = 20.0
"""Seconds for which a page waits for a window whose line broke: a machine that is busy, or changes its network."""
FAVICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#2457c5"/>'
    '<circle cx="14" cy="14" r="6.5" fill="none" stroke="#fff" stroke-width="3"/>'
    '<path d="M19 19l7 7" stroke="#fff" stroke-width="3.4" stroke-linecap="round"/></svg>'
)


def application(site: Site, *, hosts: frozenset[str], names: Collection[str], token: str | None) -> FastAPI:
    """Every page over ``site``; one a process, because NiceGUI keeps its routes for the whole process."""
    for page in PAGES:
        page.register(site)
    app = FastAPI(openapi_url=None)
    app.add_middleware(SocketMessages)
    app.add_middleware(Guard, hosts=hosts, names=names, token=token)
    ui.run_with(
        app, title="Ragistry", favicon=FAVICON, dark=None, language="en-US", show_welcome_message=False,
        reconnect_timeout=RECONNECT, binding_refresh_interval=None,
    )  # fmt: skip
    return app


def serve(
    site: Site,
    listener: socket.socket,
    host: str,
    *,
    names: Collection[str] = (),
    ready: Callable[[str], None],
    stopping: Callable[[], None],
) -> None:
    """Serve until interrupted, on a ``listener`` that is bound to ``host``.

    ``names``: what a proxy calls this page. ``ready`` is called with what follows the port in the address to open: the
    token, where one is needed. On a loopback address without a proxy none is; else one is made for this run.
    ``stopping`` is called as soon as that is asked for. Raises `KeyboardInterrupt` where it was by Ctrl-C.
    """
    loopback = host in LOOPBACK
    token = None if loopback and not names else secrets.token_urlsafe(24)
    hosts = LOOPBACK if loopback else frozenset({*LOOPBACK, host, socket.gethostname().lower(), *_addresses(host)})
    try:
        app = application(site, hosts=hosts, names=names, token=token)
        ready(f"?token={token}" if token else "")
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=3)
        _Server(config, site, stopping).run(sockets=[listener])
    finally:
        site.close()


class _Server(uvicorn.Server):
    """Ends what is being taken in while requests still have their time to end."""

    def __init__(self, config: uvicorn.Config, site: Site, stopping: Callable[[], None]) -> None:
        super().__init__(config)
        self._site = site
        self._stopping = stopping

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopping()
        self._site.jobs.stop()
        self._site.comparisons.stop()
        # It would show a traceback for each request that is cut off, such as a file on its way.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        await super().shutdown(sockets)


def _addresses(host: str) -> set[str]:
    """The addresses of this machine, where it listens on all of them."""
    if host not in ("0.0.0.0", "::"):
        return set()
    with suppress(OSError):
        return {str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None)}
    return set()
