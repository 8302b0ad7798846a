"""The page as a web application, and its server."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode

from fastapi import FastAPI
from nicegui import core, ui
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragistry.http.guard import LOOPBACK, BodyLimit, Guarded, HostGuard, OriginGuard, host_name, refuse, same_token
from ragistry.server.access import LOCAL_CALLER
from ragistry.server.app import create_app
from ragistry.server.jobs import SavedJobs
from ragistry.server.uploads import UPLOAD_MEGABYTES
from ragistry.web import (
    collections_page,
    compare_page,
    files,
    search_page,
    sources_page,
)
from ragistry.web.app_state import AppState
from ragistry.web.socket_messages import SocketMessages
from ragistry.workspace import Workspace

PAGES = (search_page, files, collections_page, sources_page, compare_page)
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


# --- Guards: the token in its cookie, security headers ---


COOKIE = "ragistry_token"

CONTENT_POLICY = "; ".join(
    [
        "default-src 'self'",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "connect-src 'self'",
        # NiceGUI has scripts and styles in its page, and Vue and Tailwind compile templates and styles in the browser.
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",  # the icon of the page, and icons of Quasar
        "font-src 'self' data:",
    ]
)
"""Content-Security-Policy: a script that gets into the page can load nothing from other servers, and send nothing there
in the background."""

HEADERS = (
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),  # other sites cannot embed a page of a PDF as an image
)


def guard_page(
    app: ASGIApp,
    *,
    hosts: Collection[str],
    names: Collection[str] = (),
    token: str | None = None,
    megabytes: int = UPLOAD_MEGABYTES,
) -> ASGIApp:
    """Wrap the application of the page in its guards. A visitor who passes them may do everything.

    Args:
        app: The application.
        hosts: Host names that the page serves.
        names: Names of the page behind a proxy, with the port if it is not that of http or https.
        token: Token that visitors need; None: no token is needed.
        megabytes: Maximum size of a request, which may contain several files.
    """

    async def as_local_caller(scope: Scope, receive: Receive, send: Send) -> None:
        scope["caller"] = LOCAL_CALLER
        await app(scope, receive, send)

    guarded: ASGIApp = as_local_caller if token is None else PageTokenGuard(as_local_caller, token)
    guarded = BodyLimit(guarded, megabytes=lambda _: megabytes, length_required=True)
    host = HostGuard({*hosts, *map(host_name, names)}, "to serve this name, start `ragistry ui` with --name")
    return SecurityHeaders(Guarded(guarded, host, OriginGuard(names)))


class PageTokenGuard:
    """Require a token, which is read from ``?token=`` once and then kept in a cookie that scripts cannot read."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app = app
        self.token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers, query = Headers(scope=scope), parse_qsl(scope["query_string"].decode("latin-1"))
        cookie = cookie_name(headers.get("host", ""))
        # Cookies of other programs on this machine may be malformed, so no parser is used.
        pairs = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
        if same_token(next((value for name, _, value in pairs if name == cookie), ""), self.token):
            await self.app(scope, receive, send)
        elif scope["type"] == "http" and same_token(dict(query).get("token", ""), self.token):
            # Redirect to the address without the token. The cookie is sent when a link on another site leads here
            # (Lax); changes are protected by `OriginGuard`.
            rest = [(name, value) for name, value in query if name != "token"]
            # A single slash at the beginning: two would name a host.
            target = "/" + quote(scope["path"].lstrip("/")) + ("?" + urlencode(rest) if rest else "")
            kept = {"set-cookie": f"{cookie}={self.token}; Path=/; HttpOnly; SameSite=Lax"}
            await RedirectResponse(target, 303, kept)(scope, receive, send)
        else:
            reason = "a token is required; open the address that `ragistry ui` printed, which contains it"
            await refuse(scope, receive, send, PlainTextResponse(reason, 401), reason)


class SecurityHeaders:
    """Add `HEADERS` to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        await self.app(scope, receive, send_with_headers)


def cookie_name(host: str) -> str:
    """Name the cookie by the port, because browsers send the cookies of all ports of a machine."""
    port = host.rpartition(":")[2]
    return f"{COOKIE}_{port}" if port.isdecimal() else COOKIE
