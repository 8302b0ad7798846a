"""The address of Ollama, in every form that ``OLLAMA_HOST`` accepts."""

from __future__ import annotations

import ipaddress
import os
import re
from urllib.parse import quote, urlsplit

from ragistry.errors import ConfigError
from ragistry.utils.urls import base_address, split_login

PORT = 11434
_PATHS = re.compile(r"/(?:v1|api)/?$")
_PORTS = {"http": 80, "https": 443}


def resolve_host(host: str | None = None) -> str:
    """Return the address to use: ``host``, else ``OLLAMA_HOST``, else this machine; see `parse_host`."""
    return parse_host(host or os.environ.get("OLLAMA_HOST"))


def parse_host(host: str | None) -> str:
    """Normalise an address to ``scheme://[login@]host:port[/path]`` without a slash at its end.

    Defaults: host this machine; scheme http; port 11434, or the scheme's default port if a scheme is given. Addresses
    for listening (``0.0.0.0``, ``::``) mean this machine too. Paths of the protocol are left out, such as ``/v1`` or
    ``/api/chat``. User name and password are kept, for a proxy. Raises `ConfigError`.
    """
    text, login = split_login(base_address((host or "").strip().strip("\"'")))
    scheme, written, rest = text.partition("://")
    if not written:
        scheme, rest = "http", text
    if scheme not in _PORTS:
        raise ConfigError(f"the address of Ollama must start with http:// or https://, got {text!r}")
    try:
        parts = urlsplit(f"{scheme}://{_bracketed(rest)}")
        name, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"the address of Ollama is malformed: {text!r} ({error}); write host:port") from error
    port = port or (_PORTS[scheme] if written else PORT)
    before = "" if login is None else f"{quote(login.user, safe='')}:{quote(login.password, safe='')}@"
    return f"{scheme}://{before}{_callable(name or '127.0.0.1')}:{port}/{_PATHS.sub('', parts.path).strip('/')}".rstrip(
        "/"
    )


def _bracketed(rest: str) -> str:
    """Put an IPv6 address into brackets, as in a URL."""
    return f"[{rest}]" if _address(rest) and ":" in rest else rest


def _callable(name: str) -> str:
    address = _address(name)
    if address is None:
        return name
    if address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "[::1]"
    return name if address.version == 4 else f"[{name}]"


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
