"""Whatever a model passes is answered with one line that says what to mend."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry import Workspace
from ragistry.errors import QueryError
from ragistry.tools.arguments import SearchArguments, parse_arguments
from ragistry.tools.search_library import SearchLibraryTool

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
CALLS = JSON | st.fixed_dictionaries({}, optional={"query": JSON, "collection": JSON, "cursor": JSON, "top_k": JSON})


@pytest.mark.parametrize(
    "given",
    [
        {"query": "tea", "collection": None, "cursor": None},
        {"query": "tea", "collection": "", "cursor": ""},
        '{"query": "tea"}',
        b'{"query": "tea"}',
    ],
)
def test_a_mapping_or_its_json_is_understood(given: Any) -> None:
    assert parse_arguments(given, []) == SearchArguments("tea")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("{", "the arguments are not JSON: '{'"),
        ("[" * 100_000, "the arguments are not JSON"),
        ("[]", r"the arguments must be an object, got \[\]"),
        (None, "the arguments must be an object, got None"),
        ({}, "the query is empty: ''; give at least one word"),
        ({"query": " \n"}, "the query is empty"),
        ({"query": 3}, "query must be text, got 3"),
        ({"query": ["tea"]}, r"query must be text, got \['tea'\]"),
        ({"query": "x" * 10_001}, "the query has 10,001 characters"),
        ({"query": "\ud800"}, "query has half of a character"),
        ({"qeury": "x"}, "unknown argument 'qeury'; did you mean 'query'"),
        ({"query": "x", "collection": 1}, "collection must be text, got 1"),
        ({"query": "x", "collection": "te"}, "no collection 'te'; did you mean 'tea'"),
        ({"query": "x", "cursor": "next"}, "'next' is not a cursor"),
        ({"query": "x", "cursor": "1.0.0123456789abcdeg"}, "is not a cursor"),
    ],
)
def test_anything_else_is_refused(given: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        parse_arguments(given, ["tea"])


@settings(max_examples=80, deadline=None)
@given(CALLS, st.booleans())
def test_no_call_raises_and_every_complaint_is_one_line(shelves: Workspace, call: Any, as_json: bool) -> None:
    tool = SearchLibraryTool(shelves.library, technique="bm25")
    answer = tool.answer(json.dumps(call) if as_json else call)
    if answer.error:
        assert answer.text.startswith("Error: ")
        assert len(answer.text.splitlines()) == 1
        assert len(answer.text) < 700
        assert "the owner's log" not in answer.text, "it is the arguments that were wrong, not the library"
    else:
        assert answer.text.startswith("[Knowledge base results for ")
