"""JSON over HTTP to a model server: one connection pool, limits on every answer, retries, one kind of error."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from threading import Lock, Thread
from time import monotonic
from typing import Any, TypeVar

import httpx
import stamina

from ragistry.errors import ConfigError, ModelConnectionError, ModelError
from ragistry.models.texts import ALWAYS_FITS, BYTES_A_VECTOR, TooLongError
from ragistry.transport import limited_client, limits, read_body, read_lines
from ragistry.utils.urls import public_url, split_login
from ragistry.utils.wording import one_line

Read = TypeVar("Read")
Answer = TypeVar("Answer")
Path = str | tuple[str, ...]
"""A path of a server, or the places where it may be."""

LIMIT = 4_000_000
"""Maximum size in bytes of an answer without embeddings. Reading stops at this limit."""
ERROR_LIMIT = 100_000
STREAM_LIMIT = 20_000_000
"""Maximum size in bytes of a streamed answer; its form makes it many times the size of its text."""
TEXTS_A_TIMEOUT = 8
"""Number of texts that one time-out allows for; a request of more texts gets a proportionally longer one."""
PAUSE = 60.0
"""Maximum seconds between two pieces of a streamed answer."""
LOAD_SECONDS = 300.0
"""Maximum seconds for the first request of a model, which may have to be loaded."""
QUERY_SECONDS, ANSWER_SECONDS, RERANK_SECONDS = 20.0, 120.0, 30.0
"""Maximum seconds for a later request while a person waits: of up to 8 texts, of an answer, of a reranking."""
BACKOFF = 0.5
"""Seconds before the second attempt; waits double and have as much jitter."""
LONGEST_WAIT = 30.0
"""Maximum seconds between two attempts, even if Retry-After is longer."""
LOADING_PAUSE = 1.0
"""Seconds between two requests to a server that refuses them while it loads its model."""
SLOW = 5.0
"""Seconds after which a first request is logged."""
NO_KEY = (401, 403)
"""HTTP status of a request with a missing or wrong API key."""

_log = logging.getLogger(__name__)

FILTERED = re.compile(
    r"content[ _-]?(filter|policy|management|exists risk)|data_?inspection|responsible_?ai|moderation|flagged", re.I
)
"""What an error says if a content filter refuses a prompt: OpenAI, Azure, OpenRouter, DeepSeek, DashScope."""
# Servers that use status 500 for it: llama.cpp and others
_TOO_LONG = re.compile(r"context|too (large|long|many)|token|batch size|length|exceed", re.IGNORECASE)
_ENDPOINT = re.compile(r"/(?:embed|embeddings|rerank|info|tokenize)$")
NOT_IMPLEMENTED = 501
"""HTTP status of servers that accept only POST."""
NO_PATH = (404, 405, NOT_IMPLEMENTED)
"""HTTP status of a path that the server does not have."""


class RefusedError(ModelError):
    """The server answered with an HTTP error; ``wait``: seconds of its Retry-After.

    ``is_filtered``: a content filter refused the prompt.
    """

    def __init__(
        self, message: str, *, status: int = 0, reason: str = "", wait: float | None = None, is_filtered: bool = False
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.wait = wait
        self.is_filtered = is_filtered

    @property
    def refuses_form(self) -> bool:
        """Whether the server does not support JSON Schema; llama-cpp-python answers with status 500."""
        return "response_format" in self.reason

    @property
    def too_long(self) -> bool:
        """Whether it refused the size of the input, according to its status or text."""
        return self.status in (413, 422) or (self.status in (400, 500) and _TOO_LONG.search(self.reason) is not None)

    def may_be_too_long(self, texts: Sequence[str]) -> bool:
        """Return whether a smaller part of these texts may be accepted.

        Servers word the reason differently, so any status 400 may mean it, except for a single text that fits every
        model.
        """
        return self.too_long or (self.status == 400 and (len(texts) > 1 or len(texts[0].encode()) > ALWAYS_FITS))

    @property
    def is_loading(self) -> bool:
        """Whether the server is loading the model, and refuses requests until then (llama.cpp)."""
        return self.status == 503 and "loading" in self.reason.lower()

    @property
    def passing(self) -> bool:
        """Whether the same request may succeed later."""
        return not (self.too_long or self.refuses_form) and (self.status == 429 or self.status >= 500)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long and how often a client asks a server.

    Args:
        timeout: Seconds for one attempt, from connecting to the last byte. All attempts together, with the waits
            between them, take at most twice as long.
        load_timeout: Seconds for the first request of each model, which is not sent again after a time-out, because a
            server may begin to load the model again; None: as for any other.
        attempts: Maximum number of requests, including the first.
        retry_timeouts: Whether to retry after a time-out.
    """

    timeout: float = 60.0
    load_timeout: float | None = None
    attempts: int = 4
    retry_timeouts: bool = True


