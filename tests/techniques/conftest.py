"""Stores and libraries that the tests of techniques only read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ragistry import Workspace
from ragistry.stores.local import LocalStore
from tests.library.git_trees import commit
from tests.techniques import topics
from tests.techniques.doubles import fill_with_facts
from tests.techniques.passages import guide, ingest


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    """An empty store."""
    with closing(LocalStore(tmp_path / "store")) as opened:
        yield opened


@pytest.fixture(scope="session")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStore]:
    """The facts of `doubles`, with their vectors."""
    with closing(LocalStore(tmp_path_factory.mktemp("facts"))) as opened:
        fill_with_facts(opened)
        yield opened


@pytest.fixture(scope="session")
def guide_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStore]:
    """The guide of `passages` in 13 chunks."""
    folder = tmp_path_factory.mktemp("guide")
    with closing(LocalStore(folder / "store")) as opened:
        ingest(opened, guide(folder), 60)
        yield opened


@pytest.fixture(scope="session")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """The three collections of `topics`, and a repository ``notes`` on chess whose description says nothing.

    A test that adds to it removes that again.
    """
    clone = tmp_path_factory.mktemp("clones") / "notes"
    clone.mkdir()
    commit(clone, topics.PAGES)
    with topics.library(tmp_path_factory.mktemp("topics")) as workspace:
        workspace.repositories.add(clone, description="various")
        yield workspace
