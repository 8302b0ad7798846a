"""Conditions on keys that no chunk has are answered and reported; values of another type than the key are errors."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Any

import pytest

from ragistry import Workspace
from ragistry.errors import InvalidFilterError
from ragistry.utils.metadata import INTERNAL
from tests.conftest import everywhere
from tests.messages import check_message, refused


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


def test_internal_keys_are_neither_suggested_nor_listed(workspace: Workspace) -> None:
    pages = "# A\n\nGreen tea.\n\n## B\n\nBlack tea.\n\n## C\n\n" + "White tea. " * 3
    workspace.library.ingest_text(pages, "pages.md", "notes", metadata={"client": "acme"})
    for key in ("place", "set_key", "sentence_afte", "source_has", "start_"):
        said = degraded(workspace, {key: "x"}, "notes")
        assert "client" in said
        assert INTERNAL.isdisjoint(re.findall(r"\w+", said.replace(repr(key), "", 1)))
    assert degraded(workspace, {"set_keys": {"$contains": "client"}}, "notes") == "", "such a condition still works"


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


@pytest.fixture
def typed(workspace: Workspace) -> Workspace:
    """The workspace with values of every type."""
    metadata = {"year": 2026, "due": "2026-05-01", "draft": True, "tags": ["a"], "sizes": [1, 2], "mixed": 1}
    workspace.library.ingest_text("Oolong tea.", "oolong.txt", "notes", metadata=metadata)
    workspace.library.ingest_text("White tea.", "white.txt", "notes", metadata={"mixed": "one", "draft": False})
    return workspace


@pytest.mark.parametrize(
    "where",
    [
        {"year": "2026"},
        {"year": {"$gte": "2026"}},
        {"year": {"$ne": "2026"}},
        {"year": True},
        {"year": {"$in": ["2026", "2027"]}},
        {"due": {"$lt": 2027}},
        {"draft": "true"},
        {"draft": {"$nin": [1]}},
        {"tags": "a"},
        {"tags": {"$ne": "a"}},
        {"tags": {"$contains": 1}},
        {"sizes": {"$not_contains": "1"}},
        {"due": {"$contains": "2026"}},
        {"mixed": True},
        {"page": "3", "chunk_index": "0"},
        {"$or": [{"year": "x"}, {"$and": [{"year": "y"}, {"draft": True}]}]},
    ],
)
def test_value_of_another_type_is_an_error_that_names_the_types(typed: Workspace, where: dict[str, Any]) -> None:
    with refused(InvalidFilterError):
        typed.search("tea", collection="notes", where=where)


@everywhere
def test_values_of_the_type_of_their_key_are_compared(typed: Workspace) -> None:
    for where, sources in (
        ({"mixed": {"$in": ["one", 1]}}, ["oolong.txt", "white.txt"]),
        ({"year": {"$gt": 2026.5}}, []),
        ({"year": {"$ne": 2026}}, ["tea.txt", "white.txt"]),
        ({"due": date(2026, 5, 1)}, ["oolong.txt"]),
        ({"due": {"$lt": datetime(2026, 5, 1, tzinfo=UTC)}}, ["oolong.txt"]),
        ({"tags": {"$contains": "b"}}, []),
    ):
        result = typed.search("tea", "naive", collection="notes", where=where)
        assert sorted({one.metadata["source_file"] for one in result.documents}) == sources, where
        assert not result.degraded
    for wrong in ({"year": "2026"}, {"tags": {"$ne": "a"}}):
        with pytest.raises(InvalidFilterError):
            typed.search("tea", "naive", collection="notes", where=wrong)


def test_times_of_a_condition_may_have_an_offset(workspace: Workspace) -> None:
    workspace.library.ingest_text("Oolong tea.", "oolong.txt", "notes", metadata={"at": "2026-05-01T12:00:00+02:00"})
    for where in (
        {"at": "2026-05-01T10:00Z"},
        {"at": {"$in": ["2026-05-01T09:00-01:00"]}},
        {"$and": [{"at": {"$gte": "2026-05-01T11:30+02:00"}}, {"at": {"$lt": "2026-05-01 12:30+02:00"}}]},
    ):
        assert len(workspace.search("tea", where=where).documents) == 1


def test_types_out_of_reach_are_not_named(workspace: Workspace) -> None:
    workspace.library.ingest_text("Rain.", "secret.txt", "other", metadata={"year": 2026})
    where = {"$and": [{"collection": {"$in": ["notes"]}}, {"year": "2026"}]}
    assert "year" in degraded(workspace, where)


@everywhere
def test_values_of_another_type_that_are_not_compared_are_reported(typed: Workspace) -> None:
    library = typed.library
    for where in ({"mixed": 1}, {"mixed": {"$ne": "two"}}, {"$or": [{"mixed": {"$gte": 0}}, {"page": 3}]}):
        check_message("; ".join(typed.search("tea", collection="notes", where=where).degraded), "'mixed'")
    for where in ({"mixed": {"$in": [1, "one"]}}, {"year": 2026}, {"source_file": "tea.txt"}, {"draft": True}):
        assert not typed.search("tea", collection="notes", where=where).degraded, where
    check_message("; ".join(typed.search("tea", collection="other", where={"mixed": {"$ne": 1}}).degraded), "no chunk")
    library.set_metadata("white.txt", "notes", {"mixed": 2, "tags": "a", "year": True})
    assert not typed.search("tea", collection="notes", where={"mixed": 1}).degraded
    for where in ({"tags": {"$contains": "a"}}, {"tags": "a"}, {"year": {"$lt": 2027}}):
        check_message("; ".join(typed.search("tea", collection="notes", where=where).degraded), next(iter(where)))
