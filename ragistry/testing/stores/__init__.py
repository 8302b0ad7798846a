"""Conformance tests of stores. A subclass overrides the fixture ``store``: an empty store for each test.

    class TestMyStore(DocumentStoreConformance, LibraryStoreConformance, TextSearchConformance):
        @pytest.fixture
        def store(self, tmp_path):
            store = MyStore(tmp_path)
            yield store
            store.close()

The first two test the protocols of these names; `TextSearchConformance`, `RepairConformance`, `ReembedConformance`,
`FitConformance` and `UnsearchableConformance` test the abilities "text", "repair", "reembed", "fit" and
"unsearchable". For full messages of failed tests, add
``pytest.register_assert_rewrite("ragistry.testing.stores")`` to your conftest.py.
"""

from __future__ import annotations

from ragistry.testing.stores.conditions import ConditionConformance
from ragistry.testing.stores.deleting import DeletingConformance
from ragistry.testing.stores.library import (
    FitConformance,
    LibraryStoreConformance,
    ReembedConformance,
    RepairConformance,
    UnsearchableConformance,
)
from ragistry.testing.stores.reading import ReadingConformance
from ragistry.testing.stores.searching import SearchConformance
from ragistry.testing.stores.text_search import TextSearchConformance
from ragistry.testing.stores.writing import WritingConformance

__all__ = [
    "DocumentStoreConformance",
    "FitConformance",
    "LibraryStoreConformance",
    "ReembedConformance",
    "RepairConformance",
    "TextSearchConformance",
    "UnsearchableConformance",
]


class DocumentStoreConformance(
    WritingConformance, ReadingConformance, SearchConformance, ConditionConformance, DeletingConformance
):
    """All of `DocumentStore`."""
