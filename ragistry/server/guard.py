"""Middleware that identifies the caller of a request, and refuses requests that are not allowed."""

from __future__ import annotations

import logging

from starlette.types import ASGIApp, Receive, Scope, Send

from ragistry.errors import InvalidConfigError
from ragistry.http.errors import refusal
from ragistry.http.guard import LOOPBACK, BodyLimit, HostGuard, OriginGuard, TokenGuard, refuse
from ragistry.server.access import LOCAL_CALLER, Caller, Tokens

_log = logging.getLogger(__name__)

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""Paths that need no token: they say only whether the server works."""
UPLOADS, SMALL = "/v1/ingest/", ("/v1/", "/mcp")
BODY_SECONDS = 20.0
"""Maximum seconds between two parts of a request body."""
BODY_MEGABYTES = 16
"""Maximum size of a request that uploads no sources."""


class CallerGuard:
    """ASGI middleware that stores the `Caller` of a request in ``scope["caller"]``.

    A token is required if the server is exposed, or if config/tokens.yaml contains one. Without tokens, only requests
    from this machine pass, and only pages of this server may change anything. Tokens make these checks unnecessary,
    because no browser sends a token by itself.

    Args:
        app: The next application.
        tokens: The tokens of the workspace.
        exposed: Whether the server listens beyond loopback.
        upload_megabytes: Maximum size of a request that uploads sources.
    """

    def __init__(self, app: ASGIApp, *, tokens: Tokens, exposed: bool, upload_megabytes: int) -> None:
        def megabytes(path: str) -> int:
            return BODY_MEGABYTES if path.startswith(SMALL) and not path.startswith(UPLOADS) else upload_megabytes

        self.app = BodyLimit(app, megabytes=megabytes, pause=lambda: BODY_SECONDS, respond=refusal)
        self.tokens = tokens
        self.exposed = exposed
        self._with_token = TokenGuard(self.app, authenticate=tokens.caller, respond=refusal)
        self._without_token = HostGuard(
            OriginGuard(self.app, respond=refusal),
            hosts=LOOPBACK,
            remedy="create a token: `ragistry serve token NAME`",
            respond=refusal,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        if scope["type"] == "http" and scope["path"] in OPEN_PATHS:
            scope["caller"] = Caller("public", frozenset())
            await self.app(scope, receive, send)
            return
        try:
            needs_token = bool(self.tokens.entries()) or self.exposed
        except (InvalidConfigError, OSError) as error:
            _log.error("all requests are refused: %s", error)
            message = "the server cannot read its tokens; see its log"
            await refuse(scope, receive, send, refusal(503, message), message)
            return
        if needs_token:
            await self._with_token(scope, receive, send)
        else:
            scope["caller"] = LOCAL_CALLER
            await self._without_token(scope, receive, send)
