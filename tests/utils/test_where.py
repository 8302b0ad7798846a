"""One normal form and one meaning of conditions, before any store."""

from __future__ import annotations

import pytest

from ragistry.errors import InvalidFilterError, QueryError
from ragistry.testing.stores.conditions import CONDITIONS, NO_CONDITIONS, STORED
from ragistry.utils.where import MAX_DEPTH, matches, normalise
from tests.messages import refused


@pytest.mark.parametrize(
    ("where", "normal"),
    [
        ({"page": 3}, {"page": {"$eq": 3}}),
        ({"page": {"$gte": 3}}, {"page": {"$gte": 3}}),
        ({"page": 3, "tag": "a"}, {"$and": [{"page": {"$eq": 3}}, {"tag": {"$eq": "a"}}]}),
        ({"page": {"$gt": 1, "$lt": 9}}, {"$and": [{"page": {"$gt": 1}}, {"page": {"$lt": 9}}]}),
        ({"$and": [{"page": 3}]}, {"page": {"$eq": 3}}),
        ({"$or": [{"a": 1}, {"b": "x"}]}, {"$or": [{"a": {"$eq": 1}}, {"b": {"$eq": "x"}}]}),
        ({"$and": [{"a": 1}], "b": 2}, {"$and": [{"a": {"$eq": 1}}, {"b": {"$eq": 2}}]}),
        ({"page": {"$in": (1, 2)}}, {"page": {"$in": [1, 2]}}),
        ({"page": {"$nin": []}}, {"page": {"$nin": []}}),
    ],
)  # fmt: skip
def test_a_condition_has_one_normal_form(where, normal):
    assert normalise(where) == normal
    assert normalise(normal) == normal


def test_normalising_changes_nothing_of_the_callers():
    where = {"page": {"$in": [1, 2]}, "$and": [{"a": 1}]}
    normalise(where)["$and"][0]["page"]["$in"].append(3)
    assert where == {"page": {"$in": [1, 2]}, "$and": [{"a": 1}]}


@pytest.mark.parametrize(("where", "expected"), CONDITIONS, ids=lambda value: f"{value!r:.40}")
def test_a_condition_has_one_meaning(where, expected):
    condition = normalise(where)
    assert [str(i) for i, row in enumerate(STORED) if matches(condition, row)] == expected.split()


@pytest.mark.parametrize(
    "where",
    [*NO_CONDITIONS, {"page": 10**5000}, {"page": b"a"}, {"$gt": 3}],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_condition_is_refused(where):
    with refused(InvalidFilterError) as caught:
        normalise(where)
    assert isinstance(caught.value, QueryError)
    assert "\n" not in str(caught.value)


def nested(levels: int) -> dict:
    where = {"page": 1}
    for _ in range(levels - 1):
        where = {"$and": [where, {"page": 1}]}
    return where


def test_depth_has_a_limit():
    assert matches(normalise(nested(MAX_DEPTH)), {"page": 1})
    for levels in (MAX_DEPTH + 1, 5_000):
        with refused(InvalidFilterError):
            normalise(nested(levels))


def test_a_tuple_is_a_list_too():
    assert matches(normalise({"tags": {"$contains": "a"}}), {"tags": ("a", "b")})
