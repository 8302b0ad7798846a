"""Every store does what every store must do."""

from __future__ import annotations

import pytest

from ragistry.testing.stores import DocumentStoreConformance, EmbedderRecordConformance, SourceStoreConformance
from tests.stores.memory_store import MemoryStore


class Conformance(DocumentStoreConformance, EmbedderRecordConformance, SourceStoreConformance):
    pass


class TestMemoryStore(Conformance):
    @pytest.fixture
    def store(self):
        return MemoryStore()


class TestChromaStoreEmbedded(Conformance):
    @pytest.fixture
    def store(self, embedded):
        return embedded


class TestChromaStoreServed(Conformance):
    @pytest.fixture
    def store(self, served):
        return served
