"""Whatever a model passes is answered with one line that says what to mend."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry import Workspace
from ragistry.tools.reach import Reach
from ragistry.tools.search import SEARCH_LIBRARY, SearchArguments
from ragistry.tools.search_library import SearchLibraryTool
from ragistry.tools.tool import Tool
from ragistry.tools.toolbox import TOOLS
from tests.conftest import full_run

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
            assert SEARCH_LIBRARY.request_of(form) == SearchArguments("tea")


LARGE = "x" * 100_000
CALLS_OF_TOOLS: dict[str, dict[str, Any]] = {
    "search_library": {"query": "tea"},
    "search": {"query": "tea"},
    "fetch": {"id": "0"},
    "grep": {"pattern": "e"},
    "read": {"source": "green.txt"},
    "outline": {"source": "green.txt"},
    "sources": {},
    "check_quotes": {"answer": "It is tea."},
}


@pytest.mark.parametrize("tool", TOOLS.values(), ids=[*TOOLS])
def test_bad_arguments_of_every_tool_are_answered_in_one_line(shelves: Workspace, tool: Tool) -> None:
    reach, good = Reach(shelves.library, technique="bm25"), CALLS_OF_TOOLS[tool.name]
    wrong = {"string": 7, "integer": "many", "boolean": "perhaps", "object": [1]}
    calls = [{"colour": "red"}]
    for name, about in tool.parameters()["properties"].items():
        calls += [{name: wrong[about["type"]]}, {name: ["x"]}, {name: LARGE}]
    for call in calls:
        answer = tool.call(reach, good | call)
        [(name, value)] = call.items()
        assert answer.error or value == LARGE, "some arguments may be long, and find nothing"
        assert len(answer.text) < 1_000
        if answer.error:
            assert len(answer.text.splitlines()) == 1
            assert name in answer.text
            assert "does not work at the moment" not in answer.text


@pytest.mark.parametrize("name", ["search_library", "grep", "sources"])
def test_a_cursor_of_another_call_is_refused(workspace: Workspace, name: str) -> None:
    workspace.library.create_collection("notes")
    for number in range(60):
        workspace.library.ingest_text(f"Tea number {number} of the shelf. " * 30, f"tea{number}.txt", "notes")
    reach = Reach(workspace.library, technique="bm25", n=50, max_tokens=1_500)
    calls = {
        "search_library": {"query": "tea"},
        "grep": {"pattern": "Tea", "max_tokens": 200},
        "sources": {"max_tokens": 200},
    }
    cursor = TOOLS[name].call(reach, calls[name]).cursor
    assert not TOOLS[name].call(reach, calls[name] | {"cursor": cursor}).error
    for other, arguments in (
        ("search_library", {"query": "shelf"}),
        ("grep", {"pattern": "shelf"}),
        ("sources", {"name": "t*"}),
    ):
        answer = TOOLS[other].call(reach, arguments | {"cursor": cursor})
        assert answer.error
        assert "cursor" in answer.text


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
