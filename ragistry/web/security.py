"""Who may talk to the page: the right host, the right origin, and a token where it is not served on loopback only."""

from __future__ import annotations

import hmac
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, urlencode, urlsplit

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "ragistry_token"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
BODY_MEGABYTES = 2_000
"""Of a request at most: several files are sent at once."""
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),  # another site cannot show a page of a PDF as its own image
)


class Guard:
    """ASGI middleware that answers 403 or 401 to what must not come in.

    ``hosts``: names by which the page may be called. Any other Host header is refused, so that a foreign name that is
    pointed at this address (DNS rebinding) reads nothing. What changes something, and every WebSocket, must come from
    a page of the same host (the Origin header), so that a foreign page cannot act for its visitor. ``names``: what
    visitors call this page through a proxy, with the port where it is not that of http or https; the proxy may say
    another Host to us. ``token``: without it nothing is answered; it is taken from ``?token=`` once, and kept in a
    cookie that scripts cannot read.
    """

    def __init__(
        self, app: ASGIApp, *, hosts: Iterable[str], names: Collection[str] = (), token: str | None = None
    ) -> None:
        self.app = app
        self.hosts = frozenset(host.lower() for host in hosts) | {host_name(name) for name in names}
        self.origins = frozenset(name.lower() for name in names)
        self.token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _refuse(scope, send, *refusal)
            return
        if self.token is not None and not _same(_cookie(headers), self.token):
            if scope["type"] == "http" and _same(_asked(scope), self.token):
                await _enter(scope, send, cookie_name(headers.get("host", "")), self.token)
            else:
                await _refuse(scope, send, 401, "open the address that `ragistry ui` printed: it holds the token")
            return
        await self.app(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if host_name(host) not in self.hosts:
            return (
                403,
                f"host {host!r} is not served here; where it is a name of yours, give it to `ragistry ui --name`",
            )
        origin = headers.get("origin")
        changes = scope["type"] == "websocket" or scope["method"] not in SAFE_METHODS
        if changes and origin is not None and not self._is_ours(origin, host):
            return 403, f"a page of {origin!r} may not use this one"
        if scope["type"] == "http" and scope["method"] not in SAFE_METHODS and not _is_small(headers):
            return 413, f"a request may have {BODY_MEGABYTES:,} MB at most; add fewer files at once"
        if changes and origin is None and headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return 403, "a page of another site may not use this one"
        return None

    def _is_ours(self, origin: str, host: str) -> bool:
        netloc = netloc_of(origin)
        return netloc == host.lower() or netloc in self.origins


def _is_small(headers: dict[str, str]) -> bool:
    """Whether the length of the body is said (it is none where neither header is there), and within the limit."""
    length = headers.get("content-length", "" if "transfer-encoding" in headers else "0")
    return length.isdecimal() and int(length) <= BODY_MEGABYTES * 1_000_000


def host_name(host: str) -> str:
    """The name in a Host header, its port left out; empty for a malformed one."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def netloc_of(origin: str) -> str:
    """The name in an Origin header, with its port; empty for a malformed one."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())


def cookie_name(host: str) -> str:
    """Of the cookie that holds the token: cookies know no ports, and another page on this machine has its own."""
    port = host.rpartition(":")[2]
    return f"{COOKIE}_{port}" if port.isdecimal() else COOKIE


def _cookie(headers: dict[str, str]) -> str:
    """Read by hand: the cookies of other programs on this machine come along, whatever they look like."""
    wanted = cookie_name(headers.get("host", ""))
    pairs = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
    return next((value for name, _, value in pairs if name == wanted), "")


def _asked(scope: Scope) -> str:
    query: bytes = scope["query_string"]
    return parse_qs(query.decode("latin-1")).get("token", [""])[0]


async def _enter(scope: Scope, send: Send, name: str, token: str) -> None:
    """Keep the token in a cookie, and take it out of the address.

    The cookie comes along when a link on another site leads here (Lax): what changes something asks for the origin.
    """
    rest = {key: value for key, value in parse_qs(scope["query_string"].decode("latin-1")).items() if key != "token"}
    # One slash alone at its beginning: with two it would name a host.
    target = "/" + quote(scope["path"].lstrip("/")) + ("?" + urlencode(rest, doseq=True) if rest else "")
    cookie = f"{name}={token}; Path=/; HttpOnly; SameSite=Lax"
    headers = [(b"location", target.encode("latin-1")), (b"set-cookie", cookie.encode("latin-1"))]
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def _refuse(scope: Scope, send: Send, status: int, reason: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": reason[:120]})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": reason.encode()})


def _with_headers(send: Send) -> Send:
    async def answer(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *HEADERS]
        await send(message)

    return answer
