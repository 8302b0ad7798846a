"""Tests of deletions."""

from __future__ import annotations

import pytest

from ragistry.errors import (
    InvalidFilterError,
    StoreError,
)
from ragistry.protocols import DocumentStore
from ragistry.testing.stores.chunks import EAST, chunk


class DeletingConformance:
    """Tests of deletions."""

    def test_delete_counts_what_was_there(self, store: DocumentStore) -> None:
        store.add_documents([chunk(f"text {i}", page=i % 2) for i in range(6)], ids=list("abcdef"))
        assert store.delete(ids=["a", "a", "x"]) == 1
        assert store.delete(where={"page": 0}) == 2
        assert store.delete(where={"page": 0}) == 0
        assert store.delete(ids=[]) == 0
        assert sorted(document.id for document in store.search(EAST)) == ["b", "d", "f"]

    def test_delete_takes_ids_or_a_condition(self, store: DocumentStore) -> None:
        store.add_documents([chunk("text")])
        with pytest.raises(InvalidFilterError):
            store.delete()
        with pytest.raises(InvalidFilterError):
            store.delete(ids=["a"], where={"page": 1})
        with pytest.raises(InvalidFilterError, match="empty"):
            store.delete(where={})
        assert store.count() == 1

    def test_clear_removes_everything_and_the_dimension(self, store: DocumentStore) -> None:
        store.add_documents([chunk("text", page=1, tags=["x", "y"])], ids=["a"])
        assert len(store.search(EAST, where={"page": 1})) == 1
        store.clear_collection()
        assert (store.count(), store.get(["a"]), list(store.scan())) == (0, [], [])
        store.add_documents([chunk("text", [1.0, 0.0])], ids=["a"])
        assert [document.metadata for document in store.search([1.0, 0.0])] == [{}]

    def test_a_closed_store_says_so(self, store: DocumentStore) -> None:
        store.add_documents([chunk("text")])
        store.close()
        store.close()
        with pytest.raises(StoreError, match="closed"):
            store.search(EAST)
        with pytest.raises(StoreError, match="closed"):
            store.add_documents([chunk("text")])
