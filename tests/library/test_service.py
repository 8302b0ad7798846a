"""The library's collections and its search."""

from __future__ import annotations

import logging

import pytest

from ragistry import Workspace, open_workspace
from ragistry.errors import (
    CollectionNotFoundError,
    ConfigError,
    EmbeddingMismatchError,
    EmptyQueryError,
    InvalidLimitError,
    SourceNotFoundError,
    UnknownTechniqueError,
)


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    workspace.library.create_collection("empty", "Nothing yet", "Empty shelf")
    workspace.library.ingest_text("Steep green tea in water of eighty degrees.", "tea.txt", "notes")
    workspace.library.ingest_text("A cold front brings rain and then clear skies.", "rain.txt", "notes")
    return workspace


def test_search_finds_and_explains(filled: Workspace) -> None:
    result = filled.search("how hot should the water be?", top_k=1)
    [document] = result.documents
    assert document.metadata["source_file"] == "tea.txt"
    assert (result.query, result.total_results) == ("how hot should the water be?", 1)
    assert result.search_time_ms > 0
    assert [stage.name for stage in result.trace] == ["hybrid", "naive", "embed", "search", "bm25", "search", "fuse"]
    assert sum(stage.model_calls for stage in result.trace) == 1
    assert result.degraded == ()


def test_search_of_one_collection(filled: Workspace) -> None:
    assert filled.search("tea", collection="empty").documents == []
    assert len(filled.search("tea", collection="notes", top_k=2).documents) == 2
    with pytest.raises(CollectionNotFoundError, match="no collection 'nots'; did you mean 'notes'"):
        filled.search("tea", collection="nots")


def test_search_with_a_condition(filled: Workspace) -> None:
    result = filled.search("tea", where={"source_file": "rain.txt"})
    assert [document.metadata["source_file"] for document in result.documents] == ["rain.txt"]


def test_bad_questions(filled: Workspace) -> None:
    with pytest.raises(EmptyQueryError):
        filled.search("  ")
    for top_k in (0, 10_000):
        with pytest.raises(InvalidLimitError, match=f"got {top_k}"):
            filled.search("tea", top_k=top_k)
    with pytest.raises(UnknownTechniqueError, match="no technique 'naiv'; did you mean 'naive'"):
        filled.search("tea", technique="naiv")


def test_an_empty_store_finds_nothing_and_says_so(workspace: Workspace, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="ragistry"):
        assert workspace.search("anything").documents == []
    assert any("empty" in record.getMessage() for record in caplog.records)


def test_collections_are_counted_and_empty_ones_shown(filled: Workspace) -> None:
    counted = {"source_count": 2, "chunk_count": 2}
    nothing = {"source_count": 0, "chunk_count": 0}
    assert filled.library.list_collections() == [
        {"name": "notes", "display_name": "notes", "description": "Notes about everything", **counted},
        {"name": "empty", "display_name": "Empty shelf", "description": "Nothing yet", **nothing},
    ]


def test_sources_are_listed_and_deleted(filled: Workspace) -> None:
    assert filled.library.list_sources() == ["rain.txt", "tea.txt"]
    assert [(info.source_file, info.chunks) for info in filled.library.sources("notes")] == [
        ("rain.txt", 1),
        ("tea.txt", 1),
    ]
    assert filled.library.delete_source("tea.txt", "notes") == 1
    assert filled.library.count() == 1
    with pytest.raises(SourceNotFoundError, match="no source 'rain.tx' in collection 'notes'; did you mean 'rain.txt'"):
        filled.library.delete_source("rain.tx", "notes")


def test_reopened_it_is_all_there(filled: Workspace) -> None:
    filled.close()
    with open_workspace(filled.root) as again:
        assert again.search("rain", top_k=1).documents[0].metadata["source_file"] == "rain.txt"


def test_another_embedder_is_refused_on_ingest_and_query(filled: Workspace) -> None:
    from dataclasses import replace

    class Other:
        fingerprint = replace(filled.embedder.fingerprint, model="another-model")
        embed = filled.embedder.embed

    filled.library.embedder = Other()
    with pytest.raises(EmbeddingMismatchError, match="another-model"):
        filled.library.ingest_text("New text.", "new.txt", "notes")
    filled.technique("naive").technique.embedder = Other()
    with pytest.raises(EmbeddingMismatchError, match="another-model"):
        filled.search("tea")


def test_an_edit_that_says_nothing_is_refused(filled: Workspace) -> None:
    before = filled.library.collections.path.read_bytes()
    with pytest.raises(
        ConfigError, match="nothing to change in collection 'empty'; give a description, a display_name"
    ):
        filled.library.update_description("empty", None)
    assert filled.library.collections.path.read_bytes() == before
    filled.library.update_description("empty", None, display_name="Shelf")
    filled.library.update_description("empty", "")
    [entry] = [entry for entry in filled.library.list_collections() if entry["name"] == "empty"]
    assert (entry["description"], entry["display_name"]) == ("", "Shelf")
