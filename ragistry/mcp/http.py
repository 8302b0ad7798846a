"""The server over HTTP: for this machine alone, unless a token guards it."""

from __future__ import annotations

import hmac
from collections.abc import Sequence

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from ragistry.errors import ConfigError
from ragistry.mcp.server import build_server
from ragistry.tools.search_library import SearchLibraryTool

PATH = "/mcp"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
EVERY_ADDRESS = ("", "0.0.0.0", "::")
TOKEN_VARIABLE = "RAGISTRY_MCP_TOKEN"
TOKEN_CHARACTERS = 16


class TokenGate:
    """Lets through what carries ``Authorization: Bearer TOKEN``; anything else gets 401.

    The name of the scheme may be written in any letters (RFC 9110, section 11.1).
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app = app
        self._expected = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            kind, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
            right = hmac.compare_digest(given.strip(" ").encode("latin-1"), self._expected)
            if kind.lower() != "bearer" or not right:
                refusal = PlainTextResponse("a token is needed", 401, {"WWW-Authenticate": "Bearer"})
                await refusal(scope, receive, send)
                return
        await self.app(scope, receive, send)


def check_exposure(host: str, token: str | None, names: Sequence[str]) -> None:
    """Raise `ConfigError` where the server would be open to others without a token, or to no name at all."""
    if token is not None and (len(token) < TOKEN_CHARACTERS or not token.isascii()):
        raise ConfigError(
            f"{TOKEN_VARIABLE} has {len(token)} characters; use {TOKEN_CHARACTERS} or more of ASCII, such as those of "
            "`openssl rand -hex 32`"
        )
    if host in LOOPBACK and not names:
        return
    if token is None:
        option = f"--name {names[0]!r}" if host in LOOPBACK else f"--host {host!r}"
        raise ConfigError(
            f"{option} lets other machines in; set {TOKEN_VARIABLE} to a token that they must send, "
            "or leave the option out"
        )
    if host in EVERY_ADDRESS and not names:
        raise ConfigError(f"--host {host!r} says no name; give those that clients use with --name")


def security(host: str, port: int, names: Sequence[str]) -> TransportSecuritySettings:
    """Which ``Host`` and ``Origin`` a request may have: a page of a stranger's that a browser shows has others."""
    hosts = [*(LOOPBACK if host in LOOPBACK else [host] if host not in EVERY_ADDRESS else []), *names]
    spelled = [f"[{name}]" if ":" in name else name for name in hosts]
    served = [*spelled, *(f"{name}:{port}" for name in spelled)]
    return TransportSecuritySettings(
        allowed_hosts=served, allowed_origins=[f"{scheme}://{name}" for name in served for scheme in ("http", "https")]
    )


def http_app(tool: SearchLibraryTool, host: str, port: int, *, token: str | None, names: Sequence[str] = ()) -> ASGIApp:
    """The application behind ``PATH``. Raises `ConfigError` as `check_exposure` does."""
    check_exposure(host, token, names)
    app = build_server(tool).streamable_http_app(
        streamable_http_path=PATH, host=host, transport_security=security(host, port, names)
    )
    return app if token is None else TokenGate(app, token)


def http_server(
    tool: SearchLibraryTool, host: str, port: int, *, token: str | None, names: Sequence[str] = ()
) -> uvicorn.Server:
    """A server to ``run`` on a socket that is bound. Raises `ConfigError` as `check_exposure` does."""
    app = http_app(tool, host, port, token=token, names=names)
    return uvicorn.Server(
        uvicorn.Config(app, log_config=None, access_log=False, ws="none", timeout_graceful_shutdown=3)
    )
