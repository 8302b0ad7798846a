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
    FitConformance,
    LibraryStoreConformance,
    ReembedConformance,
    RepairConformance,
    TextSearchConformance,
    UnsearchableConformance,
)
from ragistry.testing.stores.conditions import ConditionConformance
from ragistry.testing.stores.searching import SearchConformance


class Conformance(DocumentStoreConformance, LibraryStoreConformance):
    pass


class TestDictStore(Conformance):
    @pytest.fixture
    def store(self):
        return DictStore()


class TestLocalStore(
    Conformance,
    TextSearchConformance,
    RepairConformance,
    ReembedConformance,
    FitConformance,
    UnsearchableConformance,
):
    @pytest.fixture
    def store(self, local):
        return local


class TestLocalStoreWithSketches(SearchConformance, ConditionConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[LocalStore]:
        with closing(LocalStore(tmp_path / "local", exact_below=0, exclusive=True)) as store:
            yield store


class TestChromaStoreEmbedded(Conformance):
    @pytest.fixture
    def store(self, embedded):
        return embedded


class TestChromaStoreServed(Conformance):
    @pytest.fixture
    def store(self, served):
        return served


class TestPostgresStore(
    Conformance, TextSearchConformance, ReembedConformance, FitConformance, UnsearchableConformance
):
    @pytest.fixture
    def store(self, stored):
        return stored
