"""Guards that refuse requests by host, origin, token or body size. Each class has one duty; `Guarded` stacks them."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Collection
from time import monotonic
from typing import Protocol
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragistry.errors import AccessDeniedError

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
POLICY_VIOLATION = 1008
"""WebSocket close code."""
BODY_MEGABYTES = 16
"""Maximum size of a request that uploads no files."""
BODY_SECONDS = 20.0
"""Maximum seconds between two parts of a request body."""

Respond = Callable[[int, str], Response]
"""Make the response to a refused request from a status and a message."""


def respond_as_text(status: int, message: str) -> Response:
    """Make a plain-text response; one with status 401 asks for a bearer token."""
    return PlainTextResponse(message, status, {"WWW-Authenticate": "Bearer"} if status == 401 else {})


async def refuse(scope: Scope, receive: Receive, send: Send, response: Response, reason: str) -> None:
    """Send the response, or close a WebSocket with the reason."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": reason[:120]})
    else:
        await response(scope, receive, send)


class Guard(Protocol):
    """Looks at the head of a request."""

    def problem(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        """Return status and message if the request must be refused."""


class Guarded:
    """ASGI middleware that refuses a request for which a guard returns a problem.

    Args:
        app: The next application.
        guards: The guards, in this order.
        respond: Makes the response to a refused request.
    """

    def __init__(self, app: ASGIApp, *guards: Guard, respond: Respond = respond_as_text) -> None:
        self.app = app
        self.guards = guards
        self.respond = respond

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            headers = Headers(scope=scope)
            for guard in self.guards:
                if problem := guard.problem(scope, headers):
                    await refuse(scope, receive, send, self.respond(*problem), problem[1])
                    return
        await self.app(scope, receive, send)


class HostGuard:
    """Refuse requests whose Host header names another host.

    This prevents DNS rebinding: a foreign name that resolves to this machine reads nothing.

    Args:
        hosts: Allowed host names, without ports.
        remedy: End of the message, after the refused host.
        status: Status of the response.
    """

    def __init__(self, hosts: Collection[str], remedy: str, status: int = 403) -> None:
        self.hosts = frozenset(host.lower() for host in hosts)
        self.remedy = remedy
        self.status = status

    def problem(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:  # noqa: ARG002, as in `Guard`
        host = headers.get("host", "")
        if host_name(host) in self.hosts:
            return None
        return self.status, f"host {host[:100]!r} is not served here; {self.remedy}"


class OriginGuard:
    """Refuse changes and WebSockets from pages of other origins.

    Programs send no Origin header and pass.

    Args:
        names: Names of this site behind a proxy, with the port if it is not that of http or https. The proxy may send
            another Host header.
    """

    def __init__(self, names: Collection[str] = ()) -> None:
        self.names = frozenset(name.lower() for name in names)

    def problem(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        if scope["type"] == "http" and scope["method"] in SAFE_METHODS:
            return None
        origin = headers.get("origin")
        if origin is None and headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return 403, "pages of other sites cannot change anything here; open this site itself"
        if origin is not None and _netloc(origin) not in {headers.get("host", "").lower(), *self.names}:
            return 403, f"a page of {origin[:100]!r} cannot change anything here; open this site itself"
        return None


class TokenGuard:
    """Require the header ``Authorization: Bearer TOKEN``.

    The result of ``authenticate`` is stored in ``scope["caller"]``. The scheme is case-insensitive (RFC 9110, section
    11.1).

    Args:
        authenticate: Identifies the caller by the token. It raises `AccessDeniedError` for an invalid token.
    """

    def __init__(self, authenticate: Callable[[str], object]) -> None:
        self.authenticate = authenticate

    def problem(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return 401, "a token is required; send the header `Authorization: Bearer SECRET`"
        try:
            scope["caller"] = self.authenticate(token.strip())
        except AccessDeniedError as error:
            return 401, str(error)
        return None


class BodyLimit(Guarded):
    """ASGI middleware that limits the size of request bodies, and the time in which they arrive.

    Two parts of a body may be `BODY_SECONDS` apart, and the whole body may take this time plus one second for each
    megabyte of its limit.

    Args:
        app: The next application.
        megabytes: Returns the limit for a path.
        length_required: Refuse bodies without a Content-Length header. Otherwise they are counted while they are read.
        respond: Makes the response.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        megabytes: Callable[[str], int] = lambda _: BODY_MEGABYTES,
        length_required: bool = False,
        respond: Respond = respond_as_text,
    ) -> None:
        super().__init__(app, self, respond=respond)
        self.megabytes = megabytes
        self.length_required = length_required

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await super().__call__(scope, self._counted(scope, receive) if scope["type"] == "http" else receive, send)

    def problem(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        if scope["type"] != "http":
            return None
        is_unknown = self.length_required and "transfer-encoding" in headers
        length, limit = headers.get("content-length", "" if is_unknown else "0"), self.megabytes(scope["path"])
        is_allowed = length.isdecimal() and int(length) <= limit * 1_000_000
        return None if is_allowed else (413, _too_large(limit))

    def _counted(self, scope: Scope, receive: Receive) -> Receive:
        """Return a ``receive`` that raises `HTTPException` for a body that is too large or too slow."""
        limit, read, is_whole = self.megabytes(scope["path"]), 0, False
        pause = BODY_SECONDS
        end = monotonic() + pause + limit

        async def counted() -> Message:
            nonlocal read, is_whole
            if is_whole:  # waits until the client disconnects
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), max(0.0, min(pause, end - monotonic())))
            except TimeoutError as error:
                raise HTTPException(408, f"the body did not arrive within {pause:g} seconds; send it again") from error
            is_whole = not message.get("more_body", False)
            read += len(message.get("body", b""))
            if read > limit * 1_000_000:
                raise HTTPException(413, _too_large(limit))
            return message

        return counted


def _too_large(megabytes: int) -> str:
    return f"the request is larger than the limit of {megabytes:,} MB; send less at once"


def same_token(given: str, token: str) -> bool:
    """Compare two tokens in constant time."""
    return hmac.compare_digest(given.encode(), token.encode())


def host_name(host: str) -> str:
    """Return the host name in a Host header without its port; empty if the header is malformed."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _netloc(origin: str) -> str:
    """Return host and port of an Origin header; empty if the header is malformed."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""
