"""On every store, each technique searches and two programs write at once; ``tests/test_doors.py`` has the calls."""

from __future__ import annotations

import pytest

from ragistry import Workspace, open_workspace
from ragistry.errors import ConfigError
from ragistry.types import RetrievalResult

on_stores = pytest.mark.parametrize("workspace", ["local", "postgres", "chroma"], indirect=True)


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    """Two texts in ``notes``, one in ``garden``."""
    workspace.library.create_collection("garden", "Soil, plants and weeds", "The garden")
    workspace.library.ingest_text("Steep green tea in water of eighty degrees.", "tea", "notes")
    workspace.library.ingest_text("A cold front brings rain.\r\nAnd snow.", "weather/rain", "notes")
    workspace.library.ingest_text("Compost makes the soil of a garden loose.", "soil", "garden")
    return workspace


def sources_of(result: RetrievalResult) -> list[str]:
    return [document.metadata["source_file"] for document in result.documents]


@on_stores
def test_every_technique_that_the_store_supports_searches_it(filled: Workspace) -> None:
    has_words = "text" in filled.store.abilities
    assert filled.registry.entry("newest").base == ("hybrid" if has_words else "naive")
    for technique in filled.registry.names():
        needs_words = technique in ("bm25", "hybrid", "graph")
        if not filled.registry.missing_model(technique) and (has_words or not needs_words):
            assert sources_of(filled.search("compost for the soil", technique))[0] == "soil", technique
    if not has_words:
        for technique in ("bm25", "hybrid"):
            with pytest.raises(ConfigError) as caught:
                filled.search("tea", technique)
            assert "\n" not in str(caught.value)


@on_stores
def test_two_workspaces_write_and_read_at_once(filled: Workspace) -> None:
    with open_workspace(filled.root) as other:
        other.library.ingest_text("Oolong is half oxidised.", "oolong", "notes")
        assert sources_of(filled.search("oolong", top_k=1)) == ["oolong"]
        filled.library.ingest_text("Mulch keeps the weeds away.", "mulch", "garden")
        assert sources_of(other.search("weeds and mulch", top_k=1)) == ["mulch"]
    filled.close()
    with open_workspace(filled.root) as again:
        assert again.library.count() == 5
