"""The rule for metadata of one's own: values, dates, reserved names, and the words of a command line."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest

from ragistry.errors import InvalidMetadataError
from ragistry.utils.metadata import (
    INTERNAL,
    accepted_metadata,
    checked_metadata,
    date_text,
    parse_assignments,
    parse_value,
    shown_metadata,
)
from tests.messages import refused


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("text", "text"),
        (np.int64(3), 3),
        (True, True),
        ((1, 2), [1, 2]),
        ([1, 2.5], [1.0, 2.5]),
        (date(2026, 5, 1), "2026-05-01"),
        (datetime(2026, 5, 1, 10), "2026-05-01T10:00:00Z"),
        ([date(2026, 5, 1), "2026-05-01T10:00+02:00"], ["2026-05-01", "2026-05-01T08:00:00Z"]),
        (None, None),
        ([], None),
    ],
)
def test_values_are_stored_under_one_rule(given: Any, stored: Any) -> None:
    assert repr(checked_metadata({"key": given})) == repr({"key": stored})


@pytest.mark.parametrize(
    "metadata",
    [
        {"chunk_index": 1, "collection": "other"},
        {"$key": 1},
        {"ragistry:key": 1},
        {"": 1},
        {" \t": 1},
        {3: "x"},
        {"k" * 257: 1},
        {"a": {"b": 1}},
        {"a": [[1]]},
        {"a": float("nan")},
        {"a": [1.0, float("inf")]},
        {"a": [1, "x"]},
        {"a": [True, 1]},
        {"a": [None]},
        {"a": 2**63},
        {"a": "x" * 2_001},
        {"a": list(range(201))},
        {"a": "\ud800"},
        {"a": {1, 2}},
        {"a": b"x"},
        {"a": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2)))},
        {"a": datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-2)))},
        {f"key{number}": number for number in range(101)},
        [("a", 1)],
        None,
    ],
    ids=lambda metadata: ascii(metadata)[:20],
)
def test_other_metadata_are_refused(metadata: Any) -> None:
    with pytest.raises(InvalidMetadataError):
        checked_metadata(metadata)


def test_every_problem_is_named_without_other_reserved_names() -> None:
    with refused(InvalidMetadataError, "'source'", "'$x'", "'nested'") as caught:
        checked_metadata({"source": 1, "$x": 1, "nested": {"a": 1}})
    assert INTERNAL.isdisjoint(re.findall(r"\w+", str(caught.value)))
    assert accepted_metadata({"a": 1, "b": {}, "c": None})[0] == {"a": 1}


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("2026-05-01", "2026-05-01"),
        ("2026-05-01T10:00", "2026-05-01T10:00:00Z"),
        ("2026-05-01 10:00:59.999Z", "2026-05-01T10:00:59Z"),
        ("2026-05-01t10:00:00z", "2026-05-01T10:00:00Z"),
        ("2026-05-01T10:00:00-0530", "2026-05-01T15:30:00Z"),
        ("2026-05-01 10:00:00 -0530", "2026-05-01T15:30:00Z"),
        ("2026-05-01 10:00 Z", "2026-05-01T10:00:00Z"),
        ("2026-05-01 10:00  +02", ""),
        ("2026-05-01 10:00 +", ""),
        ("0000-01-01", ""),
        ("0001-01-01T00:00:00+02:00", ""),
        ("2026-02-30", ""),
        ("2026-13-01T00:00", ""),
        ("2026-05-01T24:30", ""),
        ("2026-05-01T10:00:00+25:00", ""),
        ("20260501", ""),
        ("2026-05", ""),
        ("on 2026-05-01", ""),
        ("٢٠٢٦-05-01", ""),
    ],
)
def test_dates_are_stored_in_utc(text: str, stored: str) -> None:
    assert date_text(text) == stored
    assert checked_metadata({"key": text}) == {"key": stored or text}


def test_order_of_texts_is_the_order_of_times() -> None:
    start = datetime(2026, 3, 29, tzinfo=UTC)
    moments = [(start + timedelta(minutes=17 * n)).astimezone(timezone(timedelta(hours=n % 9 - 4))) for n in range(200)]
    assert sorted(map(date_text, moments)) == list(map(date_text, moments))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7), ("-12", -12), ("007", "007"), ("9" * 30, "9" * 30), ("1.50", 1.5), ("-0.5", -0.5), ("1e5", "1e5"),
        ("1,5", "1,5"), ("1.2.3", "1.2.3"), ("true", True), ("False", False), ("yes", "yes"), ("null", "null"),
        ("nan", "nan"), ("2026-05-01", "2026-05-01"), ("2026-05-01T10:00+02:00", "2026-05-01T08:00:00Z"),
        ("2026-13-45", "2026-13-45"), ("", ""), (" 7", " 7"), ("٣", "٣"), ("1.0e400", "1.0e400"),
    ],
)  # fmt: skip
def test_values_of_a_command_line_are_recognised(text: str, value: Any) -> None:
    assert repr(parse_value(text)) == repr(value)


def test_assignments_are_parsed() -> None:
    words = ["a=1", "b=x=y", 'tags:=["a", "b"]', "gone:=null", 'text:="7"', "empty="]
    parsed = {"a": 1, "b": "x=y", "tags": ["a", "b"], "gone": None, "text": "7", "empty": ""}
    assert parse_assignments(words) == parsed
    assert shown_metadata({"tags": ["a", "b"], "draft": True, "year": 2026}) == "tags: a; b, draft: true, year: 2026"
    for wrong in (
        ["a"],
        ["=1"],
        [":=1"],
        ["a:={"],
        ["a:=NaN"],
        ["a=1", "a=2"],
        ["page=3"],
        ["a:=" + "[" * 100_000],
        ["a:=" + "[" * 800 + "]" * 800],
    ):
        with pytest.raises(InvalidMetadataError):
            parse_assignments(wrong)
