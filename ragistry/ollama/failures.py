"""What can go wrong with a model's server, in Ragistry's words, and which of it is worth another try."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from ragistry.errors import EmbeddingGenerationError, ModelConnectionError, ModelError

# Ollama, vLLM, llama.cpp and TEI in turn; some of them say it with status 500.
_TOO_LONG = re.compile(
    r"context (length|size)|maximum context|input is too large|too long|must have less than|batch size", re.IGNORECASE
)
_EXCERPT = 200
NO_KEY = (401, 403)
"""Answers to who sends no API key, or a wrong one."""


class RefusedError(ModelError):
    """The server answered with an HTTP error: its status, and the reason it gave."""

    def __init__(self, server: str, status: int, reason: str) -> None:
        super().__init__(f"{server} answered {status}: {reason!r}{_remedy(status)}")
        self.status = status
        self.reason = reason


class TooLongError(EmbeddingGenerationError):
    """The server takes this input in smaller parts, or shorter, or not at all."""


@contextmanager
def translated(server: str, remedy: str) -> Iterator[None]:
    """Let every exception of httpx leave the block as a `ModelError` that names the ``server``.

    ``remedy`` is what to do where it cannot be reached.
    """
    try:
        yield
    except httpx.HTTPStatusError as error:
        status, reason = error.response.status_code, reason_of(error.response)
        if _too_long(status, reason):
            raise TooLongError(f"{server} answered {status}: {reason!r}") from error
        raise RefusedError(server, status, reason) from error
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, httpx.UnsupportedProtocol) as error:
        raise ModelConnectionError(f"{server} cannot be reached ({error}); {remedy}") from error
    except httpx.TimeoutException as error:
        raise ModelConnectionError(
            f"{server} gave no answer in time ({type(error).__name__}); it may be busy or loading a model: "
            "try again, or allow it a longer timeout"
        ) from error
    except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, httpx.CookieConflict) as error:
        raise ModelError(f"{server} broke off its answer ({error}); look into its log") from error


@contextmanager
def understood(server: str, answer: Any) -> Iterator[None]:
    """Let whatever a wrongly shaped ``answer`` raises in the block leave it as a `ModelError` that shows the answer."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelError(
            f"{server} answered {excerpt(str(answer))!r}, which is not in its protocol; is another program there?"
        ) from error


def reason_of(response: httpx.Response) -> str:
    """Why the server refused: the text in the shape of error that it speaks, or the beginning of what it sent."""
    try:
        body = response.json()
    except ValueError:
        return excerpt(response.text)
    while isinstance(body, dict):
        body = next((body[key] for key in ("error", "message", "detail") if key in body), json.dumps(body))
    return excerpt(body if isinstance(body, str) else json.dumps(body))


def excerpt(text: str) -> str:
    """The beginning of ``text``, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= _EXCERPT else f"{line[:_EXCERPT]}…"


def _remedy(status: int) -> str:
    if status in NO_KEY:
        return "; give it an API key that it takes, or write a login into its address"
    return "; it is overloaded or broken: try again later, or look into its log" if _passing(status) else ""


def _too_long(status: int, reason: str) -> bool:
    return status in (413, 422) or (status in (400, 500) and _TOO_LONG.search(reason) is not None)


def _passing(status: int) -> bool:
    return status == 429 or status >= 500


def worth_retrying(error: Exception, longest_wait: float) -> bool | float:
    """Whether to send the request again, or after how many seconds, where the server says so.

    Worth it are time-outs, connections that broke off, 429 and 5xx. A refused connection is not: nobody listens there.
    """
    if isinstance(error, httpx.HTTPStatusError):
        status = error.response.status_code
        if not _passing(status) or _too_long(status, reason_of(error.response)):
            return False
        wait = retry_after(error.response)
        return True if wait is None else min(wait, longest_wait)
    return isinstance(
        error, httpx.TimeoutException | httpx.NetworkError | httpx.RemoteProtocolError
    ) and not isinstance(error, httpx.ConnectError)


def retry_after(response: httpx.Response) -> float | None:
    """Seconds of the header ``Retry-After``, which holds a number or a date (RFC 9110, section 10.2.3)."""
    value = response.headers.get("Retry-After", "").strip()
    if value.isdigit():
        return float(value)
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())
