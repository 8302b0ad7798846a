"""What is asked for is checked at the call: the value and a remedy, on one line."""

from __future__ import annotations

import pytest

from ragistry.errors import InvalidLimitError, QueryError
from ragistry.utils.limits import check_batch, check_ids, check_query, check_top_k
from tests.messages import refused


def test_half_a_character_in_a_query_is_refused_with_the_query_and_its_place():
    assert check_query("tea 🙂") == "tea 🙂"
    with refused(QueryError):
        check_query("tea \ud83d")


@pytest.mark.parametrize(
    "ids", [["a", "b"], ("a", "b"), (letter for letter in "ab")], ids=["list", "tuple", "generator"]
)
def test_any_list_of_ids_will_do(ids):
    assert check_ids(ids) == ["a", "b"]


@pytest.mark.parametrize("ids", [None, 3, [["a"]], [{}], "ab", b"ab", {"a": 1}], ids=repr)
def test_what_is_no_list_of_ids_is_refused(ids):
    with refused(QueryError):
        check_ids(ids)


@pytest.mark.parametrize("value", [0, -1, 1.5, "x", None, True, 10**5_000], ids=lambda value: f"{type(value)}")
def test_what_is_no_number_of_chunks_is_refused(value):
    if value != 10**5_000:
        with refused(InvalidLimitError):
            check_batch(value)
    with refused(InvalidLimitError):
        check_top_k(value)
