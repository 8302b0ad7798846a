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
