"""HTTP clients with one deadline from connecting to the last byte, and limits of the decoded size.

The time-outs of httpx limit each single wait, so a server that sends a byte now and then never times out, and httpx
decodes a compressed answer of any size. `limited_client` creates a client that has neither problem; `read_body` and
`read_lines` read its answers.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from ssl import SSLContext
from time import monotonic
from typing import Any

import httpcore
import httpx

from ragistry.errors import ConfigError

CONNECT_SECONDS = 5.0
"""Maximum time to connect; a running server accepts at once."""
RECEIVED = 1_000_000_000
"""Maximum number of bytes of an answer and its headers, before they are decoded."""
_PIECE = 65_536


@dataclass(slots=True)
class _Exchange:
    """The end of an exchange, by `time.monotonic`, and the bytes that it may still receive."""

    ends: float
    left: int


class Limit(float):
    """A time-out in seconds that also ends with its exchange."""

    exchange: _Exchange

    def __new__(cls, seconds: float, exchange: _Exchange) -> Limit:
        limit = super().__new__(cls, seconds)
        limit.exchange = exchange
        return limit

    def left(self) -> float:
        """Return the remaining seconds; at least a millisecond, because sockets treat 0 as no wait."""
        return max(0.001, min(float(self), self.exchange.ends - monotonic()))


def limits(ends: float, *, pause: float | None = None) -> dict[str, Any]:
    """Return the ``extensions`` of a request that ends at a time.

    Args:
        ends: Latest end of the whole exchange, by `time.monotonic`.
        pause: Maximum seconds between two pieces of the answer; None for no limit but ``ends``.
    """
    seconds = ends - monotonic()
    exchange = _Exchange(ends, RECEIVED)
    connect, wait = Limit(min(CONNECT_SECONDS, seconds), exchange), Limit(min(pause or seconds, seconds), exchange)
    return {"timeout": {"connect": connect, "pool": connect, "read": wait, "write": wait}}


def limited_client(*, timeout: float, base_url: httpx.URL | str = "", **options: Any) -> httpx.Client:
    """Return an httpx client whose every exchange, redirects included, ends after ``timeout`` seconds.

    A request may have its own `limits`. Uncompressed answers are requested. Proxies of the environment are used, except
    for addresses of this machine, which no proxy reaches.

    Args:
        timeout: Seconds from connecting to the last byte.
        base_url: As in httpx.
        options: Other arguments of `httpx.Client`.

    Raises:
        ConfigError: A proxy of the environment cannot be used.
        httpx.InvalidURL: ``base_url`` is not an address.
    """
    url = httpx.URL(base_url)
    options = {"trust_env": not is_this_machine(url.host), "verify": _certificates(), **options}
    try:
        client = httpx.Client(base_url=url, timeout=timeout, **options)
    except (ImportError, ValueError) as error:
        raise ConfigError(
            f"the proxy of the environment cannot be used ({error}); correct HTTP_PROXY, HTTPS_PROXY or ALL_PROXY"
        ) from error
    _limit_exchanges(client, timeout)
    return client


def adopt_client(client: httpx.Client, url: str, timeout: float) -> None:
    """Add these limits to the client of another library: a deadline, and no compressed answers.

    Args:
        client: The client.
        url: Address that it connects to. For an address of this machine, no proxy is used.
        timeout: Seconds from connecting to the last byte.
    """

    def refuse(response: httpx.Response) -> None:
        if (name := response.headers.get("Content-Encoding", "identity")) != "identity":
            raise httpx.DecodingError(f"its encoding {name!r} was not requested", request=response.request)

    if is_this_machine(httpx.URL(url).host):
        client._mounts.clear()
    client.timeout = httpx.Timeout(timeout)
    _limit_exchanges(client, timeout)
    client.event_hooks["response"].append(refuse)


def read_body(response: httpx.Response, limit: int) -> bytes:
    """Read and decode an answer; stop shortly after ``limit`` bytes.

    Raises:
        httpx.HTTPError: The answer is aborted, takes too long, or is not compressed as declared.
    """
    body = bytearray()
    for piece in _decoded(response):
        body += piece
        if len(body) > limit:
            break
    return bytes(body)


def read_lines(response: httpx.Response, limit: int) -> Iterator[str]:
    """Yield the lines of an answer as they arrive, in UTF-8, without their ends.

    Raises:
        httpx.HTTPError: The answer is aborted, or a line is longer than ``limit`` bytes.
    """
    line = bytearray()
    for piece in _decoded(response):
        *ended, rest = piece.split(b"\n")
        for end in ended:
            line += end
            yield line.decode(errors="replace").removesuffix("\r")
            line.clear()
        line += rest
        if len(line) > limit:
            raise httpx.DecodingError(f"a line has more than {limit:,} bytes", request=response.request)
    if line:
        yield line.decode(errors="replace").removesuffix("\r")


def is_this_machine(host: str) -> bool:
    """Return whether a host name or address is a loopback address."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _limit_exchanges(client: httpx.Client, timeout: float) -> None:
    """End every exchange of an existing client after ``timeout`` seconds."""
    for transport in (client._transport, *client._mounts.values()):
        if isinstance(transport, httpx.HTTPTransport):
            # httpx has no public argument for the network backend of httpcore.
            transport._pool._network_backend = _Backend(transport._pool._network_backend)

    def limit(request: httpx.Request) -> None:
        """Set the deadline; a redirected request keeps that of the first."""
        if not isinstance(request.extensions["timeout"].get("read"), Limit):
            request.extensions |= limits(monotonic() + timeout)

    client.headers["Accept-Encoding"] = "identity"
    client.event_hooks["request"].append(limit)


