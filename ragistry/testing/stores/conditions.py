"""Tests of conditions on metadata."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ragistry.errors import InvalidFilterError
from ragistry.protocols import DocumentStore
from ragistry.testing.stores.chunks import EAST, chunk
from ragistry.types import EmbeddedChunk

STORED: tuple[dict[str, Any], ...] = (
    {},
    {"v": 1},
    {"v": 1.0},
    {"v": 2.5},
    {"v": True},
    {"v": False},
    {"v": "1"},
    {"v": "b"},
    {"v": ""},
    {"v": [1, 2]},
    {"v": [1.0, 2.5]},
    {"v": ["1", "b"]},
    {"v": [True]},
    {"v": -3, "w": "x"},
    {"v": 2**53 + 1},
    {"w": "x"},
)
"""Row 0 to 15; the nearer to `EAST`, the lower the number."""

CONDITIONS: tuple[tuple[Any, str], ...] = (
    ({"v": 1}, "1 2"),
    ({"v": 1.0}, "1 2"),
    ({"v": True}, "4"),
    ({"v": "1"}, "6"),
    ({"v": ""}, "8"),
    ({"v": float(2**53)}, ""),
    ({"v": 2**53 + 1}, "14"),
    ({"v": -3, "w": "x"}, "13"),
    ({"unknown": 1}, ""),
    ({"v": {"$ne": 1}}, "0 3 4 5 6 7 8 9 10 11 12 13 14 15"),
    ({"v": {"$ne": True}}, "0 1 2 3 5 6 7 8 9 10 11 12 13 14 15"),
    ({"v": {"$gt": 1}}, "3 14"),
    ({"v": {"$gte": 1.0}}, "1 2 3 14"),
    ({"v": {"$lt": 1}}, "13"),
    ({"v": {"$lte": 1}}, "1 2 13"),
    ({"v": {"$gt": 0, "$lt": 2}}, "1 2"),
    ({"v": 1.5}, ""),
    ({"v": {"$ne": 1.5}}, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15"),
    ({"v": {"$gt": 0.5}}, "1 2 3 14"),
    ({"v": {"$gte": 1.5}}, "3 14"),
    ({"v": {"$gte": 2.5}}, "3 14"),
    ({"v": {"$lt": 1.5}}, "1 2 13"),
    ({"v": {"$lte": 2.5}}, "1 2 3 13"),
    ({"v": {"$gt": -3.5}}, "1 2 3 13 14"),
    ({"v": {"$gte": -3.5}}, "1 2 3 13 14"),
    ({"v": {"$gt": -2.5}}, "1 2 3 14"),
    ({"v": {"$lt": -2.5}}, "13"),
    ({"v": {"$lte": -3.5}}, ""),
    ({"v": {"$lt": 1e300}}, "1 2 3 13 14"),
    ({"v": {"$gt": -1e300}}, "1 2 3 13 14"),
    ({"v": {"$in": [1.5, -3.5, 2.5]}}, "3"),
    ({"v": {"$nin": [1.5, -3.5, 2.5]}}, "0 1 2 4 5 6 7 8 9 10 11 12 13 14 15"),
    ({"v": {"$in": [1.5, 1]}}, "1 2"),
    ({"v": {"$gt": "1"}}, "7"),
    ({"v": {"$gte": ""}}, "6 7 8"),
    ({"v": {"$lt": "b"}}, "6 8"),
    ({"v": {"$lte": "b"}}, "6 7 8"),
    ({"v": {"$in": [1, "b", True, 2.5]}}, "1 2 3 4 7"),
    ({"v": {"$in": []}}, ""),
    ({"v": {"$nin": [1, "b", True]}}, "0 3 5 6 8 9 10 11 12 13 14 15"),
    ({"v": {"$nin": []}}, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15"),
    ({"v": {"$contains": 1}}, "9 10"),
    ({"v": {"$contains": 1.0}}, "9 10"),
    ({"v": {"$contains": 2.5}}, "10"),
    ({"v": {"$contains": "1"}}, "11"),
    ({"v": {"$contains": True}}, "12"),
    ({"v": {"$contains": "c"}}, ""),
    ({"v": {"$not_contains": 1}}, "0 1 2 3 4 5 6 7 8 11 12 13 14 15"),
    ({"v": {"$not_contains": "1"}}, "0 1 2 3 4 5 6 7 8 9 10 12 13 14 15"),
    ({"#document": {"$not_contains": "x"}, "v": 1}, "1 2"),
    ({"$and": [{"w": "x"}]}, "13 15"),
    ({"$and": [{"w": "x"}, {"v": {"$ne": -3}}]}, "15"),
    ({"$or": [{"v": 1}, {"v": "b"}]}, "1 2 7"),
    ({"$or": [{"v": {"$gt": "a"}}, {"w": "x"}]}, "7 13 15"),
    ({"$and": [{"v": {"$gt": "a"}}, {"v": {"$in": []}}]}, ""),
    ({"$or": [{"v": {"$in": []}}, {"$and": [{"v": {"$nin": []}}, {"v": 1}]}]}, "1 2"),
    ({"$or": [{"v": i} for i in range(1_200)]}, "1 2"),
    ({"v": {"$in": [*range(5_000), "b"]}}, "1 2 7"),
    ({"#document": {"$ne": "x"}, "v": 1}, "1 2"),
    ({"#document": "text 1"}, ""),
)

NO_CONDITIONS: tuple[Any, ...] = (
    {},
    [],
    "page",
    {1: 1},
    {"page": None},
    {"page": [1]},
    {"page": {}},
    {"page": math.nan},
    {"page": 2**63},
    {"page": "\ud800"},
    {"page": {"$like": 1}},
    {"page": {"$gt": True}},
    {"page": {"$in": 1}},
    {"page": {"$in": "abc"}},
    {"page": {"$in": [[1]]}},
    {"$and": []},
    {"$and": [{}]},
    {"$or": {}},
    {"$not": {}},
)


class ConditionConformance:
    """Every call with a condition agrees with `utils.where.matches`."""

    @pytest.fixture
    def filled(self, store: DocumentStore) -> DocumentStore:
        chunks = [EmbeddedChunk(f"text {i}", metadata, [1.0, i / 20, 0.0]) for i, metadata in enumerate(STORED)]
        store.add_documents(chunks, ids=[str(i) for i in range(len(STORED))])
        return store

    def test_a_condition_means_the_same_everywhere(self, filled: DocumentStore) -> None:
        found = [" ".join(document.id for document in filled.search(EAST, 100, where=c)) for c, _ in CONDITIONS]
        assert found == [expected for _, expected in CONDITIONS]
        scanned = [sorted(int(document.id) for document in filled.scan(c)) for c, _ in CONDITIONS]
        assert scanned == [[int(i) for i in expected.split()] for _, expected in CONDITIONS]
        assert [filled.count(c) for c, _ in CONDITIONS] == [len(expected.split()) for _, expected in CONDITIONS]

    def test_the_nearest_of_those_that_meet_it_are_found(self, filled: DocumentStore) -> None:
        for condition, expected in CONDITIONS:
            assert [document.id for document in filled.search(EAST, 2, where=condition)] == expected.split()[:2]

    def test_delete_removes_those_that_meet_it_and_no_more(self, filled: DocumentStore) -> None:
        assert filled.delete(where={"$or": [{"v": {"$gt": "a"}}, {"v": {"$contains": 1}}, {"v": True}]}) == 4
        assert sorted(int(document.id) for document in filled.scan()) == [0, 1, 2, 3, 5, 6, 8, 11, 12, 13, 14, 15]

    @pytest.mark.parametrize("call", ["count", "scan", "search", "delete"])
    def test_what_is_no_condition_is_refused(self, store: DocumentStore, call: str) -> None:
        store.add_documents([chunk("text", page=1)])
        arguments = [EAST] if call == "search" else []
        for where in NO_CONDITIONS:
            with pytest.raises(InvalidFilterError):
                getattr(store, call)(*arguments, where=where)
        assert store.count() == 1
