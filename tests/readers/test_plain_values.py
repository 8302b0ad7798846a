"""A value that equals a plain one is that one: in conditions, which may limit access, and in metadata."""

from __future__ import annotations

from enum import Enum, IntEnum, StrEnum
from typing import Any

import numpy as np
import pytest

from ragistry.stores.chunk_checks import check_chunks
from ragistry.utils.metadata import plain, stored_metadata
from ragistry.utils.where import matches, normalise


class Name(StrEnum):
    A = "a"


class Mixed(str, Enum):  # noqa: UP042  # formatted, it is another text than a StrEnum's
    A = "a"


class Number(IntEnum):
    ONE = 1


class Half(float):
    pass


VALUES: list[tuple[Any, Any]] = [
    (Name.A, "a"), (Mixed.A, "a"), (np.str_("a"), "a"),
    (Number.ONE, 1), (np.int64(1), 1), (np.uint8(1), 1), (np.array(1), 1),
    (Half(0.5), 0.5), (np.float64(0.5), 0.5), (np.float32(0.5), 0.5), (np.bool_(True), True), (True, True),
]  # fmt: skip


@pytest.mark.parametrize(("value", "same"), VALUES, ids=lambda value: f"{type(value).__name__}")
def test_a_condition_means_the_plain_value(value: Any, same: Any) -> None:
    """On `$ne` and `$nin` another type would let everything through."""
    assert type(plain(value)) is type(same)
    for condition in (value, {"$eq": value}, {"$in": [value]}):
        assert matches(normalise({"key": condition}), {"key": same})
    for condition in ({"$ne": value}, {"$nin": [value]}):
        assert not matches(normalise({"key": condition}), {"key": same})
    assert matches(normalise({"key": {"$contains": value}}), {"key": [same]})
    [normal] = normalise({"key": value})["key"].values()
    assert type(normal) is type(same)


@pytest.mark.parametrize(("value", "same"), VALUES, ids=lambda value: f"{type(value).__name__}")
def test_metadata_hold_the_plain_value(value: Any, same: Any) -> None:
    kept, problems = stored_metadata({"key": value, "list": [value, same]})
    assert (kept, problems) == ({"key": same, "list": [same, same]}, [])
    assert [type(item) for item in (kept["key"], *kept["list"])] == [type(same)] * 3


def test_a_key_and_an_operator_may_be_members_too() -> None:
    class Word(StrEnum):
        KEY = "key"
        NE = "$ne"
        AND = "$and"

    normal = normalise({Word.AND: [{Word.KEY: {Word.NE: 1}}, {"other": 2}]})
    assert normal == {"$and": [{"key": {"$ne": 1}}, {"other": {"$eq": 2}}]}
    assert {type(key) for part in normal["$and"] for key in part} == {str}


def test_the_id_of_a_chunk_follows_from_the_plain_names() -> None:
    def ids(collection: str) -> list[str]:
        metadata = {"collection": collection, "source_file": "f.md", "chunk_index": 0, "source_hash": "h"}
        return check_chunks([("text", metadata, [1.0])]).ids  # type: ignore[list-item]

    assert ids(Mixed.A) == ids(Name.A) == ids("a")
