"""JSON over HTTP to a model's server: one connection pool, a time-out on every call, retries, one kind of error."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Generator, Mapping
from functools import cache, partial
from ssl import SSLContext
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
import stamina

from ragistry.errors import ConfigError
from ragistry.ollama.failures import translated, understood, worth_retrying
from ragistry.utils.urls import split_login

Read = TypeVar("Read")

CONNECT_TIMEOUT = 5.0
"""Seconds to wait for a connection; a server that is there accepts at once."""


class JsonClient:
    """A server that takes JSON and answers JSON. Threads may share it.

    ``base_url``: a name and a password in it are sent, but told to nobody else. ``server`` names it in messages,
    ``remedy`` says what to do where it cannot be reached. ``timeout``: seconds to wait for each piece of an answer.
    ``attempts``: how often a request is sent at most, the first time included; waits between them begin at ``backoff``
    seconds, double, have up to ``backoff`` of jitter, and never pass ``longest_wait``, whatever the server asks for in
    Retry-After.
    """

    def __init__(
        self,
        base_url: str,
        *,
        server: str,
        remedy: str,
        timeout: float = 60.0,
        attempts: int = 4,
        backoff: float = 0.5,
        longest_wait: float = 30.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.base_url, login = split_login(base_url)
        self.server = f"{server} at {self.base_url}"
        self._remedy = remedy
        self._retry = stamina.RetryingCaller(
            attempts=attempts, timeout=None, wait_initial=backoff, wait_jitter=backoff, wait_max=longest_wait
        ).on(partial(worth_retrying, longest_wait=longest_wait))
        try:
            self._http = httpx.Client(
                base_url=self.base_url,
                auth=login,
                timeout=httpx.Timeout(timeout, connect=min(timeout, CONNECT_TIMEOUT)),
                headers={"Content-Type": "application/json", **(headers or {})},
                follow_redirects=True,
                verify=_certificates(),
                trust_env=not _on_this_machine(self.base_url),  # a proxy cannot reach this machine's own loopback
            )
        except httpx.InvalidURL as error:
            raise ConfigError(
                f"the address of {server} is malformed: {self.base_url!r} ({error}); write http://HOST:PORT"
            ) from error

    def get(self, path: str, read: Callable[[Any], Read]) -> Read:
        """What ``read`` makes of the answer to GET. Raises `ModelError`, also for an answer that it cannot read."""
        return self._answer("GET", path, None, read)

    def post(self, path: str, body: Mapping[str, Any], read: Callable[[Any], Read]) -> Read:
        """What ``read`` makes of the answer to POST, as in `get`."""
        return self._answer("POST", path, body, read)

    def stream(self, path: str, body: Mapping[str, Any], read: Callable[[Any], Read]) -> Generator[Read]:
        """What ``read`` makes of each line of an answer in JSON lines. Once one has come nothing is tried again."""
        with translated(self.server, self._remedy):
            response = self._retry(self._open, "POST", path, body)
            try:
                for line in response.iter_lines():
                    if line.strip():
                        yield self._understood(line, read)
            finally:
                response.close()

    def _answer(self, method: str, path: str, body: Mapping[str, Any] | None, read: Callable[[Any], Read]) -> Read:
        with translated(self.server, self._remedy):
            return self._understood(self._retry(self._text, method, path, body), read)

    def _understood(self, text: str, read: Callable[[Any], Read]) -> Read:
        with understood(self.server, text):
            return read(json.loads(text))

    def _text(self, method: str, path: str, body: Mapping[str, Any] | None) -> str:
        response = self._open(method, path, body)
        try:
            response.read()
        finally:
            response.close()
        return response.text

    def _open(self, method: str, path: str, body: Mapping[str, Any] | None) -> httpx.Response:
        """Send, and return once the server has begun to answer well."""
        # A lone surrogate, as some PDFs give, has no bytes in UTF-8.
        content = None if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        response = self._http.send(self._http.build_request(method, path, content=content), stream=True)
        if response.is_success:
            return response
        try:
            response.read()
        finally:
            response.close()
        return response.raise_for_status()

    def close(self) -> None:
        """Close the connections; closing twice is harmless."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


@cache
def _certificates() -> SSLContext:
    """Loading them takes 25 ms, so all clients share them."""
    return httpx.create_ssl_context()


def _on_this_machine(url: str) -> bool:
    host = httpx.URL(url).host
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
