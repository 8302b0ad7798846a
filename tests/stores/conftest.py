"""One server of each kind and one directory for all tests of a process; each test has a collection of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import pytest

from ragistry.stores.chroma import ChromaStore
from ragistry.stores.postgres import PostgresStore
from ragistry.testing.chroma_server import ChromaServer, chroma_server
from ragistry.testing.postgres_server import PostgresServer, postgres_server

pytest.register_assert_rewrite("ragistry.testing.stores")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaServer]:
    with chroma_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def served(server: ChromaServer) -> Iterator[ChromaStore]:
    store = ChromaStore(host=server.host, port=server.port, collection=f"c{uuid4().hex}")
    yield store
    store.close()


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An open Chroma directory, so that each test need not start an engine of its own."""
    directory = tmp_path_factory.mktemp("engine") / "chroma"
    store = ChromaStore(directory)
    yield directory
    store.close()


@pytest.fixture
def embedded(engine: Path) -> Iterator[ChromaStore]:
    store = ChromaStore(engine, collection=f"c{uuid4().hex}")
    yield store
    store.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for all tests of a process; each test has a schema of its own."""
    with postgres_server() as running:
        yield running


@pytest.fixture
def stored(postgres: PostgresServer) -> Iterator[PostgresStore]:
    store = PostgresStore(postgres.url, collection=uuid4().hex)
    yield store
    store.close()


def _in_memory(otherwise: Path) -> AbstractContextManager[str]:
    memory = Path("/dev/shm")
    # Ignored: a thread of tantivy's may still write a lock file into an index that was closed.
    return TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else otherwise, ignore_cleanup_errors=True)


@pytest.fixture(scope="module")
def quick_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in memory, where there is one, for the tests of a module: nothing waits for a disk."""
    with _in_memory(tmp_path_factory.mktemp("quick")) as folder:
        yield Path(folder)


@pytest.fixture
def quick_path(tmp_path: Path) -> Iterator[Path]:
    """The same for one test."""
    with _in_memory(tmp_path) as folder:
        yield Path(folder)
