"""ChromaDB over HTTP: servers that are absent, hang, restart, or are something else."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import chromadb
import pytest

from ragistry.errors import (
    ChromaDBConnectionError,
    CollectionNotFoundError,
    ConfigError,
    DatabaseNotFoundError,
    StoreError,
)  # fmt: skip
from ragistry.stores.chroma import ChromaStore
from ragistry.testing.ollama_server import OllamaServer
from ragistry.testing.ports import refused_port
from ragistry.testing.stores.chunks import EAST, chunk
from ragistry.types import EmbedderFingerprint
from tests.chroma_server import ChromaServer, chroma_server
from tests.messages import refused


def opened(server: ChromaServer, collection: str = "", **options) -> ChromaStore:
    return ChromaStore(host=server.url, collection=collection or f"c{uuid4().hex}", **options)


@pytest.fixture
def pair(chroma: ChromaServer) -> Iterator[tuple[ChromaStore, ChromaStore]]:
    """Two clients of one collection."""
    name = f"c{uuid4().hex}"
    with closing(opened(chroma, name)) as one, closing(opened(chroma, name)) as other:
        yield one, other


@pytest.mark.slow
def test_store_survives_a_server_that_stops_answering_and_one_that_restarts(tmp_path: Path) -> None:
    with chroma_server(tmp_path) as server, closing(opened(server, "kept", timeout=0.5)) as store:
        store.add_documents([chunk("text")], ids=["a"])
        server.process.send_signal(signal.SIGSTOP)
        os.waitpid(server.process.pid, os.WUNTRACED)  # it answers until it has really stopped
        calls = [
            store.count, store.sources, store.scan, store.clear_collection,
            lambda: store.search(EAST), lambda: store.get(["a"]), lambda: store.delete(ids=["a"]),
            lambda: store.add_documents([chunk("text")]), lambda: opened(server, timeout=0.3),
        ]  # fmt: skip
        with ThreadPoolExecutor(len(calls)) as pool:
            ended = [pool.submit(call) for call in calls]
        for one in ended:
            with refused(ChromaDBConnectionError):
                one.result()
        server.process.kill()
        server.process.wait()
        with refused(ChromaDBConnectionError):
            store.count()
        with chroma_server(tmp_path, server.port), closing(opened(server, "kept")) as again:
            assert store.get(["a"])[0].content == again.search(EAST)[0].content == "text"


@pytest.mark.parametrize("failure", ["hang", "garbage", "drop", 401, 404, 413, 429, 503])
def test_server_that_hangs_is_not_chromadb_or_is_overloaded_is_one_clear_error(failure) -> None:
    """Also, the message does not show the headers, which hold a token."""
    with OllamaServer() as server:
        server.fail_next(failure, times=50)
        with refused(StoreError) as caught:
            timeout = 0.3 if failure == "hang" else 30
            ChromaStore(host=server.url, timeout=timeout, headers={"x-chroma-token": "hush"})
        assert server.requests[0].headers["x-chroma-token"] == "hush"
    assert "hush" not in str(caught.value)


def test_missing_tenant_or_database_is_named(chroma: ChromaServer) -> None:
    for setting, name in (("tenant", "nobody"), ("database", "nothing")):
        with refused(DatabaseNotFoundError, f"{setting} {name!r}"):
            opened(chroma, **{setting: name})


def test_tenants_and_databases_are_kept_apart(chroma: ChromaServer) -> None:
    admin = chromadb.AdminClient(
        chromadb.Settings(
            chroma_api_impl="chromadb.api.fastapi.FastAPI",
            chroma_server_host=chroma.host, chroma_server_http_port=chroma.port,
        )
    )  # fmt: skip
    admin.create_tenant("acme")
    admin.create_database("books", tenant="acme")
    admin._server._session.close()
    with closing(opened(chroma, "shared", tenant="acme", database="books")) as store:
        store.add_documents([chunk("text")])
    with closing(opened(chroma, "shared")) as store:
        assert store.count() == 0


def test_host_may_contain_a_login(chroma: ChromaServer) -> None:
    with closing(ChromaStore(host=chroma.url.replace("//", "//user:secret@"))) as store:
        assert store.count() >= 0


def test_bad_address_is_one_clear_error() -> None:
    for address in (f"127.0.0.1:{refused_port()}", f"[::1]:{refused_port()}", "127.0.0.1:99999"):
        with refused(ChromaDBConnectionError, address) as caught:
            ChromaStore(host=f"http://{address}")
        assert isinstance(caught.value, ConnectionError)
    for host in ("127.0.0.1", "127.0.0.1:8000", "user:secret@there", "ftp://there"):
        with refused(ConfigError, host.rpartition("@")[2]):
            ChromaStore(host=host)
    for timeout in (0, -1, float("nan")):
        with refused(ConfigError, timeout):
            ChromaStore(host="http://127.0.0.1", timeout=timeout)


def test_collection_that_another_client_removed_has_to_be_opened_again(pair: tuple[ChromaStore, ChromaStore]) -> None:
    one, other = pair
    other.clear_collection()
    for call in (one.count, lambda: one.search(EAST), lambda: one.add_documents([chunk("text")])):
        with refused(CollectionNotFoundError):
            call()


def test_clients_that_opened_an_empty_collection_agree_on_its_embedder(pair: tuple[ChromaStore, ChromaStore]) -> None:
    one, other = pair
    recorded = EmbedderFingerprint("embedded", "minilm", "abc", 3)
    one.use_embedder(recorded)
    assert other.embedder() == recorded
    with refused(StoreError, "minilm", "nomic-embed-text"):
        other.use_embedder(EmbedderFingerprint("ollama", "nomic-embed-text", "", 3))
