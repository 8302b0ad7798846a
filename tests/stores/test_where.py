"""Conditions find what `utils.where.matches` says of each chunk, in every store, whatever the values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ragistry.protocols import LibraryStore
from ragistry.stores.chroma.where import native
from ragistry.stores.local import LocalStore, selecting
from ragistry.types import EmbeddedChunk
from ragistry.utils.where import COMPARISONS, matches, normalise
from tests.conftest import full_run
from tests.stores.local_stores import place_of, store_at

KEYS = ("page", "section", "has_code", "tags", "odd.key\"'", "collection", "source_file", "chunk_index")
TEXTS = (
    "", "a", "b", "a\0b", "\0", "\1", "\0\1", "\1\2", 'a"', '"a"', '["a"', ',"a"', "a\\", "\\", ",", "]", "ä", "ÿ",
    "\U0001d51e", "\uffff", "1", "true", "tags", "c0", "c1", "f.md", "g\0.md",
)  # fmt: skip
NUMBERS: tuple[Any, ...] = (
    0, 1, 2, -1, -2, -0.0, 1.0, 0.5, -0.5, 1.5, -1.5, 5e-324,
    2**53, 2**53 + 1, float(2**53), float(2**53 + 2), 2**63 - 1, -(2**63), float(2**63), -float(2**63), 1e300, -1e300,
)  # fmt: skip
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
    lambda parts: st.builds(
        lambda op, some: {op: some}, st.sampled_from(("$and", "$or")), st.lists(parts, min_size=1, max_size=3)
    ),
    max_leaves=4,
)


@pytest.fixture(scope="module", params=["local", "embedded", "postgres"])
def store(request: pytest.FixtureRequest) -> Iterator[LibraryStore]:
    with closing(store_at(place_of(request.param, request))) as store:
        yield store


@pytest.fixture(scope="module")
def local(module_path: Path) -> Iterator[LocalStore]:
    with closing(LocalStore(module_path / "alone")) as store:
        yield store


def fill(store: LibraryStore, metadatas: list[dict[str, Any]], sources: int = 1) -> None:
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


def assert_as_matches(store: LibraryStore, where: dict[str, Any]) -> None:
    condition = normalise(where)
    expected = {document.id for document in store.scan() if matches(condition, document.metadata)}
    assert {document.id for document in store.scan(where)} == expected, where
    assert store.count(where) == len(expected)
    assert {document.id for document in store.search(VECTOR, 100, where=where)} == expected


@pytest.mark.timeout(600)
@settings(
    max_examples=200 if full_run() else 20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(metadatas=metadatas, conditions=st.lists(conditions, min_size=6, max_size=6), sources=st.integers(0, 3))
@example([{"tags": ["a\0b"], "section": "a"}, {"tags": ["b"]}], [{"tags": {"$contains": "a"}}], 1)
@example([{"tags": ['a"']}, {"tags": ["b"]}], [{"tags": {"$contains": ""}}], 1)
@example([{"page": "1"}, {"page": 1}, {"page": True}, {}], [{"page": {"$lt": "2"}}, {"page": {"$ne": 1}}], 1)
@example([{"page": 2**53 + 1}, {"page": 2}], [{"page": {"$eq": float(2**53)}}, {"page": {"$in": [float(2**53)]}}], 1)
@example([{}, {}], [{"collection": {"$ne": 3}}, {"collection": {"$nin": ["c0", 1]}}, {"source_file": "g"}], 2)
@example([{}, {}], [{"chunk_index": {"$gte": 0}}, {"$or": [{"collection": "c0"}, {"chunk_index": 1}]}], 1)
def test_every_condition_means_what_matches_says(
    store: LibraryStore, metadatas: list[dict[str, Any]], conditions: list[dict[str, Any]], sources: int
) -> None:
    fill(store, metadatas, sources)
    for where in conditions:
        assert_as_matches(store, where)
        assert_as_matches(store, {"$and": [{"collection": "c0"}, where]})
        assert_as_matches(store, {"$or": [{"source_file": {"$ne": "f.md"}}, where]})


@pytest.mark.parametrize("op", ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$contains", "$not_contains"])
def test_every_value_is_compared_with_every_other(store: LibraryStore, op: str) -> None:
    rows = [{}, *({"page": value} for value in SCALARS), *({"page": [value]} for value in SCALARS)]
    fill(store, rows, 0)
    for value in (*NUMBERS, *TEXTS) if full_run() else (*NUMBERS[::2], *TEXTS[3:8]):
        expected = {i for i, row in enumerate(rows) if matches(normalise({"page": {op: value}}), row)}
        assert {int(document.id) for document in store.scan({"page": {op: value}})} == expected, value


def test_deep_or_wide_condition_is_answered(store: LibraryStore) -> None:
    fill(store, [{"page": page, "section": str(page)} for page in range(8)], 2)
    deep: dict[str, Any] = {"page": {"$gte": 0}}
    for i in range(31):
        deep = {("$and", "$or")[i % 2]: [deep, {"page": 1}]}
    assert_as_matches(store, deep)
    assert_as_matches(store, {"$or": [{"page": {"$in": [i, i + 0.5, str(i)]}} for i in range(300)]})
    assert_as_matches(store, {"page": {"$in": list(range(4, 6_000))}})


MANY = [str(index) for index in range(40_000)]
WIDE: tuple[dict[str, Any], ...] = (
    {"$or": [{"page": index} for index in range(2_000)]}, {"$and": [{"page": {"$ne": i}} for i in range(5, 2_000)]},
    {"page": {"$in": list(range(40_000))}}, {"section": {"$nin": MANY}}, {"tags": {"$in": MANY}},
    {"$or": [{"odd": {"$in": []}} for _ in range(1_300)]}, {"collection": {"$in": [*MANY, "c1"]}},
    {"source_file": {"$in": [*MANY, "g\0.md"]}}, {"source_file": {"$nin": [*MANY, "g\0.md"]}},
    {"$or": [{"collection": f"c{index}"} for index in range(500)]},
)  # fmt: skip


def test_condition_with_too_many_values_for_sql_is_answered(local: LocalStore) -> None:
    fill(local, [{"page": page, "section": str(page), "tags": str(page % 3)} for page in range(8)], 2)
    for where in WIDE:
        assert_as_matches(local, where)


def test_source_whose_chunks_no_longer_share_their_metadata_is_matched_chunk_by_chunk(local: LocalStore) -> None:
    """Chunks that are added later may differ in what the others have in common."""
    fill(local, [{"page": 1, "tags": ["x"]}] * 6, 1)
    name = {"collection": "c0", "source_file": "f.md", "source_hash": "h"}
    for index, own in enumerate(({"page": 1, "tags": ["x"]}, {"page": 2}, {"section": "s"})):
        local.add_documents([EmbeddedChunk(f"added {index}", own | name | {"chunk_index": 10 + index}, VECTOR)])
        [info] = local.sources()
        assert (info.chunks, info.source_hash) == (4 + index, "")  # it is not what was ingested
        for where in ({"page": 1}, {"page": {"$ne": 1}}, {"tags": {"$contains": "x"}}, {"section": "s"}, {"page": 2}):
            assert_as_matches(local, where)


def test_a_selection_follows_every_write_of_this_store_and_of_others(local: LocalStore) -> None:
    fill(local, [{"page": number % 5} for number in range(25)], 1)
    with closing(LocalStore(local.folder)) as other:

        def add(*stores: LocalStore) -> None:
            for store in stores:
                store.add_documents([EmbeddedChunk(f"loose {store.count()}", {"page": 1}, VECTOR)])

        for write in (
            partial(add, local), partial(local.delete, ids=["2"]), partial(add, other), partial(add, other, local),
            partial(local.delete, where={"page": 0}), partial(other.delete, where={"source_file": {"$ne": "f.md"}}),
            partial(local.move_source, "f.md", "c0", "c1"), partial(local.replace_source, "c1", "f.md", []),
            partial(add, local, other, local),
        ):  # fmt: skip
            write()
            for where in ({"page": {"$lt": 3}}, {"collection": {"$ne": "c0"}}):
                assert_as_matches(local, where)
                assert len(local.search_text("text loose", 100, where=where)) == local.count(where)


def test_after_a_write_only_the_new_chunks_are_selected(local: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(local, [{"page": number % 5} for number in range(25)], 0)
    where, firsts, select = {"page": {"$lt": 3}}, [], selecting.selected_keys
    assert len(local.search(VECTOR, 50, where=where)) == 15
    monkeypatch.setattr(
        selecting, "selected_keys", lambda at, where, first=0: firsts.append(first) or select(at, where, first=first)
    )
    local.add_documents([EmbeddedChunk("new", {"page": 1}, VECTOR)])
    assert len(local.search(VECTOR, 50, where=where)) == len(local.search_text("loose new", 50, where=where)) == 16
    assert len(firsts) == 1
    assert firsts[0] > 1, "the chunks before the write are known"


def test_common_conditions_are_left_to_chromadb_alone() -> None:
    for where in ({"page": 3}, {"page": {"$in": [3, "iv"]}}, {"page": {"$gt": 3}}, {"page": 3, "line": 1}):
        assert native(normalise(where)).exact, where