class JsonClient:
    """A client of a server that accepts and returns JSON. Threads may share it.

    A path of a request may be a list of the places where the server may have it: the first one that exists is used.

    Args:
        base_url: Address of the server, or of an endpoint of Text Embeddings Inference. A user name and password in it
            are sent, and never shown in messages. A redirect is followed to the same host and port only, also from http
            to https.
        patience: How long and how often to ask.
        server: Name of the server in messages.
        remedy: What to do if the server cannot be reached.
        api_key: Sent as a bearer token, and removed from messages.

    Raises:
        ConfigError: ``base_url`` or a proxy of the environment cannot be used.
    """

    def __init__(
        self,
        base_url: str,
        patience: Patience = Patience(),
        *,
        server: str = "The model server",
        remedy: str = "start it, or correct its address",
        api_key: str | None = None,
    ) -> None:
        address, login = split_login(base_url)
        # ``…/rerank`` may be an endpoint, or where a proxy has the server
        self.base_url = _ENDPOINT.sub("", address)
        self._starts = [address.removeprefix(self.base_url), ""] if address != self.base_url else [""]
        self._places: dict[Path, str] = {}
        self.server = f"{server} at {self.base_url}"
        self._remedy = remedy
        self._key = api_key
        self._patience = patience
        self._loaded: set[str] = set()
        self._loading = Lock()
        self._pending: set[Future[Any]] = set()
        self._is_closed = False
        key = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        try:
            self._http = limited_client(
                timeout=patience.timeout,
                base_url=self.base_url,
                auth=login,
                headers={"Content-Type": "application/json", **key},
                follow_redirects=True,
                event_hooks={"response": [self._check_redirect]},
            )
        except httpx.InvalidURL as error:
            raise ConfigError(
                f"the address of {server} is malformed: {self.base_url!r} ({error}); write http://HOST:PORT"
            ) from error

    def get(self, path: Path, read: Callable[[Any], Read]) -> Read:
        """Send GET and return the answer parsed by ``read``. Raises `ModelError`, also for an unreadable answer."""
        return self.post(path, None, read)

    def post(
        self,
        path: Path,
        body: Mapping[str, Any] | None,
        read: Callable[[Any], Read],
        *,
        limit: int = LIMIT,
        texts: Sequence[str] = (),
        loads: str | None = None,
    ) -> Read:
        """Send POST and return the answer parsed by ``read``.

        Args:
            path: Appended to the address.
            body: Sent as JSON; None sends GET.
            read: Parses the answer.
            limit: Maximum size of the answer in bytes.
            texts: Texts to embed, whose number extends the time and size of the answer.
            loads: Name of the model that the server may load for this request.

        Raises:
            TooLongError: The server refuses these texts; fewer or shorter ones may be accepted.
            ModelError: The server cannot be reached, refuses the request, or sends something else.
        """
        patience = self._patience

        def ask(place: str) -> bytes:
            exchange = partial(self._exchange, place, body, limit + BYTES_A_VECTOR * len(texts))
            with translated(self.server, self._remedy):
                answer = self._load(loads, partial(exchange, first=True))
            if answer is not None:
                return answer
            # a time-out that ends later requests after several attempts cannot be set
            is_fixed = patience.retry_timeouts and patience.load_timeout not in (None, patience.timeout)
            with translated(self.server, self._remedy, *(("try again",) if is_fixed else ())):
                return exchange(patience.timeout * max(1.0, len(texts) / TEXTS_A_TIMEOUT))

        try:
            return self.read(self._where_it_is(path, ask), read)
        except RefusedError as error:
            if texts and error.may_be_too_long(texts):
                raise TooLongError(str(error)) from error
            raise

    def stream(self, path: Path, body: Mapping[str, Any], *, loads: str | None = None) -> Iterator[str]:
        """Send POST and yield the non-empty lines as they arrive, without retries; ``loads`` as in `post`.

        Raises `ModelError`.
        """

        def begin(place: str, seconds: float, pause: float | None = None) -> tuple[str, Iterator[str]]:
            lines = self._lines(place, body, limits(monotonic() + seconds, pause=pause))
            return next(lines, ""), lines  # a refusal comes before the first line

        def ask(place: str) -> tuple[str, Iterator[str]]:
            return self._load(loads, partial(begin, place)) or begin(place, self._patience.timeout, PAUSE)

        first, rest = self._where_it_is(path, ask)
        if first:
            yield first
        yield from rest

    def _lines(self, path: str, body: Mapping[str, Any], extensions: dict[str, Any]) -> Iterator[str]:
        size = 0
        with (
            translated(self.server, self._remedy),
            self._http.stream("POST", path, content=_sent(body), extensions=extensions) as response,
        ):
            if not response.is_success:
                raise self._refusal(response, read_body(response, ERROR_LIMIT))
            for line in read_lines(response, LIMIT):
                size += len(line)
                if size > STREAM_LIMIT:
                    raise self._too_large(STREAM_LIMIT)
                if line.strip():
                    yield line

    def close(self) -> None:
        """Close the connections, and end the wait for a model that is loading; closing twice is harmless."""
        self._is_closed = True
        for future in tuple(self._pending):
            with suppress(InvalidStateError):
                future.set_exception(ModelConnectionError(f"{self.server}: the client was closed; open it again"))
        self._close_when_idle()

    def _close_when_idle(self) -> None:
        """Close the connections, or let the last thread with a request close them."""
        if not self._pending:
            self._http.close()

    def _load(self, model: str | None, ask: Callable[[float], Answer]) -> Answer | None:
        """Send the first request of a model; None if it is not the first.

        It is sent in a thread that does not keep the process running and outlives a caller that does not wait, because
        servers stop loading a model if the client leaves. Other requests of the model wait for it.

        Args:
            model: Name of the model; None if the request does not load one.
            ask: Sends the request, with its maximum seconds.
        """
        seconds = self._patience.load_timeout
        if model is None or seconds is None or model in self._loaded:
            return None
        with self._loading:
            if model in self._loaded:
                return None
            future: Future[Answer] = Future()
            if self._is_closed:
                raise ModelConnectionError(f"{self.server}: the client was closed; open it again")

            def run() -> None:
                with suppress(InvalidStateError):  # the client was closed meanwhile
                    try:
                        future.set_result(ask(seconds))
                    except BaseException as error:  # noqa: BLE001, raised when the future is read
                        future.set_exception(error)
                self._pending.discard(future)
                if self._is_closed:
                    self._close_when_idle()

            self._pending.add(future)
            Thread(target=copy_context().run, args=(run,), name="load", daemon=True).start()
            if not wait([future], SLOW).done:
                _log.warning(
                    "%s has not answered for %g seconds; it may be loading the model %r, so the request waits up to %g "
                    "seconds (`timeout`)", self.server, SLOW, model, seconds,
                )  # fmt: skip
            answer = future.result()
            self._loaded.add(model)
            return answer

    def _where_it_is(self, path: Path, ask: Callable[[str], Answer]) -> Answer:
        """Ask at each place that a path may have; from then on, only at the one that exists."""
        if path in self._places:
            return ask(self._places[path])
        refusals: list[RefusedError] = []
        for place in [start + one for one in ((path,) if isinstance(path, str) else path) for start in self._starts]:
            try:
                answer = ask(place)
            except RefusedError as error:
                if error.status not in NO_PATH:
                    raise
                refusals.append(error)
            else:
                self._places[path] = place
                return answer
        raise next((refusal for refusal in refusals if "model" in refusal.reason), refusals[0])

    def _exchange(
        self, path: str, body: Mapping[str, Any] | None, limit: int, timeout: float, *, first: bool = False
    ) -> bytes:
        """Send a request, and send it again after errors that pass. ``first``: it may load the model."""
        patience = self._patience
        method, content = ("GET", None) if body is None else ("POST", _sent(body))
        ends = monotonic() + (timeout if first else 2 * timeout)
        failures = 0

        def again(error: Exception) -> bool | float:
            nonlocal failures
            if first and isinstance(error, RefusedError) and error.is_loading:
                return LOADING_PAUSE
            failures += 1
            return failures < patience.attempts and worth_retrying(error, patience.retry_timeouts and not first)

        def send() -> bytes:
            extensions = limits(min(ends, monotonic() + timeout))
            with self._http.stream(method, path, content=content, extensions=extensions) as response:
                answer = read_body(response, limit if response.is_success else ERROR_LIMIT)
            if not response.is_success:
                raise self._refusal(response, answer)
            if len(answer) > limit:
                raise self._too_large(limit)
            return answer

        retry = stamina.RetryingCaller(
            attempts=None,
            timeout=max(0.0, ends - monotonic()),
            wait_initial=BACKOFF,
            wait_jitter=BACKOFF,
            wait_max=LONGEST_WAIT,
        ).on(again)
        return retry(send)

    def read(self, answer: bytes | str, read: Callable[[Any], Read]) -> Read:
        """Parse JSON from the server with ``read``. Raises `ModelError` if that fails."""
        try:
            return read(json.loads(answer))
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            start = answer[:1000]
            text = one_line(start if isinstance(start, str) else start.decode(errors="replace"))
            raise ModelError(
                f"{self.server} answered {text!r}, which is not in its protocol; does another program use this address?"
            ) from error

    def _check_redirect(self, response: httpx.Response) -> None:
        """Raise `ModelError` for a redirect to another server, which would receive the texts of the request."""
        if not response.has_redirect_location:
            return
        url = response.url
        target = url.join(response.headers["Location"])
        if _origin(target) not in (_origin(url), ("https", url.host, url.port or 443)):
            raise ModelError(
                f"{self.server} redirects to another server, {public_url(str(target))!r}; the request was not sent "
                "there; if you trust that server, use its address instead"
            )

    def _too_large(self, limit: int) -> ModelError:
        return ModelError(
            f"{self.server} sent more than {limit:,} bytes, more than any answer to this request; "
            "does another program use this address?"
        )

    def _refusal(self, response: httpx.Response, answer: bytes) -> RefusedError:
        reason = reason_of(answer)
        if self._key:
            reason = reason.replace(self._key, "…")
        status, wait = response.status_code, retry_after(response.headers)
        is_filtered = status in (400, 403, 451) and FILTERED.search(answer.decode(errors="replace")) is not None
        remedy = "; set a valid API key, or add a login to its address" if status in NO_KEY and not is_filtered else ""
        if status == 429 or status >= 500:
            remedy = "; it is overloaded or broken: try again later, or check its log"
        message = f"{self.server} answered {status}: {reason!r}{remedy}"
        return RefusedError(message, status=status, reason=reason, wait=wait, is_filtered=is_filtered)


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port or {"http": 80, "https": 443}.get(url.scheme)


