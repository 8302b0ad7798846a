"""JSON over HTTP to a model server: one connection pool, limits on every answer, retries, one kind of error."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache, partial
from ssl import SSLContext
from time import monotonic
from typing import Any, TypeVar

import httpx
import stamina

from ragistry.errors import ConfigError, ModelConnectionError, ModelError
from ragistry.utils.shown import one_line
from ragistry.utils.urls import split_login

Read = TypeVar("Read")

CONNECT_TIMEOUT = 5.0
"""Seconds to wait for a connection; a running server accepts at once."""
LIMIT = 4_000_000
"""Maximum size in bytes of an answer without embeddings. Reading stops at this limit."""
ERROR_LIMIT = 100_000
NO_KEY = (401, 403)
"""HTTP status of a request with a missing or wrong API key."""

# Ollama, vLLM, llama.cpp and TEI; some use status 500 for this
_TOO_LONG = re.compile(
    r"context (length|size)|maximum context|input is too large|too long|must have less than|batch size", re.IGNORECASE
)


class RefusedError(ModelError):
    """The server answered with an HTTP error: its status, the reason that it gave, seconds of Retry-After."""

    def __init__(self, message: str, *, status: int = 0, reason: str = "", wait: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.wait = wait

    @property
    def refuses_form(self) -> bool:
        """Whether the server does not support JSON Schema; llama-cpp-python returns status 500."""
        return "response_format" in self.reason

    @property
    def too_long(self) -> bool:
        """Whether it refused the size of the input."""
        by_reason = self.status in (400, 500) and _TOO_LONG.search(self.reason) is not None
        return by_reason or self.status in (413, 422)

    @property
    def passing(self) -> bool:
        """Whether the same request may succeed later."""
        return not (self.too_long or self.refuses_form) and (self.status == 429 or self.status >= 500)


class JsonClient:
    """A server that accepts and returns JSON. Threads may share it.

    ``base_url``: a user name and password in it are sent and never shown. ``server``: its name in messages.
    ``remedy``: what to do if it cannot be reached. ``timeout``: seconds for one complete answer. ``attempts``: maximum
    number of requests, including the first; waits start at ``backoff`` seconds, double, have up to ``backoff`` of
    jitter, and never exceed ``longest_wait``, even if Retry-After is longer. ``retry_timeouts``: whether to retry after
    a time-out.
    """

    def __init__(
        self,
        base_url: str,
        *,
        server: str = "The model server",
        remedy: str = "start it, or correct its address",
        api_key: str | None = None,
        timeout: float = 60.0,
        attempts: int = 4,
        backoff: float = 0.5,
        longest_wait: float = 30.0,
        retry_timeouts: bool = True,
    ) -> None:
        self.base_url, login = split_login(base_url)
        self.server = f"{server} at {self.base_url}"
        self._remedy = remedy
        self._key = api_key
        self._timeout = timeout
        self._retry = stamina.RetryingCaller(
            attempts=attempts, timeout=None, wait_initial=backoff, wait_jitter=backoff, wait_max=longest_wait
        ).on(partial(worth_retrying, longest_wait=longest_wait, timeouts=retry_timeouts))
        key = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        try:
            self._http = httpx.Client(
                base_url=self.base_url,
                auth=login,
                timeout=httpx.Timeout(timeout, connect=min(timeout, CONNECT_TIMEOUT)),
                headers={"Content-Type": "application/json", **key},
                follow_redirects=True,
                verify=_certificates(),
                trust_env=not _on_this_machine(self.base_url),  # a proxy cannot reach our loopback
            )
        except httpx.InvalidURL as error:
            raise ConfigError(
                f"the address of {server} is malformed: {self.base_url!r} ({error}); write http://HOST:PORT"
            ) from error

    def get(self, path: str, read: Callable[[Any], Read]) -> Read:
        """Send GET and return the answer parsed by ``read``. Raises `ModelError`, also for an unreadable answer."""
        return self._answer("GET", path, None, read, LIMIT)

    def post(self, path: str, body: Mapping[str, Any], read: Callable[[Any], Read], *, limit: int = LIMIT) -> Read:
        """Send POST and return the answer parsed by ``read``. ``limit``: maximum size of the answer in bytes."""
        return self._answer("POST", path, body, read, limit)

    def stream(self, path: str, body: Mapping[str, Any]) -> Iterator[str]:
        """Send POST and yield the non-empty lines as they arrive, without retries. Raises `ModelError`."""
        ends = monotonic() + self._timeout
        with translated(self.server, self._remedy), self._http.stream("POST", path, content=_sent(body)) as response:
            if not response.is_success:
                raise self._refusal(response, self._body(response, ERROR_LIMIT, ends))
            for line in response.iter_lines():
                if monotonic() > ends:
                    raise httpx.ReadTimeout(f"no whole answer in {self._timeout:g} seconds", request=response.request)
                if line.strip():
                    yield line

    def close(self) -> None:
        """Close the connections; closing twice is harmless."""
        self._http.close()

    def _answer(
        self, method: str, path: str, body: Mapping[str, Any] | None, read: Callable[[Any], Read], limit: int
    ) -> Read:
        with translated(self.server, self._remedy):
            answer = self._retry(self._send, method, path, body, limit)
        return self.read(answer, read)

    def read(self, answer: bytes | str, read: Callable[[Any], Read]) -> Read:
        """Parse JSON from the server with ``read``. Raises `ModelError` if that fails."""
        try:
            return read(json.loads(answer))
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            start = answer[:1000]
            said = one_line(start if isinstance(start, str) else start.decode(errors="replace"))
            raise ModelError(
                f"{self.server} answered {said!r}, which is not in its protocol; is another program there?"
            ) from error

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None, limit: int) -> bytes:
        ends = monotonic() + self._timeout
        with self._http.stream(method, path, content=None if body is None else _sent(body)) as response:
            answer = self._body(response, limit if response.is_success else ERROR_LIMIT, ends)
        if response.is_success:
            return answer
        raise self._refusal(response, answer)

    def _refusal(self, response: httpx.Response, answer: bytes) -> RefusedError:
        reason = reason_of(answer)
        if self._key:
            reason = reason.replace(self._key, "…")
        status, wait = response.status_code, retry_after(response.headers)
        remedy = "; set a valid API key, or write a login into its address" if status in NO_KEY else ""
        if status == 429 or status >= 500:
            remedy = "; it is overloaded or broken: try again later, or check its log"
        message = f"{self.server} answered {status}: {reason!r}{remedy}"
        return RefusedError(message, status=status, reason=reason, wait=wait)

    def _body(self, response: httpx.Response, limit: int, ends: float) -> bytes:
        body = bytearray()
        for piece in response.iter_bytes():
            body += piece
            if len(body) > limit:
                if not response.is_success:
                    break
                raise ModelError(
                    f"{self.server} sent more than {limit:,} bytes, more than an answer to this request has; "
                    "is another program there?"
                )
            if monotonic() > ends:  # httpx only limits the time between two pieces
                raise httpx.ReadTimeout(f"no whole answer in {self._timeout:g} seconds", request=response.request)
        return bytes(body)


def _sent(body: Mapping[str, Any]) -> bytes:
    # lone surrogates, which some PDFs contain, cannot be encoded as UTF-8
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


@contextmanager
def translated(server: str, remedy: str) -> Iterator[None]:
    """Translate every exception of httpx in the block to a `ModelError` that names the ``server``.

    ``remedy``: what to do if it cannot be reached.
    """
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, httpx.UnsupportedProtocol) as error:
        raise ModelConnectionError(f"{server} cannot be reached ({error}); {remedy}") from error
    except httpx.TimeoutException as error:
        raise ModelConnectionError(
            f"{server} gave no answer in time ({type(error).__name__}); it may be busy or loading a model: "
            "try again, or allow it a longer timeout"
        ) from error
    except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, httpx.CookieConflict) as error:
        raise ModelError(f"{server} broke off its answer ({error}); check its log") from error


def worth_retrying(error: Exception, longest_wait: float, timeouts: bool = True) -> bool | float:
    """Whether to retry the request, or the seconds to wait that the server asks for.

    Time-outs, broken connections, 429 and 5xx are retried. A refused connection is not: no server is running.
    """
    if isinstance(error, RefusedError):
        return error.passing if error.wait is None or not error.passing else min(error.wait, longest_wait)
    if isinstance(error, httpx.TimeoutException):
        return timeouts
    return isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError) and not isinstance(
        error, httpx.ConnectError
    )


def reason_of(answer: bytes) -> str:
    """The reason of an HTTP error on one line: the server's error text, or the start of its answer."""
    text = answer.decode(errors="replace")
    try:
        body = json.loads(text)
        while isinstance(body, dict):
            body = next((body[key] for key in ("error", "message", "detail") if key in body), json.dumps(body))
        return one_line(body if isinstance(body, str) else json.dumps(body))
    except (RecursionError, ValueError):
        return one_line(text)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds of the header ``Retry-After``, which holds a number or a date (RFC 9110, section 10.2.3)."""
    value = headers.get("Retry-After", "").strip()
    if value.isdigit():
        return float(value)
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())


@cache
def _certificates() -> SSLContext:
    """The root certificates. Loading them takes 25 ms, so all clients share them."""
    return httpx.create_ssl_context()


def _on_this_machine(url: str) -> bool:
    host = httpx.URL(url).host
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
