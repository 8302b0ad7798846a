"""Conditions on a `LocalStore`, answered by columns, by text, by reading: always what `matches` says of each chunk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragistry.stores.local import LocalStore
from ragistry.stores.narrowing import EVERY, LONGEST, narrowed
from ragistry.types import EmbeddedChunk
from ragistry.utils.where import COMPARISONS, matches, normalise

KEYS = ("page", "section", "has_code", "tags", "odd.key\"'")
TEXTS = (
    "",
    "a",
    "b",
    "a\0b",
    'a"',
    '"a"',
    '["a"',
    ',"a"',
    "a\\",
    "\\",
    ",",
    "]",
    "ä",
    "ÿ",
    "\U0001d51e",
    "\uffff",
    "1",
    "true",
    "tags",
)
NUMBERS = (0, 1, 2, 10, -1, 1.0, 0.5, -0.0, 2**53 + 1, float(2**53), -(2**63), 2**63 - 1, 9.3e18, 1e300)
SCALARS = (*TEXTS, *NUMBERS, True, False)
scalars = st.sampled_from(SCALARS)
lists = st.one_of(
    *(st.lists(st.sampled_from(kind), min_size=1, max_size=3) for kind in (TEXTS, (0, 1, 2), (0.5, 1.0), (True, False)))
)
metadatas = st.lists(
    st.dictionaries(st.sampled_from(KEYS), scalars | lists, max_size=4), min_size=2, max_size=12
)  # fmt: skip


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
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStore]:
    with closing(LocalStore(tmp_path_factory.mktemp("where") / "local")) as store:
        yield store


def fill(store: LocalStore, metadatas: list[dict[str, Any]], sources: int = 1) -> None:
    """So many sources, each in a collection of its own, the chunks dealt out in turn."""
    store.clear_collection()
    for source in range(sources):
        name = {"collection": f"c{source}", "source_file": "a.md", "source_hash": "h"}
        chunks = [
            EmbeddedChunk(f"text {index}", metadata | name | {"chunk_index": index}, [1.0, float(index)])
            for index, metadata in enumerate(metadatas[source::sources])
        ]
        if chunks:
            store.replace_source(f"c{source}", "a.md", chunks)


def assert_as_matches(store: LocalStore, where: dict[str, Any]) -> None:
    condition = normalise(where)
    expected = {document.id for document in store.scan() if matches(condition, document.metadata)}
    assert {document.id for document in store.scan(where)} == expected
    assert store.count(where) == len(expected)


@settings(max_examples=60, deadline=None)
@given(metadatas=metadatas, conditions=st.lists(conditions, min_size=6, max_size=6), sources=st.integers(1, 3))
@example([{"tags": ["a\0b"], "section": "a"}, {"tags": ["b"]}], [{"tags": {"$contains": "a"}}], 1)
@example([{"tags": '["a"'}, {"tags": ["b"]}], [{"tags": {"$contains": "a"}}], 1)
@example([{"tags": ['a"']}, {"tags": ["b"]}], [{"tags": {"$contains": ""}}], 1)
@example(
    [{"page": "1"}, {"page": 1}, {"page": True}, {"page": [1]}, {}], [{"page": {"$lt": "2"}}, {"page": {"$ne": 1}}], 1
)
@example([{"page": 2**53 + 1}, {"page": 2}], [{"page": {"$eq": float(2**53)}}, {"page": {"$in": [float(2**53)]}}], 1)
def test_every_condition_means_what_matches_says(
    store: LocalStore, metadatas: list[dict[str, Any]], conditions: list[dict[str, Any]], sources: int
) -> None:
    fill(store, metadatas, sources)
    for where in conditions:
        assert_as_matches(store, where)
        assert_as_matches(store, {"$and": [{"collection": "c0"}, where]})


@pytest.mark.parametrize("where", [
    {"$or": [{"page": index} for index in range(2_000)]},
    {"$and": [{"page": {"$ne": index}} for index in range(5, 2_000)]},
    {"page": {"$in": list(range(40_000))}},
    {"section": {"$nin": [str(index) for index in range(40_000)]}},
    {"tags": {"$in": [str(index) for index in range(40_000)]}},
    {"$and": [{"odd": {"$ne": index}} for index in range(1_300)]},
    {"$or": [{"odd": {"$in": []}} for index in range(1_300)]},
], ids=["or", "and", "in", "nin", "text", "nothing ruled out", "nothing left"])  # fmt: skip
def test_a_condition_that_is_too_long_for_sqlite_is_answered_too(store: LocalStore, where: dict[str, Any]) -> None:
    fill(store, [{"page": page, "section": str(page), "tags": str(page % 3)} for page in range(4)])
    assert_as_matches(store, where)


def test_comparisons_of_columns_read_no_metadata(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(
        store,
        [
            {"page": index, "section": f"s{index}", "has_code": index % 2 == 0, "tags": ["x", f"t{index}"]}
            for index in range(9)
        ],
    )
    read: list[Any] = []
    monkeypatch.setattr("ragistry.stores.selecting.check_chunk", lambda *row: read.append(row))
    for where, count in (
        ({"page": {"$gt": 6}}, 2), ({"page": {"$lte": 6}}, 7), ({"page": {"$ne": 5}}, 8),
        ({"page": {"$in": [5, 6]}}, 2), ({"page": {"$nin": [5, 6]}}, 7), ({"section": {"$gte": "s7"}}, 2),
        ({"has_code": {"$ne": True}}, 4), ({"tags": {"$contains": "t3"}}, 1), ({"tags": {"$not_contains": "t3"}}, 8),
        ({"$and": [{"page": {"$gt": 2}}, {"has_code": True}]}, 3), ({"$or": [{"page": 2}, {"section": "s1"}]}, 2),
    ):  # fmt: skip
        assert store.count(where) == count, where
    assert read == []


def test_what_text_rules_out_is_not_read(store: LocalStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fill(store, [{"tags": ["x", f"t{index}"], "place": f"p{index}"} for index in range(9)])
    read: list[Any] = []
    monkeypatch.setattr("ragistry.stores.selecting.check_chunk", lambda *row: read.append(row))
    assert store.count({"tags": {"$contains": "t3"}}) == 1
    assert store.count({"place": {"$in": ["p3", "p4"]}}) == 2
    assert len(read) <= 3


@pytest.mark.parametrize(("where", "index"), [
    ({"page": 5}, "page"), ({"section": {"$in": ["a", "b"]}}, "section"), ({"page": {"$gt": 5, "$lte": 9}}, "page"),
    ({"has_code": True}, "code"), ({"section": {"$gte": "a"}}, "section"), ({"page": {"$lt": "x"}}, "page"),
])  # fmt: skip
def test_an_index_alone_answers_comparisons_of_a_column(store: LocalStore, where: dict[str, Any], index: str) -> None:
    found = narrowed(normalise(where))
    with store._state.read() as (connection, _):
        plan = connection.execute(f"EXPLAIN QUERY PLAN SELECT key FROM chunks WHERE {found.sql}", found.values)
        [(*_, step)] = plan.fetchall()
    assert found.column
    assert step.startswith(f"SEARCH chunks USING COVERING INDEX chunks_by_{index} (")


def test_sql_is_never_longer_than_sqlite_takes() -> None:
    assert narrowed(normalise({"page": {"$in": list(range(LONGEST))}})) == EVERY
    assert narrowed(normalise({"page": {"$in": [1, True]}})) == EVERY
    assert narrowed(normalise({"page": {"$in": [1, "a"]}})).exact
