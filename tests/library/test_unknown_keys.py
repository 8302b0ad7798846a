"""A condition on a key that no chunk has is answered, and says so."""

from __future__ import annotations

from typing import Any

import pytest

from ragistry import Workspace
from tests.messages import check_message


@pytest.fixture(autouse=True)
def filled(workspace: Workspace) -> None:
    workspace.library.create_collection("other")
    workspace.library.ingest_text("Green tea is steeped.", "tea.txt", "notes")
    workspace.library.ingest_text("---\ntags: [x]\n---\nRain falls.", "rain.md", "other")


def degraded(workspace: Workspace, where: dict[str, Any], collection: str | None = None) -> str:
    result = workspace.search("tea", collection=collection, where=where)
    return "; ".join(stage.degraded for stage in result.trace if stage.degraded)


@pytest.mark.parametrize(
    "where",
    [
        {"autor": "Ann"},
        {"source_fil": "tea.txt"},
        {"page": {"$ne": 3}},
        {"$and": [{"source_file": "tea.txt"}, {"pages": {"$gte": 2}}]},
        {"year": {"$nin": [1999]}},
    ],
)
def test_unknown_key_is_named_with_the_known_ones(workspace: Workspace, where: dict[str, Any]) -> None:
    check_message(degraded(workspace, where, "notes"), "source_file")


@pytest.mark.parametrize(
    "where",
    [{"source_file": "absent.txt"}, {"source_file": {"$ne": "tea.txt"}}, {"$or": [{"x": 1}, {"chunk_index": 0}]}],
)
def test_known_key_is_not_reported(workspace: Workspace, where: dict[str, Any]) -> None:
    assert degraded(workspace, where, "notes") == ""


def test_keys_of_collections_out_of_reach_are_not_named(workspace: Workspace) -> None:
    said = degraded(workspace, {"$and": [{"collection": {"$in": ["notes"]}}, {"autor": "Ann"}]})
    assert "autor" in said
    assert "tags" not in said
