"""A store of each kind for a test, in folders in memory or with a collection of its own on a shared server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import pytest

from ragistry.stores.chroma import ChromaStore
from ragistry.stores.local import LocalStore
from ragistry.stores.postgres import PostgresStore
from ragistry.testing.chroma_server import ChromaServer
from ragistry.testing.postgres_server import PostgresServer

pytest.register_assert_rewrite("ragistry.testing.stores")


@pytest.fixture
def local(quick_path: Path) -> Iterator[LocalStore]:
    with closing(LocalStore(quick_path / "local", lock_timeout=30)) as store:
        yield store


@pytest.fixture
def served(chroma: ChromaServer) -> Iterator[ChromaStore]:
    with closing(ChromaStore(host=chroma.url, collection=f"c{uuid4().hex}")) as store:
        yield store


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An open Chroma directory, so that each test need not start an engine of its own."""
    directory = tmp_path_factory.mktemp("engine") / "chroma"
    with closing(ChromaStore(directory)):
        yield directory


@pytest.fixture
def embedded(engine: Path) -> Iterator[ChromaStore]:
    with closing(ChromaStore(engine, collection=f"c{uuid4().hex}")) as store:
        yield store


@pytest.fixture
def stored(postgres: PostgresServer) -> Iterator[PostgresStore]:
    with closing(PostgresStore(postgres.url, collection=uuid4().hex)) as store:
        yield store


@pytest.fixture
def another(stored: PostgresStore, postgres: PostgresServer) -> Iterator[Callable[..., PostgresStore]]:
    """Opens more stores on the schema of `stored`."""
    with ExitStack() as stack:

        def opened(url: str = postgres.url, **settings: Any) -> PostgresStore:
            store = PostgresStore(url, collection=stored._primary.schema.removeprefix("ragistry_"), **settings)
            return stack.enter_context(closing(store))

        yield opened


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
