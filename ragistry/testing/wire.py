"""HTTP/1.1 on a free port of this machine: reads requests; sends JSON, streams of JSON lines, and broken answers."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, islice
from typing import Any


@dataclass(frozen=True, slots=True)
class Request:
    """A request. ``malformed``: its body is not JSON, and ``body`` is None."""

    method: str
    path: str
    body: Any
    headers: dict[str, str]
    malformed: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: ``body`` as JSON, or ``lines`` as a stream of JSON lines; ``events``: as server-sent events.

    ``indented``: the body is JSON on several lines.
    """

    status: int = 200
    body: Any = None
    lines: Iterable[Any] | None = None
    events: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    indented: bool = False


Respond = Callable[["Handler", Request], None]


class HTTPServer(ThreadingHTTPServer):
    """Passes every request to ``respond``, and tracks open connections to close them at the end."""

    daemon_threads = False

    def __init__(self, respond: Respond) -> None:
        self.respond = respond
        self.errors: list[BaseException] = []
        self.accepted = 0
        self._connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self._connections.add(connection)
        self.accepted += 1
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        """Wake every thread that waits for another request."""
        for connection in tuple(self._connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # the client was faster

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002, the names of the overridden
        """Keep errors of threads, except clients that hung up."""
        error = sys.exception()
        if error is not None and not isinstance(error, ConnectionError):
            self.errors.append(error)


class Handler(BaseHTTPRequestHandler):
    """Reads requests in sequence from a persistent connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: HTTPServer

    def handle_any(self) -> None:
        """Read and answer a request of any method."""
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body, malformed = None, False
        try:
            body = json.loads(text) if text else None
        except ValueError:
            malformed = True
        self.server.respond(self, Request(self.command, self.path, body, dict(self.headers), malformed))

    do_GET = do_POST = do_HEAD = handle_any  # noqa: N815, the names that http.server looks for

    def send(self, status: int, text: bytes, headers: dict[str, str], *, cut: bool = False) -> None:
        """Send a complete answer, or half of the announced length."""
        self._send_head(status, {**headers, "Content-Length": str(len(text))})
        if self.command != "HEAD":
            self.wfile.write(text[: len(text) // 2] if cut else text)

    def send_reply(self, reply: Reply, *, cut: bool = False) -> None:
        """Send JSON, or JSON lines as they are produced; ``cut``: only the beginning."""
        if reply.lines is None:
            headers = {"Content-Type": "application/json", **reply.headers}
            self.send(
                reply.status, json.dumps(reply.body, indent=2 if reply.indented else None).encode(), headers, cut=cut
            )
            return
        before, after = (b"data: ", b"\n\n") if reply.events else (b"", b"\n")
        lines: Iterable[bytes] = (before + json.dumps(line).encode() + after for line in reply.lines)
        if reply.events:
            lines = chain(lines, [b"data: [DONE]\n\n"])
        kind = "text/event-stream" if reply.events else "application/x-ndjson"
        self.send_pieces(islice(lines, 1) if cut else lines, kind)
        if not cut:
            self.wfile.write(b"0\r\n\r\n")

    def send_pieces(self, pieces: Iterable[bytes], content_type: str = "application/json") -> None:
        """Send an answer of unknown length, without its end."""
        self._send_head(200, {"Content-Type": content_type, "Transfer-Encoding": "chunked"})
        for piece in pieces:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))

    def _send_head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Suppress output on standard error."""
