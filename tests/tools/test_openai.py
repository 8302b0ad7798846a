"""The tool for models that call functions as OpenAI's do."""

from __future__ import annotations

from typing import Any

from ragistry import Workspace
from ragistry.tools.openai import answer_tool_call
from ragistry.tools.search_library import SearchLibraryTool
from tests.messages import check_message

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
