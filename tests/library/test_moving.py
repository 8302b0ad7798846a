"""A collection that is given to another in one step: all of its sources, or none."""

from __future__ import annotations

import pytest

from ragistry import Workspace
from ragistry.errors import DuplicateChunkIDError
from ragistry.utils.ids import chunk_id


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    workspace.library.create_collection("econ", "Money")
    for name in ("one.txt", "two.txt"):
        workspace.library.ingest_text(f"Tea of {name}.", name, "notes")
    return workspace


def test_every_source_follows_with_its_ids_and_vectors(filled: Workspace) -> None:
    ids = [chunk_id("notes", name, 0) for name in ("one.txt", "two.txt")]
    before = filled.store.vectors(ids)
    assert filled.store.move_collection("notes", "econ") == 2
    after = [chunk_id("econ", name, 0) for name in ("one.txt", "two.txt")]
    assert (filled.store.vectors(after) == before).all()
    assert filled.store.get(ids) == []
    assert filled.library.list_sources("econ") == ["one.txt", "two.txt"]
    assert filled.store.move_collection("notes", "econ") == 0


def test_a_name_that_is_taken_stops_all(filled: Workspace) -> None:
    filled.library.ingest_text("Prices rise.", "two.txt", "econ")
    with pytest.raises(DuplicateChunkIDError, match="collection 'econ' already has a source 'two.txt'"):
        filled.store.move_collection("notes", "econ")
    assert filled.library.list_sources("notes") == ["one.txt", "two.txt"]
