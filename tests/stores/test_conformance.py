"""Every store that is not local does what every store must do."""

from __future__ import annotations

import pytest

from examples.own_store import DictStore
from ragistry.testing.stores import (
    DocumentStoreConformance,
    LibraryStoreConformance,
    ReembedConformance,
    TextSearchConformance,
)
from ragistry.testing.stores.chunks import source


class Conformance(DocumentStoreConformance, LibraryStoreConformance):
    pass


class TestDictStore(Conformance):
    @pytest.fixture
    def store(self):
        return DictStore()


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


@pytest.mark.parametrize("name", ["embedded", "served", "stored"])
def test_what_was_lost_of_a_source_is_listed_with_it(name: str, request: pytest.FixtureRequest) -> None:
    store = request.getfixturevalue(name)
    whole = source("c", "a.pdf", ["one", "two"])
    store.replace_source("c", "a.pdf", [one._replace(metadata=one.metadata | {"lost": "page 2"}) for one in whole])
    assert [info.lost for info in store.sources("c")] == ["page 2"]
    store.replace_source("c", "a.pdf", whole)
    assert [info.lost for info in store.sources("c")] == [""]
