"""A store of each kind for a test, in a folder or with a collection of its own on a shared server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from ragistry.stores.chroma import ChromaStore
from ragistry.stores.postgres import PostgresStore
from tests.postgres_server import PostgresServer
from tests.stores.local_stores import place_of, store_at

pytest.register_assert_rewrite("ragistry.testing.stores")


def _store_of(kind: str) -> Any:
    @pytest.fixture
    def store(request: pytest.FixtureRequest) -> Iterator[Any]:
        with closing(store_at(place_of(kind, request))) as opened:
            yield opened

    return store


local, embedded, served, stored = map(_store_of, ("local", "embedded", "chroma", "postgres"))


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An open Chroma directory, so that each test need not start an engine of its own."""
    directory = tmp_path_factory.mktemp("engine") / "chroma"
    with closing(ChromaStore(directory)):
        yield directory


@pytest.fixture
def another(stored: PostgresStore, postgres: PostgresServer) -> Iterator[Callable[..., PostgresStore]]:
    """Opens more stores on the schema of `stored`."""
    collection = stored._primary.schema.removeprefix("ragistry_")
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(closing(store_at(f"{postgres.url}#{collection}", **settings)))


@pytest.fixture(scope="module")
def module_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the tests of a module."""
    return tmp_path_factory.mktemp("module")
