"""Tests of searches and their scores."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ragistry.errors import (
    EmbeddingMismatchError,
    InvalidLimitError,
    QueryError,
)
from ragistry.protocols import DocumentStore
from ragistry.testing.stores.chunks import BAD_VECTORS, EAST, NORTH_EAST, WEST, chunk
from ragistry.types import EmbeddedChunk

BAD_LIMITS: tuple[Any, ...] = (0, -1, 1001, True, 2.0, "3", None)


class SearchConformance:
    """Tests of searches and their scores."""

    def test_an_empty_store_finds_nothing_and_says_why(
        self, store: DocumentStore, caplog: pytest.LogCaptureFixture
    ) -> None:
        assert store.search(EAST) == []
        assert "empty" in caplog.text
        assert store.count() == 0
        assert list(store.scan()) == []
        assert store.get(["a"]) == []
        assert store.delete(ids=["a"]) == 0

    def test_search_scores_by_cosine_best_first(self, store: DocumentStore) -> None:
        store.add_documents(
            [chunk("east", EAST), chunk("north-east", NORTH_EAST), chunk("west", WEST)], ids=["e", "ne", "w"]
        )
        documents = store.search([2.0, 0.0, 0.0], 3)
        assert [document.id for document in documents] == ["e", "ne", "w"]
        assert [document.score for document in documents] == pytest.approx([1.0, math.sqrt(0.5), 0.0], abs=1e-4)
        assert all(document.scores[0].kind == "cosine" for document in documents)

    def test_equal_scores_are_ordered_by_id(self, store: DocumentStore) -> None:
        store.add_documents([chunk("nearest")], ids=["z"])
        ids = [f"{(i * 37) % 300:03}" for i in range(300)]
        store.add_documents([chunk(f"text {id}", [1.0, 0.2, 0.0]) for id in ids], ids=ids)
        assert [document.id for document in store.search(EAST, 7)] == ["z", *(f"{i:03}" for i in range(6))]

    def test_vectors_of_any_length_count_by_their_direction(self, store: DocumentStore) -> None:
        store.add_documents([chunk("huge", [1e30, 1e30, 0.0]), chunk("tiny", [1e-30, 0.0, 0.0])], ids=["huge", "tiny"])
        assert [(d.id, round(d.score, 3)) for d in store.search([1e-20, 0, 0])] == [("tiny", 1.0), ("huge", 0.707)]

    def test_vectors_of_any_type_of_number_are_accepted(self, store: DocumentStore) -> None:
        for kind in ("float16", "float64", "int8", "uint64", ">f4"):
            vector: Any = np.array([3, 4, 0], dtype=kind)
            store.add_documents([EmbeddedChunk("text", {}, vector)], ids=["a"])
            assert store.search(vector)[0].score == pytest.approx(1, abs=1e-4)

    def test_top_k_limits_and_may_exceed_what_is_stored(self, store: DocumentStore) -> None:
        store.add_documents([chunk(f"text {i}", [1.0, float(i), 0.0]) for i in range(20)])
        assert len(store.search(EAST, 5)) == 5
        assert len(store.search(EAST, 1000)) == 20

    def test_a_bad_top_k_is_refused(self, store: DocumentStore) -> None:
        for top_k in BAD_LIMITS:
            with pytest.raises(InvalidLimitError, match="top_k"):
                store.search(EAST, top_k)

    def test_a_query_without_direction_is_refused(self, store: DocumentStore) -> None:
        store.add_documents([chunk("text")])
        for vector in BAD_VECTORS.values():
            with pytest.raises(QueryError, match="vector"):
                store.search(vector)

    def test_another_dimension_is_refused(self, store: DocumentStore) -> None:
        store.add_documents([chunk("text")])
        with pytest.raises(EmbeddingMismatchError):
            store.search([1.0, 0.0])
        with pytest.raises(EmbeddingMismatchError):
            store.add_documents([chunk("other", [1.0, 0.0])])
        assert store.count() == 1
