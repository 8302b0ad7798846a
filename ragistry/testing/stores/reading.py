"""Tests of reading stored chunks."""

from __future__ import annotations

import pytest

from ragistry.errors import InvalidLimitError
from ragistry.protocols import DocumentStore
from ragistry.testing.stores.chunks import chunk


class ReadingConformance:
    """Tests of reading stored chunks."""

    def test_has_the_shape_of_a_store(self, store: DocumentStore) -> None:
        assert isinstance(store, DocumentStore)

    def test_get_keeps_the_order_asked_for(self, store: DocumentStore) -> None:
        store.add_documents([chunk(f"text {i}") for i in range(5)], ids=list("abcde"))
        assert [document.id for document in store.get(["d", "x", "a", "d"])] == ["d", "a", "d"]

    def test_fifty_thousand_ids_may_be_asked_for(self, store: DocumentStore) -> None:
        store.add_documents([chunk("text")], ids=["49999"])
        ids = [str(i) for i in range(50_000)]
        assert [document.id for document in store.get(ids)] == ["49999"]
        assert store.count({"key": {"$in": ids}}) == 0
        assert store.count({"key": {"$nin": ids}}) == 1
        assert store.delete(ids=ids) == 1

    def test_scan_gives_each_chunk_once(self, store: DocumentStore) -> None:
        store.add_documents([chunk(f"text {i}", even=i % 2 == 0) for i in range(25)], ids=[str(i) for i in range(25)])
        assert sorted(int(d.id) for d in store.scan(batch=7)) == list(range(25))
        assert sorted(int(d.id) for d in store.scan({"even": True}, batch=4)) == list(range(0, 25, 2))

    def test_scan_gives_each_chunk_once_while_chunks_come_and_go(self, store: DocumentStore) -> None:
        store.add_documents([chunk(f"text {i}") for i in range(5)], ids=[f"{i:02}" for i in range(5)])
        seen = []
        for document in store.scan(batch=2):
            seen.append(document.id)
            store.delete(ids=[document.id])
            store.add_documents([chunk("later")], ids=[f"later {document.id}"])
        assert sorted(seen) == [f"{i:02}" for i in range(5)]

    def test_a_batch_of_nothing_is_refused(self, store: DocumentStore) -> None:
        with pytest.raises(InvalidLimitError):
            list(store.scan(batch=0))
