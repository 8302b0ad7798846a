"""Middleware of the page: the token in its cookie, security headers, and the guards that it shares with the server."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, urlencode

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from ragistry.http.guard import BodyLimit, Guarded, HostGuard, OriginGuard, host_name, refuse, same_token
from ragistry.server.access import LOCAL_CALLER
from ragistry.server.uploads import UPLOAD_MEGABYTES

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
        headers = Headers(scope=scope)
        if same_token(_cookie(headers), self.token):
            await self.app(scope, receive, send)
        elif scope["type"] == "http" and same_token(_query_token(scope), self.token):
            await _set_cookie(scope, send, cookie_name(headers.get("host", "")), self.token)
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


def _cookie(headers: Headers) -> str:
    """Read the token's cookie. Cookies of other programs on this machine may be malformed, so no parser is used."""
    expected = cookie_name(headers.get("host", ""))
    pairs = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
    return next((value for name, _, value in pairs if name == expected), "")


def _query_token(scope: Scope) -> str:
    query: bytes = scope["query_string"]
    return parse_qs(query.decode("latin-1")).get("token", [""])[0]


async def _set_cookie(scope: Scope, send: Send, name: str, token: str) -> None:
    """Set the cookie, and redirect to the address without the token.

    The cookie is sent when a link on another site leads here (Lax); changes are protected by `OriginGuard`.
    """
    rest = {key: value for key, value in parse_qs(scope["query_string"].decode("latin-1")).items() if key != "token"}
    # A single slash at the beginning: two would name a host.
    target = "/" + quote(scope["path"].lstrip("/")) + ("?" + urlencode(rest, doseq=True) if rest else "")
    cookie = f"{name}={token}; Path=/; HttpOnly; SameSite=Lax"
    headers = [(b"location", target.encode("latin-1")), (b"set-cookie", cookie.encode("latin-1"))]
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
