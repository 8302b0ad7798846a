"""The tool for models that call functions as OpenAI's do."""

from __future__ import annotations

from typing import Any

import pytest

from ragistry import Workspace
from ragistry.tools.openai import answer_tool_call
from ragistry.tools.search_library import SearchLibraryTool


def test_a_call_is_answered_with_a_message(shelves: Workspace) -> None:
    tool = SearchLibraryTool(shelves.library, strict=True)
    function = tool.schema()["function"]
    assert (function["name"], function["strict"]) == ("search_library", True)
    arguments = '{"query": "green tea", "collection": "tea", "cursor": null}'
    call = {"id": "call_1", "type": "function", "function": {"name": function["name"], "arguments": arguments}}
    message = answer_tool_call(tool, call)
    assert (message["role"], message["tool_call_id"]) == ("tool", "call_1")
    assert "1. green.txt (chunk 0)\n   Steep green tea" in message["content"]


@pytest.mark.parametrize(
    ("call", "content"),
    [
        ({"id": "1", "function": {"name": "web_search", "arguments": "{}"}}, "there is no function 'web_search'"),
        ({"id": "1"}, "there is no function None; call search_library"),
        ({"id": "1", "function": {"name": "search_library"}}, "the query is empty"),
        ({"id": "1", "function": {"name": "search_library", "arguments": "{"}}, "the arguments are not JSON"),
    ],
)
def test_a_wrong_call_is_answered_too(shelves: Workspace, call: Any, content: str) -> None:
    message = answer_tool_call(SearchLibraryTool(shelves.library), call)
    assert message["tool_call_id"] == "1"
    assert content in message["content"]


@pytest.mark.parametrize("call", [None, [], "search_library", 7, {"function": None}])
def test_what_is_no_call_is_answered_too(shelves: Workspace, call: Any) -> None:
    message = answer_tool_call(SearchLibraryTool(shelves.library), call)
    assert message == {
        "role": "tool", "tool_call_id": "", "content": "Error: there is no function None; call search_library"
    }  # fmt: skip
