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
from tests.conftest import full_run
from tests.messages import refused

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
CALLS = JSON | st.fixed_dictionaries({}, optional={"query": JSON, "collection": JSON, "cursor": JSON, "top_k": JSON})


def test_a_mapping_or_its_json_is_understood() -> None:
    for more in ({}, {"collection": None, "cursor": None}, {"collection": "", "cursor": ""}):
        call = {"query": "tea"} | more
        for form in (call, json.dumps(call), json.dumps(call).encode()):
            assert parse_arguments(form, []) == SearchArguments("tea")


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("{", "'{'"),
        ("[" * 100_000, ""),
        ("[]", "[]"),
        (None, "None"),
        ({}, "''"),
        ({"query": " \n"}, ""),
        ({"query": 3}, "3"),
        ({"query": ["tea"]}, "['tea']"),
        ({"query": "x" * 10_001}, "10,001"),
        ({"query": "\ud800"}, ""),
        ({"qeury": "x"}, "'query'"),
        ({"query": "x", "collection": 1}, "1"),
        ({"query": "x", "collection": "te"}, "'tea'"),
        ({"query": "x", "cursor": "next"}, "'next'"),
        ({"query": "x", "cursor": "1.0.0123456789abcdeg"}, ""),
    ],
)
def test_anything_else_is_refused(given: Any, value: str) -> None:
    with refused(QueryError, value):
        parse_arguments(given, ["tea"])


@settings(max_examples=200 if full_run() else 40, deadline=None)
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
