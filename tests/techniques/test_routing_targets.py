"""What a query may be routed to, and what a caller's condition leaves of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.errors import ConfigError
from ragistry.techniques.routing.searching import within
from ragistry.techniques.routing.target import Target, reachable, residual
from ragistry.utils.where import matches, normalise

VALUES = st.sampled_from(["a", "b", "c"])
LEAVES = st.one_of(
    st.builds(lambda key, value: {key: value}, st.sampled_from(["collection", "page", "tag"]), VALUES),
    st.builds(lambda key, value: {key: {"$ne": value}}, st.sampled_from(["collection", "page"]), VALUES),
    st.builds(lambda values: {"collection": {"$in": values}}, st.lists(VALUES, min_size=1)),
)
CONDITIONS = st.recursive(
    LEAVES,
    lambda inner: st.builds(
        lambda join, parts: {join: parts}, st.sampled_from(["$and", "$or"]), st.lists(inner, min_size=1, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(CONDITIONS, VALUES, VALUES, VALUES)
def test_what_is_left_of_a_condition_means_the_same(
    where: dict[str, Any], collection: str, page: str, tag: str
) -> None:
    condition, facts = normalise(where), {"collection": collection}
    rest = residual(condition, facts)
    metadata = {"page": page, "tag": tag}
    expected = matches(condition, metadata | facts)
    assert (rest if isinstance(rest, bool) else matches(rest, metadata)) == expected


def names(where: dict[str, Any] | None) -> list[str]:
    targets = [Target("a"), Target("b", kind="repository"), Target("c", kind="archive")]
    return [item.target.name for item in reachable(targets, None if where is None else normalise(where))]


@pytest.mark.parametrize(
    ("where", "left"),
    [
        (None, ["a", "b", "c"]),
        ({"collection": "b"}, ["b"]),
        ({"collection": {"$in": ["a", "c", "x"]}}, ["a", "c"]),
        ({"collection": {"$nin": ["a"]}}, ["b", "c"]),
        ({"archive": "b"}, ["a", "b"]),  # what a chunk of another target says is for its search to decide
        ({"$and": [{"page": 3}, {"collection": "a"}]}, ["a"]),
        ({"$or": [{"page": 3}, {"collection": "a"}]}, ["a", "b", "c"]),
        ({"collection": "x"}, []),
    ],
)
def test_a_condition_limits_the_targets(where: dict[str, Any] | None, left: list[str]) -> None:
    assert names(where) == left


def test_two_targets_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="two targets are called 'a'"):
        reachable([Target("a"), Target("a", kind="archive")], None)


def test_a_target_that_shares_a_store_is_never_more_than_its_collection() -> None:
    shared = [Target("a"), Target("b", where={"page": 3})]
    items = reachable(shared, None)
    assert within(items[:1], None) == normalise({"collection": "a"})
    assert within(reachable([Target("a"), Target("c")], None), None) == normalise({"collection": {"$in": ["a", "c"]}})
    both = within(items, normalise({"tag": "x"}))
    assert matches(both, {"tag": "x", "collection": "b", "page": 3})
    for outside in ({"collection": "a"}, {"tag": "x", "collection": "b", "page": 4}, {"tag": "x", "collection": "c"}):
        assert not matches(both, outside)
