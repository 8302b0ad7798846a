"""Conditions on a `LocalStore`: SQL narrows the choice, and the result is what `matches` says of each chunk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragistry.stores.local import LocalStore
from ragistry.types import EmbeddedChunk
from ragistry.utils.where import COMPARISONS, matches, normalise

KEYS = ("page", "section", "has_code", "tags", "odd.key\"'", "collection", "source_file", "chunk_index")
TEXTS = (
    "", "a", "b", "a\0b", 'a"', '"a"', '["a"', ',"a"', "a\\", "\\", ",", "]", "ä", "ÿ", "\U0001d51e", "\uffff", "1",
    "true", "tags", "c0", "c1", "f.md", "g\0.md",
)  # fmt: skip
NUMBERS = (0, 1, 2, 10, -1, 1.0, 0.5, -0.0, 2**53 + 1, float(2**53), -(2**63), 2**63 - 1, 9.3e18, 1e300)
SCALARS = (*TEXTS, *NUMBERS, True, False)
VECTOR = [1.0, 0.0]
scalars = st.sampled_from(SCALARS)
lists = st.one_of(
    *(st.lists(st.sampled_from(kind), min_size=1, max_size=3) for kind in (TEXTS, (0, 1, 2), (0.5, 1.0), (True, False)))
)
metadatas = st.lists(st.dictionaries(st.sampled_from(KEYS[:5]), scalars | lists, max_size=4), min_size=2, max_size=12)


def comparison(op: str) -> st.SearchStrategy[Any]:
    if op in ("$in", "$nin"):
        return st.lists(scalars, max_size=4)
    ordered = op in ("$gt", "$gte", "$lt", "$lte")
    return st.sampled_from([one for one in SCALARS if not (ordered and isinstance(one, bool))])


leaves = st.sampled_from(KEYS).flatmap(
    lambda key: st.sampled_from(COMPARISONS).flatmap(lambda op: comparison(op).map(lambda value: {key: {op: value}}))
)
conditions = st.recursive(
    leaves,
    lambda parts: st.tuples(st.sampled_from(("$and", "$or")), st.lists(parts, min_size=1, max_size=3)).map(
        lambda joined: {joined[0]: joined[1]}
    ),
    max_leaves=4,
)


@pytest.fixture(scope="module")
def store(quick_folder: Path) -> Iterator[LocalStore]:
    with closing(LocalStore(quick_folder / "local")) as store:
        yield store


def fill(store: LocalStore, metadatas: list[dict[str, Any]], sources: int = 1) -> None:
    """The chunks are dealt out to so many sources, each in its own collection, and to none."""
    store.clear_collection()
    names = [("c0", "f.md"), ("c1", "g\0.md"), ("a", "f.md")][:sources]
    for number, (collection, source_file) in enumerate(names):
        name = {"collection": collection, "source_file": source_file, "source_hash": "h"}
        chunks = [
            EmbeddedChunk(f"text {index}", metadata | name | {"chunk_index": index}, VECTOR)
            for index, metadata in enumerate(metadatas[number :: sources + 1])
        ]
        store.replace_source(collection, source_file, chunks)
    loose = metadatas[sources :: sources + 1]
    store.add_documents(
        [EmbeddedChunk(f"loose {i}", m, VECTOR) for i, m in enumerate(loose)], ids=[f"{i}" for i in range(len(loose))]
    )


def assert_as_matches(store: LocalStore, where: dict[str, Any]) -> None:
    condition = normalise(where)
    expected = {document.id for document in store.scan() if matches(condition, document.metadata)}
    assert {document.id for document in store.scan(where)} == expected
    assert store.count(where) == len(expected)
    assert {document.id for document in store.search(VECTOR, 100, where=where)} == expected


@settings(max_examples=60, deadline=None)
@given(metadatas=metadatas, conditions=st.lists(conditions, min_size=6, max_size=6), sources=st.integers(0, 3))
@example([{"tags": ["a\0b"], "section": "a"}, {"tags": ["b"]}], [{"tags": {"$contains": "a"}}], 1)
@example([{"tags": '["a"'}, {"tags": ["b"]}], [{"tags": {"$contains": "a"}}], 1)
@example([{"tags": ['a"']}, {"tags": ["b"]}], [{"tags": {"$contains": ""}}], 1)
@example([{"page": "1"}, {"page": 1}, {"page": True}, {}], [{"page": {"$lt": "2"}}, {"page": {"$ne": 1}}], 1)
@example([{"page": 2**53 + 1}, {"page": 2}], [{"page": {"$eq": float(2**53)}}, {"page": {"$in": [float(2**53)]}}], 1)
@example([{}, {}], [{"collection": {"$ne": 3}}, {"collection": {"$nin": ["c0", 1]}}, {"source_file": "g"}], 2)
@example([{}, {}], [{"chunk_index": {"$gte": 0}}, {"$or": [{"collection": "c0"}, {"chunk_index": 1}]}], 1)
def test_every_condition_means_what_matches_says(
    store: LocalStore, metadatas: list[dict[str, Any]], conditions: list[dict[str, Any]], sources: int
) -> None:
    fill(store, metadatas, sources)
    for where in conditions:
        assert_as_matches(store, where)
        assert_as_matches(store, {"$and": [{"collection": "c0"}, where]})
        assert_as_matches(store, {"$or": [{"source_file": {"$ne": "f.md"}}, where]})


MANY = [str(index) for index in range(40_000)]


@pytest.mark.parametrize("where", [
    {"$or": [{"page": index} for index in range(2_000)]}, {"$and": [{"page": {"$ne": i}} for i in range(5, 2_000)]},
    {"page": {"$in": list(range(40_000))}}, {"section": {"$nin": MANY}}, {"tags": {"$in": MANY}},
    {"$or": [{"odd": {"$in": []}} for _ in range(1_300)]}, {"collection": {"$in": [*MANY, "c1"]}},
    {"source_file": {"$in": [*MANY, "g\0.md"]}}, {"source_file": {"$nin": [*MANY, "g\0.md"]}},
    {"$or": [{"collection": f"c{index}"} for index in range(500)]},
], ids=range(10))  # fmt: skip
def test_a_condition_with_too_many_values_for_sql_is_answered(store: LocalStore, where: dict[str, Any]) -> None:
    fill(store, [{"page": page, "section": str(page), "tags": str(page % 3)} for page in range(8)], 2)
    assert_as_matches(store, where)


def test_a_source_whose_chunks_no_longer_share_their_metadata_is_matched_chunk_by_chunk(store: LocalStore) -> None:
    """Chunks that are added later may differ in what the others have in common."""
    fill(store, [{"page": 1, "tags": ["x"]}] * 6, 1)
    name = {"collection": "c0", "source_file": "f.md", "source_hash": "h"}
    for index, own in enumerate(({"page": 2}, {"tags": ["x"], "page": 1}, {"section": "s"})):
        store.add_documents([EmbeddedChunk(f"added {index}", own | name | {"chunk_index": 10 + index}, VECTOR)])
        for where in ({"page": 1}, {"page": {"$ne": 1}}, {"tags": {"$contains": "x"}}, {"section": "s"}, {"page": 2}):
            assert_as_matches(store, where)
