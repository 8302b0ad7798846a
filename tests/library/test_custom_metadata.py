"""Metadata that people set on sources: stored, kept, changed and filtered, on every store and through a client."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from ragistry import RemoteWorkspace, Workspace
from ragistry.errors import InvalidMetadataError, SourceNotFoundError
from ragistry.library.copying import copy_library
from ragistry.stores.local import LocalStore
from tests.conftest import Corpus, everywhere
from tests.messages import refused

Either = Workspace | RemoteWorkspace

VALUES = {
    "client": "acme",
    "year": 2026,
    "price": 2.5,
    "whole": 3.0,
    "draft": False,
    "due": date(2026, 5, 1),
    "signed": datetime(2026, 5, 1, 12, 0, 0, 999, tzinfo=timezone(timedelta(hours=2))),
    "tags": ["tea", "green"],
    "weights": [1, 2.5],
    "größe $": "L",
    "large": 2**62 + 1,
    "nul": "a\0b",
}
STORED = VALUES | {"due": "2026-05-01", "signed": "2026-05-01T10:00:00Z", "weights": [1.0, 2.5]}


def own(workspace: Either, source: str, collection: str = "notes") -> dict[str, Any]:
    found = dict(workspace.library.source(source, collection).metadata)
    found.pop("modified", None)
    return found


def found(workspace: Either, where: dict[str, Any]) -> list[str]:
    documents = workspace.search("tea", "naive", where=where).documents
    return sorted({document.metadata["source_file"] for document in documents})


@everywhere
def test_metadata_of_a_text_are_stored_and_filtered(workspace: Either) -> None:
    library = workspace.library
    library.ingest_text("Green tea.", "a", "notes", metadata=VALUES)
    library.ingest_text("Black tea.", "b", "notes")
    assert own(workspace, "a") == STORED
    assert {key: type(value) for key, value in own(workspace, "a").items()} == {k: type(v) for k, v in STORED.items()}
    [row] = [row for row in library.list_sources_detail("notes") if row["source_file"] == "a"]
    assert row["metadata"] == STORED
    [document] = workspace.search("tea", "naive", where={"client": "acme"}).documents
    assert {key: document.metadata[key] for key in STORED} == STORED
    for where in (
        {"year": {"$gte": 2026}},
        {"draft": False},
        {"due": {"$lt": "2026-06"}},
        {"signed": {"$gte": "2026-05-01T09:59:59Z"}},
        {"tags": {"$contains": "tea"}},
        {"price": {"$in": [2.5]}},
        {"größe $": "L"},
        {"large": 2**62 + 1},
    ):
        assert found(workspace, where) == ["a"], where


@everywhere
def test_metadata_are_kept_until_they_are_set_again(workspace: Either) -> None:
    library = workspace.library
    library.ingest_text("Green tea.", "a", "notes", metadata={"client": "acme", "year": 2026})
    assert library.ingest_text("Green tea.", "a", "notes") == 0
    assert library.ingest_text("Green tea.", "a", "notes", metadata={"year": 2026}) == 0
    assert library.ingest_text("Green tea, steeped.", "a", "notes") == 1
    assert own(workspace, "a") == {"client": "acme", "year": 2026}
    assert library.ingest_text("Green tea, steeped.", "a", "notes", metadata={"year": 2027, "client": None}) == 1
    assert own(workspace, "a") == {"year": 2027}
    assert library.set_metadata("a", "notes", {"year": None, "client": "new", "tags": ["x"]}).metadata == {
        "client": "new",
        "tags": ["x"],
    }
    library.ingest_text("Green tea, cold.", "a", "notes")
    assert own(workspace, "a") == {"client": "new", "tags": ["x"]}
    assert library.source("a", "notes").set_keys == ("client", "tags", "year")
    assert found(workspace, {"client": "new"}) == ["a"]


@everywhere
def test_paths_take_a_mapping_or_a_function(workspace: Either, corpus: Corpus) -> None:
    library, folder = workspace.library, corpus({"a.md": "# Tea\n\nGreen tea.", "b/c.txt": "Black tea."})
    library.ingest_folder(folder, "notes", metadata=lambda path: {"name": path.stem} if path.suffix == ".txt" else None)
    assert (own(workspace, "b/c.txt"), own(workspace, "a.md")) == ({"name": "c"}, {"title": "Tea"})
    library.ingest_paths([folder], "notes", metadata={"client": "acme"})
    assert own(workspace, "b/c.txt") == {"name": "c", "client": "acme"}
    library.ingest_file(folder / "a.md", "notes", metadata={"title": "Set", "year": 1})
    assert own(workspace, "a.md") == {"title": "Set", "year": 1, "client": "acme"}
    (folder / "a.md").write_text("# Tea\n\nGreen tea, cold.")
    library.ingest_file(folder / "a.md", "notes")
    assert own(workspace, "a.md") == {"title": "Set", "year": 1, "client": "acme"}


@everywhere
def test_changed_metadata_embed_nothing(workspace: Either, corpus: Corpus) -> None:
    library, folder = workspace.library, corpus({"a.txt": "Green tea. " * 600})
    report = library.ingest_folder(folder, "notes")
    before = [(one.id, one.content, one.score) for one in workspace.search("tea", "naive", top_k=9).documents]
    changed = library.ingest_folder(folder, "notes", metadata={"client": "acme"})
    assert (report.embedded > 1, changed.embedded, changed.updated) == (True, 0, ["a.txt"])
    library.set_metadata("a.txt", "notes", {"year": 1})
    after = [(one.id, one.content, one.score) for one in workspace.search("tea", "naive", top_k=9).documents]
    assert after == before
    assert library.ingest_folder(folder, "notes").skipped == ["a.txt"]


@everywhere
def test_metadata_that_cannot_be_stored_are_refused_and_change_nothing(workspace: Either) -> None:
    library = workspace.library
    for metadata in ({"source_file": "x"}, {"a": float("nan")}, {f"key{n}": n for n in range(5_000)}):
        with pytest.raises(InvalidMetadataError):
            library.ingest_text("Green tea.", "a", "notes", metadata=metadata)
    assert library.list_sources() == []
    library.ingest_text("Green tea.", "a", "notes", metadata={"a": 1})
    with pytest.raises(InvalidMetadataError):
        library.set_metadata("a", "notes", {"a": {"b": 1}})
    assert own(workspace, "a") == {"a": 1}


def test_refusal_of_a_reserved_name_lists_all(workspace: Workspace) -> None:
    with refused(InvalidMetadataError, "source_file", "chunk_index", "token_count"):
        workspace.library.ingest_text("Green tea.", "a", "notes", metadata={"source_file": "x"})
    with refused(SourceNotFoundError, "b"):
        workspace.library.set_metadata("b", "notes", {"a": 1})


def test_metadata_stay_through_copy_move_and_rename(workspace: Workspace, tmp_path: Path) -> None:
    library = workspace.library
    library.ingest_text("Green tea.", "a", "notes", metadata=VALUES)
    library.create_collection("other")
    library.move_source("a", "notes", "other")
    library.rename_collection("other", "new")
    assert own(workspace, "a", "new") == STORED
    copy = LocalStore(tmp_path / "copy")
    assert not copy_library(workspace.store, copy).differences
    assert copy.sources() == workspace.store.sources()
    copy.close()