def _sent(body: Mapping[str, Any]) -> bytes:
    # lone surrogates, which some PDFs contain, cannot be encoded as UTF-8
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


@contextmanager
def translated(server: str, remedy: str, late: str = "try again, or set a longer timeout") -> Iterator[None]:
    """Translate every exception of httpx in the block to a `ModelError` that names the ``server``.

    ``remedy``: what to do if it cannot be reached; ``late``: if it does not answer in time.
    """
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, httpx.UnsupportedProtocol) as error:
        raise ModelConnectionError(f"{server} cannot be reached ({error}); {remedy}") from error
    except httpx.TimeoutException as error:
        raise ModelConnectionError(
            f"{server} did not answer in time ({type(error).__name__}); it may be busy or loading a model: {late}"
        ) from error
    except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, httpx.CookieConflict) as error:
        raise ModelError(f"{server} aborted its answer ({error}); check its log") from error


def worth_retrying(error: Exception, timeouts: bool) -> bool | float:
    """Return whether to retry the request, or the seconds that the server asks to wait.

    Time-outs, broken connections, 429 and 5xx are retried. A refused connection is not: no server is running.
    """
    if isinstance(error, RefusedError):
        return error.passing if error.wait is None or not error.passing else min(error.wait, LONGEST_WAIT)
    if isinstance(error, httpx.TimeoutException):
        return timeouts
    return isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError) and not isinstance(
        error, httpx.ConnectError
    )


def reason_of(answer: bytes) -> str:
    """Return the reason of an HTTP error on one line: the server's error text, or the start of its answer."""
    text = answer.decode(errors="replace")
    try:
        body = json.loads(text)
        while isinstance(body, dict):
            body = next((body[key] for key in ("error", "message", "detail") if key in body), json.dumps(body))
        return one_line(body if isinstance(body, str) else json.dumps(body))
    except (RecursionError, ValueError):
        return one_line(text)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Read the seconds of ``Retry-After``, which has a number or a date (RFC 9110, section 10.2.3)."""
    value = headers.get("Retry-After", "").strip()
    if value.isdigit():
        return float(value)
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
