"""Who is let in: the right host, a token where one is needed, and bodies that are not too large."""

from __future__ import annotations

import asyncio
import logging
from time import monotonic

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragistry.errors import AccessDeniedError, InvalidConfigError
from ragistry.server.access import ANYBODY, Caller, Tokens
from ragistry.server.answers import refusal
from ragistry.web.security import LOOPBACK, SAFE_METHODS, host_name, netloc_of

_log = logging.getLogger(__name__)

OPEN = frozenset({"/healthz", "/readyz"})
"""Answered to everybody: they say that the server works, and nothing else."""
UPLOADS, SMALL = "/v1/ingest/", ("/v1/", "/mcp")
BODY_SECONDS = 20.0
"""Maximum pause in a request; a whole request may take this time and a second for each megabyte that it may have."""
BODY_MEGABYTES = 16
"""Of a request that brings no sources."""


class Guard:
    """ASGI middleware that puts a `Caller` into ``scope["caller"]``, or answers 401, 403 or 413.

    ``exposed``: whether the server listens beyond loopback; then a token is always needed. Else it is as soon as
    config/tokens.yaml has one. Where none is needed, the Host header must name loopback, so that a foreign name that
    is pointed at this machine (DNS rebinding) reads nothing, and a page of another origin changes nothing. A token
    makes both needless: no browser sends it by itself.
    """

    def __init__(self, app: ASGIApp, *, tokens: Tokens, exposed: bool, upload_megabytes: int) -> None:
        self.app = app
        self.tokens = tokens
        self.exposed = exposed
        self.upload_megabytes = upload_megabytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] == "http" and scope["path"] in OPEN:
            scope["caller"] = Caller("anybody", frozenset())
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        found = self._caller(scope, headers)
        if isinstance(found, Caller):
            scope["caller"] = found
            found = self._too_large(scope, headers) or found
        if isinstance(found, Response):
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            else:
                await found(scope, receive, send)
            return
        await self.app(scope, self._counted(scope, receive), send)

    def _caller(self, scope: Scope, headers: Headers) -> Caller | Response:
        try:
            if not self.exposed and not self.tokens.entries():
                return self._foreign(scope, headers) or ANYBODY
            kind, _, secret = headers.get("authorization", "").partition(" ")
            if kind.lower() != "bearer" or not secret.strip():
                return refusal(401, "a token is needed; send the header `Authorization: Bearer SECRET`")
            return self.tokens.caller(secret.strip())
        except AccessDeniedError as error:
            return refusal(401, str(error))
        except (InvalidConfigError, OSError) as error:
            _log.error("every request is refused: %s", error)
            return refusal(503, "the tokens of this server cannot be read; its log says why")

    def _foreign(self, scope: Scope, headers: Headers) -> Response | None:
        """The refusal of a request from another site."""
        host = headers.get("host", "")
        if host_name(host) not in LOOPBACK:
            return refusal(
                403, f"host {host[:100]!r} is not served without tokens; make one: `ragistry serve token NAME`"
            )
        origin = headers.get("origin")
        changes = scope["type"] == "websocket" or scope["method"] not in SAFE_METHODS
        if changes and origin is not None and netloc_of(origin) != host.lower():
            return refusal(403, f"a page of {origin[:100]!r} may not use this server without a token")
        return None

    def _limit(self, scope: Scope) -> int:
        path: str = scope["path"]
        return BODY_MEGABYTES if path.startswith(SMALL) and not path.startswith(UPLOADS) else self.upload_megabytes

    def _too_large(self, scope: Scope, headers: Headers) -> Response | None:
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) <= self._limit(scope) * 1_000_000:
            return None
        return refusal(413, f"a request here may have {self._limit(scope):,} MB at most; send less at once")

    def _counted(self, scope: Scope, receive: Receive) -> Receive:
        """``receive``, which ends a body that becomes too large or does not arrive in time."""
        if scope["type"] != "http":
            return receive
        limit, read, is_whole = self._limit(scope), 0, False
        end = monotonic() + BODY_SECONDS + limit

        async def counted() -> Message:
            nonlocal read, is_whole
            if is_whole:  # waits for the client to hang up
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), max(0.0, min(BODY_SECONDS, end - monotonic())))
            except TimeoutError as error:
                said = f"the body did not arrive within {BODY_SECONDS:g} seconds; send it again"
                raise HTTPException(408, said) from error
            is_whole = not message.get("more_body", False)
            read += len(message.get("body", b""))
            if read > limit * 1_000_000:
                raise HTTPException(413, f"a request here may have {limit:,} MB at most; send less at once")
            return message

        return counted
