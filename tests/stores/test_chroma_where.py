"""ChromaDB finds what our conditions mean, whatever the numbers."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragistry.stores.chroma import ChromaStore
from ragistry.stores.chroma_where import Native, native
from ragistry.types import EmbeddedChunk
from ragistry.utils.where import COMPARISONS, matches, normalise

NUMBERS: tuple[Any, ...] = (
    0, 1, 2, -1, -2, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 5e-324,
    2**53, 2**53 + 1, float(2**53), float(2**53 + 2), 2**63 - 1, -(2**63), float(2**63), -float(2**63), 1e300, -1e300,
)  # fmt: skip
SCALARS: tuple[Any, ...] = (*NUMBERS, True, False, "", "a", "b", "1", "ä", "日本")
ROWS: tuple[dict[str, Any], ...] = (
    {},
    *({"v": value} for value in SCALARS),
    *({"v": [value]} for value in SCALARS),
    {"v": [1, 2, 3]},
    {"v": ["a", "b"]},
    {"w": 1},
    {"v": 1, "w": 1},
)

values = (
    st.sampled_from(SCALARS)
    | st.integers(-3, 3)
    | st.integers(-200, 200).map(lambda n: n / 64)
    | st.text(max_size=2).filter(str.isalnum)
)
numbers_or_text = values.filter(lambda value: not isinstance(value, bool))


@st.composite
def comparisons(draw: st.DrawFn) -> dict[str, Any]:
    op = draw(st.sampled_from(COMPARISONS))
    operand = draw(st.lists(values, max_size=4) if op in ("$in", "$nin") else numbers_or_text)
    return {draw(st.sampled_from("vw")): {op: operand}}


conditions = st.recursive(
    comparisons(),
    lambda parts: st.builds(
        lambda op, some: {op: some}, st.sampled_from(("$and", "$or")), st.lists(parts, min_size=1, max_size=3)
    ),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with closing(ChromaStore(tmp_path_factory.mktemp("where") / "chroma")) as store:
        store.add_documents(
            [EmbeddedChunk(f"text {i}", row, [1.0, i]) for i, row in enumerate(ROWS)],
            ids=list(map(str, range(len(ROWS)))),
        )
        yield store


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=conditions)
def test_what_is_found_is_what_is_meant(store, where):
    condition = normalise(where)
    expected = [i for i, row in enumerate(ROWS) if matches(condition, row)]
    assert sorted(int(document.id) for document in store.scan(where)) == expected


@pytest.mark.parametrize("op", ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$contains", "$not_contains"])
def test_every_number_is_compared_with_every_other(store, op):
    for number in NUMBERS:
        where = {"v": {op: number}}
        expected = [i for i, row in enumerate(ROWS) if matches(normalise(where), row)]
        assert sorted(int(document.id) for document in store.scan(where)) == expected, where


@pytest.mark.parametrize(
    ("where", "translation"),
    [
        ({"page": 3}, Native({"page": {"$eq": 3}}, True)),
        ({"page": {"$in": [3, "iv"]}}, Native({"$or": [{"page": {"$eq": 3}}, {"page": {"$eq": "iv"}}]}, True)),
        ({"size": 1.5}, Native({"$and": [{"size": {"$eq": 1.5}}, {"size": {"$ne": 1}}]}, True)),
        ({"page": {"$gt": 3}}, Native({"page": {"$gt": 3}}, True)),
        ({"page": {"$in": []}}, Native(False, True)),
        ({"page": {"$nin": []}}, Native(True, True)),
        ({"day": {"$gt": "2024"}}, Native(True, False)),
        ({"page": 3, "day": {"$gt": "2024"}}, Native({"page": {"$eq": 3}}, False)),
        ({"page": 3, "line": {"$in": []}}, Native(False, True)),
        ({"$or": [{"page": 3}, {"line": {"$nin": []}}]}, Native(True, True)),
        ({"page": {"$in": list(range(10_000))}}, Native(True, False)),
    ],
    ids=lambda value: f"{value!r:.50}",
)
def test_a_condition_is_said_to_chromadb_as_far_as_it_understands(where, translation):
    assert native(normalise(where)) == translation
