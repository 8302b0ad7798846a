"""ChromaDB finds what our conditions mean, whatever the numbers."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragistry.stores.chroma import ChromaStore
from ragistry.stores.chroma.where import native
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
    {"v": [1, 2, 3]}, {"v": ["a", "b"]}, {"w": 1}, {"v": 1, "w": 1},
)  # fmt: skip

values = (
    st.sampled_from(SCALARS)
    | st.integers(-3, 3)
    | st.integers(-200, 200).map(lambda n: n / 64)
    | st.text(max_size=2).filter(str.isalnum)
)


@st.composite
def comparisons(draw: st.DrawFn) -> dict[str, Any]:
    op = draw(st.sampled_from(COMPARISONS))
    single = values.filter(lambda value: not isinstance(value, bool))
    operand = draw(st.lists(values, max_size=4) if op in ("$in", "$nin") else single)
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
        chunks = [EmbeddedChunk(f"text {i}", row, [1.0, i]) for i, row in enumerate(ROWS)]
        store.add_documents(chunks, ids=[str(i) for i in range(len(ROWS))])
        yield store


def check(store: ChromaStore, where: dict[str, Any]) -> None:
    expected = [i for i, row in enumerate(ROWS) if matches(normalise(where), row)]
    assert sorted(int(document.id) for document in store.scan(where)) == expected, where


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=conditions)
def test_random_conditions_find_what_they_mean(store, where):
    check(store, where)


@pytest.mark.parametrize("op", ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$contains", "$not_contains"])
def test_every_number_is_compared_with_every_other(store, op):
    for number in NUMBERS:
        check(store, {"v": {op: number}})


def test_a_deep_or_a_wide_condition_is_answered(store):
    deep: dict[str, Any] = {"v": {"$gte": 0}}
    for i in range(31):
        deep = {("$and", "$or")[i % 2]: [deep, {"v": 1}]}
    check(store, deep)
    check(store, {"$or": [{"v": {"$in": [i, i + 0.5, str(i)]}} for i in range(700)]})
    check(store, {"v": {"$in": list(range(20_000))}})


@pytest.mark.parametrize(
    "where",
    [{"page": 3}, {"page": {"$in": [3, "iv"]}}, {"page": {"$gt": 3}}, {"page": {"$in": []}}, {"page": 3, "line": True}],
    ids=repr,
)
def test_common_conditions_are_left_to_chromadb_alone(where):
    assert native(normalise(where)).exact
