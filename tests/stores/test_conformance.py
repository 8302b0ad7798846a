"""Every store does what every store must do, also a local one with settings that make it behave as a large one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from examples.own_store import DictStore
from ragistry.stores.local import LocalStore
from ragistry.testing.stores import (
    DocumentStoreConformance,
    LibraryStoreConformance,
    ReembedConformance,
    RepairConformance,
    TextSearchConformance,
)
from ragistry.testing.stores.chunks import source
from ragistry.testing.stores.conditions import ConditionConformance
from ragistry.testing.stores.searching import SearchConformance


class Conformance(DocumentStoreConformance, LibraryStoreConformance):
    pass


class TestDictStore(Conformance):
    @pytest.fixture
    def store(self):
        return DictStore()


class TestLocalStore(Conformance, TextSearchConformance, RepairConformance, ReembedConformance):
    @pytest.fixture
    def store(self, local):
        return local


class TestLocalStoreWithSketches(SearchConformance, ConditionConformance):
    @pytest.fixture
    def store(self, quick_path: Path) -> Iterator[LocalStore]:
        with closing(LocalStore(quick_path / "local", exact_below=0, exclusive=True)) as store:
            yield store


class TestChromaStoreEmbedded(Conformance):
    @pytest.fixture
    def store(self, embedded):
        return embedded


class TestChromaStoreServed(Conformance):
    @pytest.fixture
    def store(self, served):
        return served


class TestPostgresStore(Conformance, TextSearchConformance, ReembedConformance):
    @pytest.fixture
    def store(self, stored):
        return stored


@pytest.mark.parametrize("name", ["local", "embedded", "served", "stored"])
def test_source_that_lost_text_is_listed_with_the_loss(name: str, request: pytest.FixtureRequest) -> None:
    store = request.getfixturevalue(name)
    whole = source("c", "a.pdf", ["one", "two"])
    store.replace_source("c", "a.pdf", [one._replace(metadata=one.metadata | {"lost": "page 2"}) for one in whole])
    assert [info.lost for info in store.sources("c")] == ["page 2"]
    store.replace_source("c", "a.pdf", whole)
    assert [info.lost for info in store.sources("c")] == [""]
