"""MCP over HTTP: for this machine only, or for other machines with a token."""

from __future__ import annotations

from collections.abc import Sequence

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.types import ASGIApp

from ragistry.errors import AccessDeniedError, ConfigError
from ragistry.http.guard import LOOPBACK, BodyLimit, Guarded, HostGuard, OriginGuard, TokenGuard, host_name, same_token
from ragistry.mcp.server import build_server
from ragistry.tools.search_library import SearchLibraryTool

PATH = "/mcp"
EVERY_ADDRESS = ("", "0.0.0.0", "::")
TOKEN_VARIABLE = "RAGISTRY_MCP_TOKEN"
TOKEN_CHARACTERS = 16
MISDIRECTED = 421
"""Status for a foreign Host header, as in the MCP SDK."""


def check_exposure(host: str, token: str | None, names: Sequence[str]) -> None:
    """Check that other machines need a token, and that clients can name the server.

    Raises:
        ConfigError: The token is missing or too short, or no host name is known.
    """
    if token is not None and (len(token) < TOKEN_CHARACTERS or not token.isascii()):
        raise ConfigError(
            f"{TOKEN_VARIABLE} has {len(token)} characters; use at least {TOKEN_CHARACTERS} ASCII characters, such as "
            "the output of `openssl rand -hex 32`"
        )
    if host in LOOPBACK and not names:
        return
    if token is None:
        option = f"--name {names[0]!r}" if host in LOOPBACK else f"--host {host!r}"
        raise ConfigError(
            f"{option} opens the server to other machines; set {TOKEN_VARIABLE} to a token for them, or omit the option"
        )
    if host in EVERY_ADDRESS and not names:
        raise ConfigError(f"--host {host!r} does not say how clients name the server; add --name")


def mcp_app(tool: SearchLibraryTool) -> Starlette:
    """Build the application that serves `PATH`, without guards."""
    unguarded = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    return build_server(tool).streamable_http_app(streamable_http_path=PATH, transport_security=unguarded)


def guarded_app(
    tool: SearchLibraryTool, host: str, port: int, *, token: str | None, names: Sequence[str] = ()
) -> ASGIApp:
    """Build the application that serves `PATH`, with guards.

    Args:
        tool: The tool to serve.
        host: Address on which the server listens.
        port: Port on which the server listens.
        token: Token that clients need; None: no token is needed.
        names: Further host names that clients use.

    Raises:
        ConfigError: See `check_exposure`.
    """
    check_exposure(host, token, names)

    def authenticate(given: str) -> None:
        if token is None or not same_token(given, token):
            raise AccessDeniedError(f"the token is not valid; send the value of {TOKEN_VARIABLE}")

    own = LOOPBACK if host in LOOPBACK else {host}.difference(EVERY_ADDRESS)
    app: ASGIApp = BodyLimit(mcp_app(tool))
    if token is not None:
        app = Guarded(app, TokenGuard(authenticate))
    host_guard = HostGuard({*own, *map(_bare, names)}, "to serve this name, add --name", MISDIRECTED)
    return Guarded(app, host_guard, OriginGuard([*names, *(f"{name}:{port}" for name in names)]))


def _bare(name: str) -> str:
    """Return a host name without its port; an IPv6 address may come without brackets."""
    return name if name.count(":") > 1 and not name.startswith("[") else host_name(name)


def http_server(
    tool: SearchLibraryTool, host: str, port: int, *, token: str | None, names: Sequence[str] = ()
) -> uvicorn.Server:
    """Build a server to ``run`` on a bound socket. The arguments are those of `guarded_app`."""
    app = guarded_app(tool, host, port, token=token, names=names)
    return uvicorn.Server(
        uvicorn.Config(app, log_config=None, access_log=False, ws="none", timeout_graceful_shutdown=3)
    )
