"""documents.yaml and the store stay together: renames that are interrupted, hand edits, and what belongs to nobody."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ragistry import Workspace, open_workspace
from ragistry.errors import CollectionAlreadyExistsError, CollectionNotFoundError, ConfigError, StoreLockedError
from ragistry.library.service import DocumentService
from ragistry.utils.ids import chunk_id

FILES = ("one.txt", "two.txt", "three.txt")


class Crash(BaseException):
    """The process ends here."""


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    for name in FILES:
        workspace.library.ingest_text(f"Tea of {name}.", name, "notes")
    workspace.library.create_collection("econ", "Money")
    workspace.library.ingest_text("Prices rise.", "prices.txt", "econ")
    return workspace


def edit(workspace: Workspace, old: str, new: str) -> None:
    """As its owner would, in an editor."""
    path = workspace.library.collections.path
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def dying(step: int) -> Callable[[Callable], Callable]:
    """The call of this number, over all that are wrapped, does not happen, and nothing after it."""
    calls = iter(range(100))

    def wrap(function: Callable) -> Callable:
        def call(*words: object, **named: object) -> object:
            if next(calls) >= step:
                raise Crash
            return function(*words, **named)

        return call

    return wrap


def found(library: DocumentService, collection: str | None) -> set[str]:
    return {document.metadata["source_file"] for document in library.search("tea", collection, 10).documents}


def assert_renamed(library: DocumentService) -> None:
    assert library.count("shelf") == library.store.count({"collection": "shelf"}) == len(FILES)
    assert library.store.count({"collection": "notes"}) == 0
    ids = {chunk_id("shelf", name, 0) for name in FILES}
    assert {document.id for document in library.store.scan({"collection": "shelf"})} == ids
    assert "formerly" not in library.collections.path.read_text(encoding="utf-8")


@pytest.mark.parametrize("step", range(4))
def test_a_rename_that_is_interrupted_loses_nothing(
    filled: Workspace, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    library, wrap = filled.library, dying(step)
    with monkeypatch.context() as patch:
        for part, name in (
            (library.collections, "begin_rename"),
            (library.store, "move_collection"),
            (library.collections, "end_rename"),
        ):
            patch.setattr(part, name, wrap(getattr(part, name)))
        if step < 3:
            with pytest.raises(Crash):
                library.rename_collection("notes", "shelf")
        else:
            assert library.rename_collection("notes", "shelf") == len(FILES)
    filled.close()
    with open_workspace(filled.root) as again:
        library, name = again.library, "shelf" if step else "notes"
        assert [row["name"] for row in library.list_collections()] == [name, "econ"]
        assert found(library, name) == set(FILES)
        assert found(library, None) == {*FILES, "prices.txt"}
        assert library.list_sources(name) == sorted(FILES)
        assert library.count(name) == library.list_collections()[0]["chunk_count"] == len(FILES)
        assert library.orphans() == []
        if not step:
            assert library.rename_collection("notes", "shelf") == len(FILES)
        library.ingest_text("Something new.", "new.txt", "econ")  # whoever writes next completes it
        assert_renamed(library)


def test_a_rename_whose_process_is_killed_is_completed(filled: Workspace) -> None:
    filled.close()
    script = f"""
import os
from ragistry import open_workspace
with open_workspace({str(filled.root)!r}) as opened:
    opened.store.move_collection = lambda *_: os._exit(9)
    opened.library.rename_collection("notes", "shelf")
