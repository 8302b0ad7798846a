"""A real HTTP server on this machine, in a thread, that fails on request and records its requests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Any, Literal, Self

from ragistry.testing.wire import Handler, HTTPServer, Reply, Request

Failure = (
    Literal["hang", "load", "drop", "cut", "garbage", "deep", "endless", "drip"]
    | Literal["short", "nan", "zeros", "booleans"]
    | int
)
"""No answer at all; none before `LoopbackServer.loaded` is set; a closed connection; one closed in mid-answer; a page
of HTML; lists nested 2 million deep; a body without an end; one of a byte every `DRIP` seconds; embeddings that are one
too few, NaN, zeros or booleans; or the status of an HTTP error."""
DRIP = 0.05

GARBAGE = b"<html><body>It works!</body></html>"


@dataclass(frozen=True, slots=True)
class Planned:
    """A planned failure of a request to ``path``; None: to any path."""

    failure: Failure
    path: str | None
    headers: dict[str, str]


class LoopbackServer:
    """Listens on a free port of 127.0.0.1 during the ``with`` block. Subclasses define the answers.

    ``loaded`` releases the requests with the failure ``load``.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._planned: list[Planned] = []
        self._lock = Lock()
        self._closing = Event()
        self.loaded = Event()
        self._http = HTTPServer(self._respond)
        self._thread = Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def url(self) -> str:
        """Its address, without a slash at the end."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def connections(self) -> int:
        """Number of connections opened so far."""
        return self._http.accepted

    def fail_next(
        self, failure: Failure, times: int = 1, *, retry_after: str | float | None = None, path: str | None = None
    ) -> None:
        """Make the next requests to ``path``, or to any path, fail; ``retry_after`` is sent with an HTTP error."""
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        self._planned += [Planned(failure, path, headers)] * times

    def asked(self, path: str) -> list[Any]:
        """Return the bodies of the requests to ``path``, in order."""
        return [request.body for request in self.requests if request.path == path]

    def answer(self, request: Request, flaw: Failure | None) -> Reply:
        """Answer a request; ``flaw``: a failure of embeddings."""
        raise NotImplementedError

    def refusal(self, status: int) -> Any:
        """Return the body of an HTTP error, in the format of the simulated server."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop, close every connection, and raise errors of the server itself."""
        self._closing.set()
        self.loaded.set()
        self._http.shutdown()
        self._thread.join()
        self._http.close_connections()
        self._http.server_close()
        if self._http.errors:
            raise self._http.errors[0]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _respond(self, handler: Handler, request: Request) -> None:
        plan = self._note(request)
        failure = None if plan is None else plan.failure
        if failure == "load":
            self.loaded.wait()
        if failure == "hang":
            self._closing.wait()
        elif failure == "garbage":
            handler.send(200, GARBAGE, {"Content-Type": "text/html"})
        elif failure == "deep":
            handler.send(200, b"[" * 2_000_000, {"Content-Type": "application/json"})
        elif failure in ("endless", "drip"):
            handler.send_pieces(self._without_end(b" " if failure == "drip" else b" " * 1_000_000))
        elif plan is not None and isinstance(failure, int):
            handler.send_reply(Reply(failure, self.refusal(failure), headers=plan.headers))
        elif failure != "drop":
            handler.send_reply(self.answer(request, failure), cut=failure == "cut")
        if failure in ("hang", "drop", "cut", "endless", "drip"):
            handler.close_connection = True

    def _without_end(self, piece: bytes) -> Iterator[bytes]:
        """Yield a piece repeatedly until the server stops or the client disconnects; a single byte slowly."""
        while not self._closing.wait(DRIP if len(piece) == 1 else 0):
            yield piece

    def _note(self, request: Request) -> Planned | None:
        """Record the request, and return the failure planned for it."""
        with self._lock:
            self.requests.append(request)
            plan = next((plan for plan in self._planned if plan.path in (None, request.path)), None)
            if plan is not None:
                self._planned.remove(plan)
            return plan
