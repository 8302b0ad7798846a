"""The tool for models that call functions as OpenAI's do."""

from __future__ import annotations

from typing import Any

from ragistry import Workspace
from ragistry.tools.openai import answer_tool_call
from ragistry.tools.search_library import SearchLibraryTool
from tests.messages import check_message


def test_a_call_is_answered_with_a_message(shelves: Workspace) -> None:
    tool = SearchLibraryTool(shelves.library, strict=True)
    function = tool.schema()["function"]
    assert (function["name"], function["strict"]) == ("search_library", True)
    arguments = '{"query": "green tea", "collection": "tea", "cursor": null}'
    call = {"id": "call_1", "type": "function", "function": {"name": function["name"], "arguments": arguments}}
    message = answer_tool_call(tool, call)
    assert (message["role"], message["tool_call_id"]) == ("tool", "call_1")
    assert "1. green.txt (line 1, chunk 0)\n   Steep green tea" in message["content"]


WRONG: list[Any] = [
    {"id": "1", "function": {"name": "web_search", "arguments": "{}"}},
    {"id": "1"},
    {"id": "1", "function": {"name": "search_library"}},
    {"id": "1", "function": {"name": "search_library", "arguments": "{"}},
    {"function": None},
    None,
    [],
    "search_library",
    7,
]


def test_a_wrong_call_is_answered_too(shelves: Workspace) -> None:
    for call in WRONG:
        message = answer_tool_call(SearchLibraryTool(shelves.library), call)
        assert (message["role"], message["tool_call_id"]) == (
            "tool", call.get("id", "") if isinstance(call, dict) else "",
        )  # fmt: skip
        check_message(message["content"])
