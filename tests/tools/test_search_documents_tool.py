"""The tool on the bus: requests, results and activity; and a library without documents."""

from __future__ import annotations

from typing import Any

from ragistry import Workspace
from ragistry.tools.bus import InProcessBus
from ragistry.tools.search_library import SearchLibraryTool
from tests.messages import check_message


def heard(bus: InProcessBus, *subjects: str) -> list[tuple[str, Any]]:
    """A list that fills with what is published on the subjects."""
    messages: list[tuple[str, Any]] = []
    for subject in subjects:
        bus.subscribe(subject, lambda message, subject=subject: messages.append((subject, message)))
    return messages


def test_handle_request_publishes_result_and_activity(shelves: Workspace) -> None:
    bus = InProcessBus()
    tool = SearchLibraryTool(shelves.library, bus)
    messages = heard(bus, "tool.result.search_library", "tool.activity.search_library")
    bus.publish("tool.request.search_library", {"id": "7", "arguments": '{"query": "green tea"}'})
    [(_, result), (_, activity)] = messages
    assert (result["id"], result["name"], result["error"]) == ("7", "search_library", False)
    assert result["content"].startswith('[Knowledge base results for "green tea"]')
    assert (activity["id"], activity["query"], activity["collection"]) == ("7", "green tea", None)
    assert activity["results"] == 2
    assert activity["ms"] > 0
    tool.close()
    bus.publish("tool.request.search_library", {"id": "8", "arguments": {"query": "tea"}})
    assert len(messages) == 2, "closed, it takes no more calls"


def test_a_bad_request_is_answered_too(shelves: Workspace) -> None:
    bus = InProcessBus()
    tool = SearchLibraryTool(shelves.library, bus)
    messages = heard(bus, "tool.result.search_library", "tool.activity.search_library")
    for message in ({"id": "9"}, None, 7, "tea", ["query"], [("id", 1)], {}, {"arguments": 3}, {1: 2}):
        messages.clear()
        tool.handle_request(message)
        [(_, result), (_, activity)] = messages
        assert (result["id"], result["error"]) == ("9" if message == {"id": "9"} else None, True)
        check_message(result["content"])
        assert activity["error"] == result["content"]


def test_empty_kb_returns_informative_message(workspace: Workspace) -> None:
    tool = SearchLibraryTool(workspace.library)
    check_message(tool.handle({"query": "anything"}), "anything")


def test_an_empty_collection_is_told_from_an_empty_library(workspace: Workspace) -> None:
    workspace.library.create_collection("tea", "Tea")
    workspace.library.create_collection("bare", "Nothing yet")
    workspace.library.ingest_text("Steep green tea.", "green.txt", "tea")
    answer = SearchLibraryTool(workspace.library).answer({"query": "tea", "collection": "bare"})
    check_message(answer.text, '"bare"')
    assert not answer.error
    nothing = SearchLibraryTool(workspace.library, technique="bm25").handle({"query": "submarine"})
    check_message(nothing)
