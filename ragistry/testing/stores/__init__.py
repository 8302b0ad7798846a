"""What every store must do, as tests. A subclass overrides the fixture ``store``: an empty store for each test.

    class TestMyStore(DocumentStoreConformance, EmbedderRecordConformance, SourceStoreConformance):
        @pytest.fixture
        def store(self, tmp_path):
            store = MyStore(tmp_path)
            yield store
            store.close()

`DocumentStoreConformance` is the sum of the abilities in this package's modules. To see in full why one fails, put
``pytest.register_assert_rewrite("ragistry.testing.stores")`` into your conftest.py.
"""

from __future__ import annotations

from ragistry.testing.stores.conditions import ConditionConformance
from ragistry.testing.stores.deleting import DeletingConformance
from ragistry.testing.stores.embedder import EmbedderRecordConformance
from ragistry.testing.stores.reading import ReadingConformance
from ragistry.testing.stores.searching import SearchConformance
from ragistry.testing.stores.sources import SourceStoreConformance
from ragistry.testing.stores.text_search import TextSearchConformance
from ragistry.testing.stores.writing import WritingConformance

__all__ = ["DocumentStoreConformance", "EmbedderRecordConformance", "SourceStoreConformance", "TextSearchConformance"]


class DocumentStoreConformance(
    WritingConformance, ReadingConformance, SearchConformance, ConditionConformance, DeletingConformance
):
    """All of `DocumentStore`."""
