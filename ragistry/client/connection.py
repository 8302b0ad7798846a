"""JSON requests to a Ragistry server, with time limits, retries and the errors of `ragistry.errors`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from io import SEEK_END
from time import monotonic
from typing import IO, Any

import httpx
import stamina

from ragistry import errors
from ragistry.models.http import retry_after
from ragistry.transport import limited_client, limits, read_body, read_lines
from ragistry.utils.wording import one_line

ATTEMPTS = 4
SLOWEST_UPLOAD = 100_000
"""Minimum speed of an upload in bytes per second; slower ones are aborted."""
LONGEST_WAIT = 10.0
"""Maximum seconds between two attempts, also if the server requests more."""
LONGEST_ANSWER = 3_600.0
"""Maximum seconds for an answer that arrives in pieces."""
ANSWER_LIMIT = 500_000_000
"""Maximum size of a response in bytes, enough for a whole collection as JSON."""

Files = Sequence[tuple[str, tuple[str, IO[bytes]]]]


class _Busy(errors.ServerBusyError):
    """``wait``: seconds of the header Retry-After."""

    wait: float | None = None


class Connection:
    """A connection to a server, which threads can share.

    Args:
        url: Address of the server.
        token: Token of the server.
        timeout: Maximum seconds for a request; an upload may take longer.

    Raises:
        ConfigError: The address or the token is invalid.
    """

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 60.0) -> None:
        try:
            parsed = httpx.URL(url)
        except (httpx.InvalidURL, TypeError) as error:
            raise errors.ConfigError(f"{url!r:.200} is not an address ({error}); write http://HOST:PORT") from error
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise errors.ConfigError(f"{url!r:.200} is not the address of a server; write http://HOST:PORT")
        if token is not None and (not token.isascii() or not token.isprintable()):
            raise errors.ConfigError("the token must be ASCII characters on one line; copy the token again")
        self.server = f"the Ragistry server at {parsed.copy_with(userinfo=b'')}"
        self._timeout = timeout
        self._http = limited_client(
            timeout=timeout,
            base_url=parsed,
            headers={} if token is None else {"Authorization": f"Bearer {token}"},
        )

    def get(self, path: str, **params: str) -> Any:
        """Send GET, and return the response.

        Raises:
            RagistryError: The server could not answer; the class is the one that the server reports.
        """
        return self.call("GET", path, again=True, params=params)

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        again: bool = False,
        params: Mapping[str, str] | None = None,
        form: Mapping[str, Any] | None = None,
        files: Files | None = None,
    ) -> Any:
        """Send a request, and return the response.

        Requests without files are repeated if the server is busy, because it has not processed them.

        Args:
            method: HTTP method.
            path: Path of the route.
            body: JSON body.
            again: Repeat the request after a connection error. It must be safe to process twice.
            params: Query parameters.
            form: Fields of a form.
            files: Files of a form.

        Raises:
            RagistryError: The server could not answer; the class is the one that the server reports.
        """
        retry = stamina.RetryingCaller(
            attempts=ATTEMPTS if files is None else 1, timeout=None, wait_initial=0.2, wait_max=LONGEST_WAIT
        ).on(partial(_can_retry, again=again))
        with self._translated():
            return retry(self._send, method, path, json=body, params=params, data=form, files=files)

    def events(self, path: str, body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Send POST, and yield the server-sent events of the response, each with its name and its JSON.

        Raises:
            RagistryError: The server could not answer, or sent an event ``error``.
        """
        with (
            self._translated(),
            self._http.stream(
                "POST", path, json=body, extensions=limits(monotonic() + LONGEST_ANSWER, pause=self._timeout)
            ) as response,
        ):
            if not response.is_success:
                self._read(response)
            name = ""
            for line in read_lines(response, ANSWER_LIMIT):
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "data" and name == "error":
                    detail = json.loads(value)
                    raise error_of(detail["type"], detail["message"])
                elif field == "data":
                    yield name, json.loads(value)

    def close(self) -> None:
        """Close the connections. Closing twice is harmless."""
        self._http.close()

    def _send(self, method: str, path: str, **options: Any) -> Any:
        sent = {key: value for key, value in options.items() if value}
        size = sum(stream.seek(0, SEEK_END) for _, (_, stream) in options.get("files") or ())
        for _, (_, stream) in options.get("files") or ():
            stream.seek(0)
        ends = monotonic() + self._timeout + size / SLOWEST_UPLOAD
        with self._http.stream(method, path, **sent, extensions=limits(ends, pause=self._timeout)) as response:
            return self._read(response)

    def _read(self, response: httpx.Response) -> Any:
        body = read_body(response, ANSWER_LIMIT)
        try:
            answer = json.loads(body)
        except (RecursionError, ValueError) as error:
            raise self._unexpected(response, body) from error
        if response.is_success and isinstance(answer, dict):
            return answer
        if response.is_success or not isinstance(answer, dict) or not isinstance(detail := answer.get("error"), dict):
            raise self._unexpected(response, body)
        raise _raised(str(detail.get("type")), str(detail.get("message")), response)

    def _unexpected(self, response: httpx.Response, body: bytes) -> errors.ServerError:
        text = one_line(body[:1000].decode(errors="replace"))
        return errors.ServerError(
            f"{self.server} responded with {response.status_code}: {text!r}, which is not a Ragistry response; "
            "check whether another program uses this address"
        )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
            raise errors.ServerConnectionError(
                f"{self.server} cannot be reached ({error}); start it with `ragistry serve`, or correct the address"
            ) from error
        except httpx.TimeoutException as error:
            raise errors.ServerConnectionError(
                f"{self.server} did not respond in time ({type(error).__name__}); try again, or increase the timeout"
            ) from error
        except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL) as error:
            raise errors.ServerConnectionError(f"{self.server} closed the connection ({error}); try again") from error


def _raised(kind: str, message: str, response: httpx.Response) -> errors.RagistryError:
    if kind == "ServerBusyError":
        busy = _Busy(message)
        busy.wait = retry_after(response.headers)
        return busy
    return error_of(kind, message)


def error_of(kind: str, message: str) -> errors.RagistryError:
    """Create the error of `ragistry.errors` with this name.

    Args:
        kind: Name of the class; an unknown name creates a `ServerError`.
        message: Message of the error.
    """
    cls = getattr(errors, kind, None)
    known = isinstance(cls, type) and issubclass(cls, errors.RagistryError)
    error: errors.RagistryError = cls(message) if known and cls is not None else errors.ServerError(message)
    return error


def _can_retry(error: Exception, *, again: bool) -> bool | float:
    if isinstance(error, _Busy):
        return True if error.wait is None else min(error.wait, LONGEST_WAIT)
    broken = isinstance(error, httpx.TimeoutException | httpx.NetworkError | httpx.RemoteProtocolError)
    return again and broken and not isinstance(error, httpx.ConnectError)
