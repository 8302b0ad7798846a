"""Exchanges over HTTP end in bounded time and memory, whatever the server sends."""

from __future__ import annotations

import gzip
import itertools
import socket
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager

import httpx
import pytest

from ragistry.errors import ConfigError, ModelConnectionError
from ragistry.models.http import JsonClient, Patience
from ragistry.testing.ports import refused_port
from ragistry.transport import adopt_client, limited_client, read_body, read_lines
from tests.messages import refused

SECONDS = 0.4
OK = b"HTTP/1.1 200 OK\r\n"


@contextmanager
def sending(pieces: Callable[[], Iterable[bytes]], pause: float = 0.0) -> Iterator[str]:
    """The address of a server that sends these pieces to every connection, with a pause between them."""
    end = threading.Event()

    def answer(connection: socket.socket) -> None:
        with connection:
            connection.recv(65_536)
            try:
                for piece in pieces():
                    connection.sendall(piece)
                    if end.wait(pause):
                        break
            except OSError:  # the client hung up
                return

    def accept() -> None:
        with listener:
            while True:
                connection, _ = listener.accept()
                if end.is_set():
                    connection.close()
                    return
                threads.append(threading.Thread(target=answer, args=(connection,)))
                threads[-1].start()

    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()
    threads = [threading.Thread(target=accept)]
    threads[0].start()
    try:
        yield f"http://127.0.0.1:{address[1]}"
    finally:
        end.set()
        socket.create_connection(address).close()
        for thread in threads:
            thread.join(30)


@contextmanager
def answered(
    pieces: Callable[[], Iterable[bytes]], pause: float = 0.0, timeout: float = 30
) -> Iterator[httpx.Response]:
    """The answer of such a server, of which a client with limits has read the head."""
    with (
        sending(pieces, pause) as url,
        limited_client(timeout=timeout, base_url=url) as client,
        client.stream("GET", "/") as response,
    ):
        yield response


def trickled(head: bytes) -> Callable[[], Iterator[bytes]]:
    """A head, byte by byte, and then bytes without an end."""
    return lambda: (bytes([byte]) for byte in itertools.chain(head, itertools.repeat(ord("x"))))


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"", id="status line"),
        pytest.param(OK + b"X-Long: ", id="header"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000, id="100 continue"),
        pytest.param(OK + b"Transfer-Encoding: chunked\r\n\r\n5;ext=", id="chunk header"),
        pytest.param(OK + b"Content-Length: 1000000\r\n\r\n", id="body"),
    ],
)
def test_trickled_answer_ends_at_the_deadline(head: bytes) -> None:
    with pytest.raises(httpx.ReadTimeout), answered(trickled(head), 0.02, SECONDS) as response:
        read_body(response, 1_000_000)


def test_redirects_share_one_deadline() -> None:
    redirect = b"HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    with (
        sending(lambda: [b"", redirect], 0.1) as url,
        limited_client(timeout=SECONDS, base_url=url, follow_redirects=True) as client,
        pytest.raises(httpx.TimeoutException),
    ):
        client.get("/")


def test_all_attempts_share_a_second_deadline() -> None:
    with (
        sending(trickled(b""), 0.02) as url,
        closing(JsonClient(url, Patience(SECONDS, attempts=100))) as client,
        refused(ModelConnectionError),
    ):
        client.get("/", dict)


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("kind", ["gzip", "deflate"])
def test_compressed_answer_is_read_up_to_the_limit(kind: str, times: int) -> None:
    body, large = b"a short answer", bytes(50_000_000)
    compress = gzip.compress if kind == "gzip" else zlib.compress
    for _ in range(times):
        body, large = compress(body), compress(large)
    names = ", ".join([kind] * times).encode()
    for sent, expected in ((body, b"a short answer"), (large, None)):
        head = OK + b"Content-Encoding: %b\r\nContent-Length: %d\r\n\r\n" % (names, len(sent))
        with answered(lambda head=head, sent=sent: [head + sent]) as response:
            found = read_body(response, 1_000_000)
        assert found == expected if expected else 1_000_000 < len(found) < 1_200_000


def test_endless_line_is_an_error() -> None:
    head = OK + b"Connection: close\r\n\r\n"
    with answered(lambda: itertools.chain([head + b"one\r\ntwo\n"], itertools.repeat(b"x" * 10_000))) as response:
        lines = read_lines(response, 100_000)
        assert [next(lines), next(lines)] == ["one", "two"]
        with pytest.raises(httpx.DecodingError):
            next(lines)


def test_unknown_encoding_is_an_error() -> None:
    unknown = OK + b"Content-Encoding: br\r\nContent-Length: 1\r\n\r\nx"
    with answered(lambda: [unknown]) as response, pytest.raises(httpx.DecodingError):
        read_body(response, 100)


def test_adopted_client_has_the_same_limits() -> None:
    with sending(trickled(OK + b"X-Long: "), 0.02) as url, httpx.Client(base_url=url, timeout=None) as client:
        adopt_client(client, url, SECONDS)
        with pytest.raises(httpx.ReadTimeout):
            client.get("/")
    compressed = OK + b"Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx"
    with sending(lambda: [compressed]) as url, httpx.Client(base_url=url, timeout=None) as client:
        adopt_client(client, url, 30)
        with pytest.raises(httpx.DecodingError):
            client.get("/")


@pytest.mark.parametrize("variable", ["ALL_PROXY", "HTTP_PROXY"])
@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:{}", "http://127.0.0.1:{}"])
def test_proxy_is_used_for_other_machines_only(variable: str, proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, proxy.format(refused_port()))
    with limited_client(timeout=30, base_url="http://example.org") as client, pytest.raises(httpx.ConnectError):
        client.get("/")
    answer = OK + b"Content-Length: 2\r\nConnection: close\r\n\r\nhi"
    for host in ("127.0.0.1", "localhost"):
        with (
            sending(lambda: [answer]) as url,
            limited_client(timeout=30, base_url=url.replace("127.0.0.1", host)) as client,
        ):
            assert client.get("/").text == "hi"


@pytest.mark.parametrize("proxy", ["foo://proxy", "socks4://proxy:1080"])
def test_proxy_of_an_unknown_kind_is_one_error(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    with refused(ConfigError, proxy):
        limited_client(timeout=1, base_url="http://example.org")
