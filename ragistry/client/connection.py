"""JSON over HTTP to a Ragistry server: time-outs, retries of what may be sent twice, and the library's own errors."""

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
from ragistry.transport import limited_client, limits, read_body
from ragistry.utils.wording import one_line

ATTEMPTS = 4
SLOWEST_UPLOAD = 100_000
"""Bytes a second below which an upload is given up."""
LONGEST_WAIT = 10.0
"""Seconds between two attempts at most, whatever the server asks for."""
ANSWER_LIMIT = 500_000_000
"""Maximum size of an answer in bytes; a whole collection as JSON stays below it."""

Files = Sequence[tuple[str, tuple[str, IO[bytes]]]]


class _Busy(errors.ServerBusyError):
    """``wait``: seconds of Retry-After."""

    wait: float | None = None


class Connection:
    """A server by its address. Threads may share it. ``timeout``: seconds for one exchange; an upload may take longer.

    Raises `ConfigError` for what is not an address of a server, or a token that no header can hold.
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
        """The answer to GET. Raises what the server's library raised, and `ServerError`."""
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
        """The answer to a request. ``again``: it may be sent twice, so that it is repeated where a connection broke.

        A server that is too busy has done nothing, so that whatever has no files is repeated then.
        """
        retry = stamina.RetryingCaller(
            attempts=ATTEMPTS if files is None else 1, timeout=None, wait_initial=0.2, wait_max=LONGEST_WAIT
        ).on(partial(_worth_retrying, again=again))
        with self._translated():
            return retry(self._send, method, path, json=body, params=params, data=form, files=files)

    def close(self) -> None:
        """Close the connections; closing twice is harmless."""
        self._http.close()

    def _send(self, method: str, path: str, **options: Any) -> Any:
        given = {key: value for key, value in options.items() if value}
        size = sum(stream.seek(0, SEEK_END) for _, (_, stream) in options.get("files") or ())
        for _, (_, stream) in options.get("files") or ():
            stream.seek(0)
        ends = monotonic() + self._timeout + size / SLOWEST_UPLOAD
        with self._http.stream(method, path, **given, extensions=limits(ends, pause=self._timeout)) as response:
            body = read_body(response, ANSWER_LIMIT)
        try:
            answer = json.loads(body)
        except (RecursionError, ValueError) as error:
            raise self._strange(response, body) from error
        if response.is_success and isinstance(answer, dict):
            return answer
        if response.is_success or not isinstance(answer, dict) or not isinstance(detail := answer.get("error"), dict):
            raise self._strange(response, body)
        raise _raised(str(detail.get("type")), str(detail.get("message")), response)

    def _strange(self, response: httpx.Response, body: bytes) -> errors.ServerError:
        said = one_line(body[:1000].decode(errors="replace"))
        return errors.ServerError(
            f"{self.server} answered {response.status_code}: {said!r}, which is not in its protocol; "
            "is another program there?"
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
                f"{self.server} gave no answer in time ({type(error).__name__}); try again, or allow a longer timeout"
            ) from error
        except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL) as error:
            raise errors.ServerConnectionError(f"{self.server} broke off its answer ({error}); try again") from error


def _raised(kind: str, message: str, response: httpx.Response) -> errors.RagistryError:
    if kind == "ServerBusyError":
        busy = _Busy(message)
        busy.wait = retry_after(response.headers)
        return busy
    return error_of(kind, message)


def error_of(kind: str, message: str) -> errors.RagistryError:
    """The error of `ragistry.errors` with that name; `ServerError` where there is none."""
    cls = getattr(errors, kind, None)
    known = isinstance(cls, type) and issubclass(cls, errors.RagistryError)
    error: errors.RagistryError = cls(message) if known and cls is not None else errors.ServerError(message)
    return error


def _worth_retrying(error: Exception, *, again: bool) -> bool | float:
    if isinstance(error, _Busy):
        return True if error.wait is None else min(error.wait, LONGEST_WAIT)
    broken = isinstance(error, httpx.TimeoutException | httpx.NetworkError | httpx.RemoteProtocolError)
    return again and broken and not isinstance(error, httpx.ConnectError)
