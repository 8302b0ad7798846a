"""ChromaDB over HTTP: servers that are absent, hang, restart, or are something else."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from uuid import uuid4

import chromadb
import pytest

from ragistry.errors import (
    ChromaDBConnectionError,
    CollectionNotFoundError,
    ConfigError,
    DatabaseNotFoundError,
    StoreError,
)
from ragistry.stores.chroma import ChromaStore
from ragistry.testing.chroma_server import ChromaServer, chroma_server, free_port
from ragistry.testing.stores.chunks import EAST, chunk
from ragistry.types import EmbedderFingerprint


@contextmanager
def answering(status: int, body: bytes, seen: list[str] | None = None) -> Iterator[int]:
    """A server that gives every request the same answer; its port. ``seen``: the tokens that it was sent."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if seen is not None:
                seen.append(self.headers.get("x-chroma-token", ""))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def opened(server: ChromaServer, collection: str = "", **options) -> ChromaStore:
    return ChromaStore(host=server.host, port=server.port, collection=collection or f"c{uuid4().hex}", **options)


@pytest.fixture
def pair(server):
    """Two clients of one collection."""
    name = f"c{uuid4().hex}"
    with closing(opened(server, name)) as one, closing(opened(server, name)) as other:
        yield one, other


def test_a_server_that_is_not_there_is_a_connection_error():
    with pytest.raises(ChromaDBConnectionError, match=r"http://127.0.0.1:\d+.*check that the server runs") as caught:
        ChromaStore(host="127.0.0.1", port=free_port())
    assert isinstance(caught.value, ConnectionError)


def test_a_server_that_accepts_and_never_answers_runs_into_the_time_out():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with pytest.raises(ChromaDBConnectionError, match="no answer within the time-out"):
            ChromaStore(host="127.0.0.1", port=listener.getsockname()[1], timeout=0.3)


def test_every_call_to_a_server_that_stops_answering_runs_into_the_time_out(tmp_path):
    with chroma_server(tmp_path) as server, closing(opened(server, timeout=0.5)) as store:
        store.add_documents([chunk("text")], ids=["a"])
        server.process.send_signal(signal.SIGSTOP)
        os.waitpid(server.process.pid, os.WUNTRACED)  # it answers until it has really stopped
        calls = [
            store.count,
            lambda: store.search(EAST),
            lambda: store.get(["a"]),
            lambda: store.add_documents([chunk("text")]),
            lambda: store.delete(ids=["a"]),
            lambda: store.scan(),
            store.sources,
            store.clear_collection,
            lambda: opened(server, timeout=0.3),
        ]
        for call in calls:
            with pytest.raises(ChromaDBConnectionError, match="time-out.*repeating it is safe"):
                call()
        server.process.send_signal(signal.SIGCONT)


def test_a_store_survives_a_restart_of_its_server(tmp_path):
    with chroma_server(tmp_path) as server:
        store = opened(server)
        store.add_documents([chunk("text")])
    with closing(store):
        with pytest.raises(ChromaDBConnectionError, match="check that the server runs"):
            store.count()
        with chroma_server(tmp_path, server.port):
            assert store.search(EAST)[0].content == "text"


@pytest.mark.parametrize(
    ("status", "body", "error", "message"),
    [
        (200, b"<html>not ChromaDB</html>", ChromaDBConnectionError, "the answer is not from ChromaDB"),
        (200, b'{"detail": "not ChromaDB"}', StoreError, "ChromaDB"),
        (404, b"not found", StoreError, "answered 404.*check that the server runs"),
        (401, b"who are you?", ChromaDBConnectionError, "answered 401.*check the headers"),
        (413, b"too much", StoreError, "answered 413.*smaller batch_size"),
        (429, b"slow down", ChromaDBConnectionError, "answered 429.*try again later"),
        (503, b"", ChromaDBConnectionError, "answered 503.*try again later"),
    ],
)
def test_a_server_that_is_not_chromadb_or_is_overloaded_is_one_clear_error(status, body, error, message):
    tokens: list[str] = []
    with answering(status, body, tokens) as port, pytest.raises(error, match=message) as caught:
        ChromaStore(host="127.0.0.1", port=port, timeout=5, headers={"x-chroma-token": "hush"})
    assert set(tokens) == {"hush"}
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("option", [{"tenant": "nobody"}, {"database": "nothing"}])
def test_a_missing_tenant_or_database_is_named(server, option):
    [(setting, name)] = option.items()
    with pytest.raises(DatabaseNotFoundError, match=f"{setting} {name!r}.*correct CHROMA_TENANT and CHROMA_DATABASE"):
        opened(server, **option)


def test_tenants_and_databases_are_kept_apart(server):
    admin = chromadb.AdminClient(
        chromadb.Settings(
            chroma_api_impl="chromadb.api.fastapi.FastAPI",
            chroma_server_host=server.host, chroma_server_http_port=server.port,
        )
    )  # fmt: skip
    admin.create_tenant("acme")
    admin.create_database("books", tenant="acme")
    admin._server._session.close()
    with closing(opened(server, "shared", tenant="acme", database="books")) as store:
        store.add_documents([chunk("text")])
    with closing(opened(server, "shared")) as store:
        assert store.count() == 0


@pytest.mark.parametrize("form", ["{host}:{port}", "http://{host}:{port}", "http://user:secret@{host}:{port}"])
def test_a_host_may_contain_port_scheme_and_login(server, form):
    with closing(ChromaStore(host=form.format(host=server.host, port=server.port), port=1)) as store:
        assert store.count() >= 0


def test_a_bad_address_is_one_clear_error():
    with pytest.raises(ChromaDBConnectionError, match=r"http://\[::1\]:"):
        ChromaStore(host=f"[::1]:{free_port()}", port=1)
    with pytest.raises(ConfigError, match="the port of ChromaDB must be 1 to 65,535, got 99999 with the host"):
        ChromaStore(host="127.0.0.1:99999")
    for timeout in (0, -1, float("nan")):
        with pytest.raises(ConfigError, match="time-out"):
            ChromaStore(host="127.0.0.1", timeout=timeout)


def test_a_collection_that_another_client_removed_has_to_be_opened_again(pair):
    one, other = pair
    other.clear_collection()
    for call in (one.count, lambda: one.search(EAST), lambda: one.add_documents([chunk("text")])):
        with pytest.raises(CollectionNotFoundError, match="open the store again"):
            call()


def test_clients_that_opened_an_empty_collection_agree_on_its_embedder(pair):
    one, other = pair
    recorded = EmbedderFingerprint("embedded", "minilm", "abc", 3)
    one.use_embedder(recorded)
    assert other.embedder() == recorded
    with pytest.raises(StoreError, match="minilm"):
        other.use_embedder(EmbedderFingerprint("ollama", "nomic-embed-text", "", 3))
