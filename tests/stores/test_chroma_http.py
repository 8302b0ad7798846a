"""ChromaDB over HTTP: servers that are not there, hang, restart, or are something else."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

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
def answering(status: int, body: bytes) -> Iterator[int]:
    """A server that gives every request the same answer; its port."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
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


def test_a_server_that_is_not_there():
    with pytest.raises(ChromaDBConnectionError, match=r"http://127.0.0.1:\d+.*check that the server runs"):
        ChromaStore.connect("127.0.0.1", port=free_port())


def test_a_connection_error_is_also_the_builtin_one():
    with pytest.raises(ConnectionError):
        ChromaStore.connect("nowhere.invalid", port=1)


def test_a_server_that_accepts_and_never_answers():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with pytest.raises(ChromaDBConnectionError, match="no answer within the time-out"):
            ChromaStore.connect("127.0.0.1", port=listener.getsockname()[1], timeout=0.3)


def test_a_server_that_stops_answering(tmp_path):
    with chroma_server(tmp_path) as server:
        store = ChromaStore.connect(server.host, port=server.port, timeout=0.5)
        with closing(store):
            store.add_documents([chunk("text")], ids=["a"])
            server.process.send_signal(signal.SIGSTOP)
            os.waitpid(server.process.pid, os.WUNTRACED)  # until it stands still it may yet answer
            calls = {
                "count": store.count,
                "search": lambda: store.search(EAST),
                "get": lambda: store.get(["a"]),
                "add": lambda: store.add_documents([chunk("text")]),
                "delete": lambda: store.delete(ids=["a"]),
                "scan": lambda: store.scan(),
                "sources": store.sources,
                "clear": store.clear_collection,
            }
            for call in calls.values():
                with pytest.raises(ChromaDBConnectionError, match="time-out.*writing it again is safe"):
                    call()
            with pytest.raises(ChromaDBConnectionError, match="time-out"):
                ChromaStore.connect(server.host, port=server.port, timeout=0.3)
            server.process.send_signal(signal.SIGCONT)


def test_a_store_survives_a_restart_of_its_server(tmp_path):
    with chroma_server(tmp_path) as server:
        store = ChromaStore.connect(server.host, port=server.port)
        store.add_documents([chunk("text")])
    with pytest.raises(ChromaDBConnectionError, match="check that the server runs"):
        store.count()
    with chroma_server(tmp_path, server.port):
        assert store.search(EAST)[0].content == "text"
    store.close()


@pytest.mark.parametrize(
    ("status", "body", "error", "message"),
    [
        (200, b"<html>not ChromaDB</html>", ChromaDBConnectionError, "not ChromaDB's answer"),
        (200, b'{"detail": "not ChromaDB"}', StoreError, "ChromaDB"),
        (404, b"not found", StoreError, "answered 404.*check that the server runs"),
        (401, b"who are you?", ChromaDBConnectionError, "answered 401.*check the headers"),
        (413, b"too much", StoreError, "answered 413.*smaller batch_size"),
        (429, b"slow down", ChromaDBConnectionError, "answered 429.*try again later"),
        (502, b"bad gateway", ChromaDBConnectionError, "answered 502.*try again later"),
        (503, b"", ChromaDBConnectionError, "answered 503.*try again later"),
        (504, b"time-out", ChromaDBConnectionError, "answered 504.*try again later"),
    ],
)
def test_a_server_that_is_something_else(status, body, error, message):
    with answering(status, body) as port, pytest.raises(error, match=message):
        ChromaStore.connect("127.0.0.1", port=port, timeout=5)


@pytest.mark.parametrize("option", [{"tenant": "nobody"}, {"database": "nothing"}])
def test_a_tenant_or_database_that_is_not_there(server, option):
    [(setting, name)] = option.items()
    with pytest.raises(DatabaseNotFoundError, match=f"{setting} {name!r}.*correct CHROMA_TENANT and CHROMA_DATABASE"):
        ChromaStore.connect(server.host, port=server.port, **option)


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
    with closing(ChromaStore.connect(server.host, port=server.port, tenant="acme", database="books")) as store:
        store.add_documents([chunk("text")])
    with closing(ChromaStore.connect(server.host, port=server.port)) as store:
        assert store.count() == 0


def test_a_host_may_be_a_url(server):
    with closing(ChromaStore.connect(f"http://{server.host}:{server.port}", port=1)) as store:
        assert store.count() == 0


def test_headers_are_sent_and_not_shown(server):
    store = ChromaStore.connect(server.host, port=server.port, headers={"x-chroma-token": "hush"})
    with closing(store):
        assert store._connection.client._server._session.headers["x-chroma-token"] == "hush"
        assert "hush" not in repr(store)


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_time_out_must_be_above_zero(timeout):
    with pytest.raises(ConfigError, match="time-out"):
        ChromaStore.connect("127.0.0.1", timeout=timeout)


def test_a_collection_that_somebody_else_removed(served, server):
    with closing(ChromaStore.connect(server.host, port=server.port, collection=served._name)) as other:
        other.clear_collection()
        for call in (served.count, lambda: served.search(EAST), lambda: served.add_documents([chunk("text")])):
            with pytest.raises(CollectionNotFoundError, match="open the store again"):
                call()


def test_the_embedder_is_remembered_by_the_server(served, server):
    recorded = EmbedderFingerprint("embedded", "minilm", "abc", 3)
    served.use_embedder(recorded)
    with closing(ChromaStore.connect(server.host, port=server.port, collection=served._name)) as other:
        other.check_embedder(recorded)
        with pytest.raises(StoreError, match="minilm"):
            other.check_embedder(EmbedderFingerprint("ollama", "nomic-embed-text", "", 3))


def test_two_that_opened_an_empty_collection_agree_on_its_embedder(served, server):
    with closing(ChromaStore.connect(server.host, port=server.port, collection=served._name)) as other:
        served.use_embedder(EmbedderFingerprint("embedded", "minilm", "abc", 3))
        with pytest.raises(StoreError, match="minilm"):
            other.use_embedder(EmbedderFingerprint("ollama", "nomic-embed-text", "", 3))


@pytest.mark.parametrize("form", ["{host}:{port}", "http://{host}:{port}"])
def test_a_host_may_say_its_port(server: ChromaServer, form: str) -> None:
    with closing(ChromaStore.connect(form.format(host=server.host, port=server.port), port=1)) as store:
        assert store.count() >= 0
    with pytest.raises(ChromaDBConnectionError, match=r"http://\[::1\]:"):
        ChromaStore.connect(f"[::1]:{free_port()}", port=server.port)
    with pytest.raises(ConfigError, match="the port of ChromaDB must be 1 to 65,535, got 99999 with the host"):
        ChromaStore.connect(f"{server.host}:99999")
