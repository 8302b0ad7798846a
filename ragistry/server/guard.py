"""Middleware that identifies the caller of a request, and refuses requests that are not allowed."""

from __future__ import annotations

import logging

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Scope

from ragistry.errors import InvalidConfigError
from ragistry.http.errors import refusal
from ragistry.http.guard import BODY_MEGABYTES, LOOPBACK, BodyLimit, Guarded, HostGuard, OriginGuard, TokenGuard
from ragistry.server.access import LOCAL_CALLER, Caller, Tokens

_log = logging.getLogger(__name__)

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""Paths that need no token: they say only whether the server works."""
UPLOADS, SMALL = "/v1/ingest/", ("/v1/", "/mcp")


class CallerGuard(Guarded):
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

        super().__init__(BodyLimit(app, megabytes=megabytes, respond=refusal), self, respond=refusal)
        self.tokens = tokens
        self.exposed = exposed
        self._token = TokenGuard(tokens.caller)
        self._host = HostGuard(LOOPBACK, "create a token: `ragistry serve token NAME`")
        self._origin = OriginGuard()

    def problem(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        if scope["type"] == "http" and scope["path"] in OPEN_PATHS:
            scope["caller"] = Caller("public", frozenset())
            return None
        try:
            needs_token = bool(self.tokens.entries()) or self.exposed
        except (InvalidConfigError, OSError) as error:
            _log.error("all requests are refused: %s", error)
            return 503, "the server cannot read its tokens; see its log"
        if needs_token:
            return self._token.problem(scope, headers)
        scope["caller"] = LOCAL_CALLER
        return self._host.problem(scope, headers) or self._origin.problem(scope, headers)