"""
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=60).returncode == 9
    with open_workspace(filled.root) as again:
        assert again.store.count({"collection": "notes"}) == 3
        assert found(again.library, "shelf") == set(FILES)
        again.library.create_collection("another")
        assert_renamed(again.library)


def test_a_source_that_both_names_have_is_the_later_one(
    filled: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, file = filled.library, tmp_path / "one.txt"
    file.write_text("Tea of one.", encoding="utf-8")
    library.delete_source("one.txt", "notes")
    library.ingest_file(file, "notes")
    with monkeypatch.context() as patch:
        patch.setattr(library.store, "move_collection", dying(0)(library.store.move_collection))
        with pytest.raises(Crash):
            library.rename_collection("notes", "shelf")
        patch.setattr(library, "_complete_renames", lambda: None)  # as a process that had looked before the rename
        file.write_text("A later text.", encoding="utf-8")
        library.ingest_file(file, "shelf")
    library.create_collection("another")
    assert_renamed(library)
    assert [d.content for d in library.store.get([chunk_id("shelf", "one.txt", 0)])] == ["A later text."]


def test_a_name_under_which_the_store_has_other_chunks_is_not_taken(filled: Workspace) -> None:
    edit(filled, "name: notes", "name: paper")
    with pytest.raises(CollectionAlreadyExistsError, match="the store holds chunks of a collection 'notes'"):
        filled.library.rename_collection("econ", "notes")
    assert filled.library.delete_collection("notes") == 3
    assert filled.library.rename_collection("econ", "notes") == 1


def test_a_collection_taken_out_by_hand_is_searched_no_more_and_told(filled: Workspace) -> None:
    library = filled.library
    assert found(library, None) == {*FILES, "prices.txt"}
    edit(filled, "name: notes", "name: paper")
    assert found(library, None) == {"prices.txt"}
    assert found(library, "paper") == set()
    assert (library.count(), library.list_sources()) == (1, ["prices.txt"])
    assert library.search("tea", where={"collection": "notes"}).documents == []
    with pytest.raises(CollectionNotFoundError):
        library.search("tea", "notes")
    assert [(info.collection, info.source_file) for info in library.orphans()] == [
        ("notes", name) for name in sorted(FILES)
    ]
    library.create_collection("notes", "Here again")
    assert found(library, None) == {*FILES, "prices.txt"}
    assert library.orphans() == []


def test_what_is_searched_is_the_same_by_every_technique(filled: Workspace) -> None:
    edit(filled, "name: notes", "name: paper")
    for technique in ("naive", "bm25", "hybrid", "mmr"):
        documents = filled.library.search("tea prices", n=10, technique=technique).documents
        assert {document.metadata["collection"] for document in documents} == {"econ"}


def test_a_rename_by_hand_with_the_former_name_takes_the_chunks_along(filled: Workspace) -> None:
    edit(filled, "name: notes", "name: shelf\n    formerly: notes")
    library = filled.library
    assert found(library, "shelf") == set(FILES)
    assert {info.collection for info in library.sources("shelf")} == {"shelf"}
    library.delete_source("prices.txt", "econ")
    assert_renamed(library)


def test_a_former_name_that_is_defined_again_keeps_its_chunks(filled: Workspace) -> None:
    edit(filled, "name: econ", "name: shelf\n    formerly: notes")
    library = filled.library
    library.create_collection("another")
    assert (library.count("notes"), library.count("shelf")) == (3, 0)
    assert "formerly" not in library.collections.path.read_text(encoding="utf-8")


def test_a_description_edited_by_hand_is_seen_at_once(filled: Workspace) -> None:
    edit(filled, "Notes about everything", "Notes about tea")
    assert filled.library.list_collections()[0]["description"] == "Notes about tea"


def test_what_is_not_changed_stays_as_its_owner_wrote_it(filled: Workspace) -> None:
    library, path = filled.library, filled.library.collections.path
    edit(filled, "name: econ\n", "name: econ\n    # for the course\n")
    edit(filled, "description: Money", "description: >-\n      Money\n      and banks")
    before = path.read_bytes()
    library.update_description("econ", "Money and banks", display_name="")
    assert path.read_bytes() == before
    library.update_description("econ", "Money and banks", display_name="Economics")
    assert path.read_bytes() == before.replace(b"and banks\n", b"and banks\n    display_name: Economics\n")
    library.update_description("econ", "", display_name="")
    row = next(row for row in library.list_collections() if row["name"] == "econ")
    assert (row["description"], row["display_name"]) == ("", "econ")
    assert "display_name" not in path.read_text(encoding="utf-8")


def test_a_description_with_nothing_after_it_is_none(filled: Workspace) -> None:
    edit(filled, "description: Money", "description:")
    assert {row["name"]: row["description"] for row in filled.library.list_collections()}["econ"] == ""


def test_a_topic_written_while_a_process_runs_is_told_what_took_its_place(filled: Workspace) -> None:
    edit(filled, "collections:", "topic: Tea\ncollections:")
    with pytest.raises(ConfigError, match="topic: 'Tea' is no longer used; describe each collection under"):
        filled.library.list_collections()


def test_a_file_that_cannot_be_written_keeps_the_chunks(filled: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(**_: object) -> int:
        raise StoreLockedError("another process writes; wait")

    monkeypatch.setattr(filled.store, "delete", locked)
    with pytest.raises(StoreLockedError):
        filled.library.delete_collection("notes")
    assert (filled.library.count("notes"), len(filled.library.list_collections())) == (3, 2)


def test_a_delete_that_is_interrupted_leaves_an_empty_collection(
    filled: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr("ragistry.config.collections.replace_text", crash)
        with pytest.raises(Crash):
            filled.library.delete_collection("notes")
    assert (filled.library.count("notes"), filled.library.count("econ")) == (0, 1)
    assert filled.library.delete_collection("notes") == 0
    assert [row["name"] for row in filled.library.list_collections()] == ["econ"]


def test_a_deleted_collection_is_gone_from_the_disk(filled: Workspace) -> None:
    filled.library.ingest_text("The password is xyzzy-plugh.", "secret.txt", "econ")
    assert filled.library.delete_collection("econ") == 2
    filled.close()
    files = [path for path in (filled.root / ".ragistry").rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if b"xyzzy-plugh" in path.read_bytes()] == []


def test_an_ingest_stops_where_its_collection_is_taken_away(filled: Workspace, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(f"Text of {name}.", encoding="utf-8")

    def remove(name: str, *_: object) -> None:
        if name == "b.txt":
            edit(filled, "name: econ", "name: other")

    with pytest.raises(CollectionNotFoundError, match="no collection 'econ'"):
        filled.library.ingest_paths([tmp_path / "a.txt", tmp_path / "b.txt"], "econ", progress=remove)
    assert [info.source_file for info in filled.library.orphans()] == ["prices.txt"], "nothing was written"
