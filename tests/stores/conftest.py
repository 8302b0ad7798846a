"""One ChromaDB server for all tests of a process; each test has a collection of its own."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from ragistry.stores.chroma import ChromaStore
from ragistry.testing.chroma_server import ChromaServer, chroma_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaServer]:
    with chroma_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def served(server: ChromaServer) -> Iterator[ChromaStore]:
    store = ChromaStore.connect(server.host, port=server.port, collection=f"c{uuid4().hex}")
    yield store
    store.close()


@pytest.fixture
def embedded(tmp_path) -> Iterator[ChromaStore]:
    store = ChromaStore(tmp_path / "chroma")
    yield store
    store.close()
