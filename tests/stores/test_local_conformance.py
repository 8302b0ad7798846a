"""The embedded store does what every store must do, whichever way it searches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ragistry.stores.local import LocalStore
from ragistry.testing.stores import (
    DocumentStoreConformance,
    EmbedderRecordConformance,
    SourceStoreConformance,
    TextSearchConformance,
)


class TestLocalStore(
    DocumentStoreConformance, EmbedderRecordConformance, SourceStoreConformance, TextSearchConformance
):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[LocalStore]:
        store = LocalStore(tmp_path / "local")
        yield store
        store.close()


class TestLocalStoreWithTheApproximateIndex(
    DocumentStoreConformance, EmbedderRecordConformance, SourceStoreConformance
):
    """Every search without a condition asks ChromaDB."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[LocalStore]:
        store = LocalStore(tmp_path / "local", exclusive=True, graph_above=0)
        yield store
        store.close()
