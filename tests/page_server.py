"""A web server on this machine for the tests of pages: what stands at each path, and what was asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclass
class Site:
    """``pages``: by path the status, the headers and the body of the answer."""

    url: str = ""
    pages: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def put(self, path: str, body: str | bytes, kind: str = "text/html", status: int = 200, **headers: str) -> str:
        """Let the body stand at the path, and return its URL."""
        data = body.encode() if isinstance(body, str) else body
        self.pages[path] = (status, {"Content-Type": kind} | headers, data)
        return self.url + path


@contextmanager
def site() -> Iterator[Site]:
    """A running server."""
    served = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked.append(self.path)
            served.hosts.add(self.headers["Host"])
            status, headers, body = served.pages.get(self.path, (404, {}, b""))
            self.send_response(status)
            for name, value in ({"Content-Length": str(len(body))} | headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()