def _decoded(response: httpx.Response) -> Iterator[bytes]:
    """Yield the body in pieces of bounded size, whatever its compression, gzip or deflate."""
    pieces = response.iter_raw()
    names = [name.strip().lower() for name in response.headers.get("Content-Encoding", "").split(",") if name.strip()]
    for name in reversed(names):
        if name in ("gzip", "x-gzip", "deflate"):
            pieces = _inflated(pieces, response)
        elif name != "identity":
            raise httpx.DecodingError(f"its encoding {name!r} was not requested", request=response.request)
    return pieces


def _inflated(pieces: Iterator[bytes], response: httpx.Response) -> Iterator[bytes]:
    stream = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib, by its first bytes
    try:
        for piece in pieces:
            while piece and not stream.eof:
                yield stream.decompress(piece, _PIECE)
                piece = stream.unconsumed_tail
    except zlib.error as error:
        raise httpx.DecodingError(f"it is not compressed as declared: {error}", request=response.request) from error


class _Backend(httpcore.NetworkBackend):
    """A network backend that enforces each `Limit`."""

    def __init__(self, inner: httpcore.NetworkBackend) -> None:
        self._inner = inner

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore.NetworkStream:
        inner = self._inner.connect_tcp(host, port, _left(timeout), local_address, socket_options)
        return _Stream(inner, timeout)

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Any = None
    ) -> httpcore.NetworkStream:
        return _Stream(self._inner.connect_unix_socket(path, _left(timeout), socket_options), timeout)

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)


class _Stream(httpcore.NetworkStream):
    """A connection that enforces each `Limit`; ``limit``: used if httpcore passes none, as for a SOCKS proxy."""

    def __init__(self, inner: httpcore.NetworkStream, limit: float | None) -> None:
        self._inner = inner
        self._limit = limit

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        received = self._inner.read(max_bytes, self._wait(timeout, httpcore.ReadTimeout))
        if isinstance(timeout, Limit):
            timeout.exchange.left -= len(received)
            if timeout.exchange.left < 0:
                raise httpcore.RemoteProtocolError("the answer is too large")
        return received

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, self._wait(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, _left(timeout)), timeout)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)

    def _wait(self, timeout: float | None, error: type[Exception]) -> float | None:
        limit = self._limit if timeout is None else timeout
        if isinstance(limit, Limit) and monotonic() >= limit.exchange.ends:
            raise error("the exchange did not end in time")
        return _left(limit)


def _left(timeout: float | None) -> float | None:
    return timeout.left() if isinstance(timeout, Limit) else timeout


@cache
def _certificates() -> SSLContext:
    """Load the root certificates. It takes 25 ms, so all clients share them."""
    return httpx.create_ssl_context()
