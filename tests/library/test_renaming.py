"""A rename while another process writes, and what everybody is told of a collection between its two names."""

from __future__ import annotations

import json

import pytest

from ragistry import Workspace
from ragistry.errors import CollectionAlreadyExistsError, StoreError, StoreLockedError
from ragistry.tools.search_library import SearchLibraryTool
from ragistry.types import EmbeddedChunk, Where
from ragistry.utils.ids import chunk_id
from tests.library.locking import locked
from tests.stores.scripts import run


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    workspace.library.create_collection("econ", "Money")
    for index in range(3):
        workspace.library.ingest_text(f"Tea of part {index}. " * 80, f"{index}.txt", "notes")
    return workspace


@pytest.fixture
def between(filled: Workspace) -> Workspace:
    """The owner has renamed a collection in an editor, and nobody has written since."""
    path = filled.library.collections.path
    path.write_text(path.read_text(encoding="utf-8").replace("name: notes", "name: shelf\n    formerly: notes"))
    return filled


def test_on_a_locked_store_nothing_is_begun(filled: Workspace) -> None:
    library = filled.library
    before = library.collections.path.read_bytes()
    with locked(filled.root), pytest.raises(StoreLockedError, match="is being written by process"):
        library.rename_collection("notes", "shelf")
    assert library.collections.path.read_bytes() == before
    assert library.search("tea", "notes").documents
    assert library.rename_collection("notes", "shelf") == library.count("shelf") > 0


def test_nobody_else_writes_between_the_two_names(filled: Workspace) -> None:
    refused: list[str] = []
    library = filled.library

    def write_elsewhere() -> None:
        code = (
            "import sys; from ragistry.stores.local import LocalStore; from ragistry.errors import StoreLockedError\n"
            "store = LocalStore(sys.argv[1], lock_timeout=0)\n"
            "try: store.writing().__enter__()\n"
            "except StoreLockedError: print('refused')"
        )
        refused.append(run(code, filled.root / ".ragistry").strip())

    library.collections.edited.append(write_elsewhere)
    library.rename_collection("notes", "shelf")
    assert refused == ["refused", ""], "the file is written with the new name, then without the old one"


def test_a_rename_that_fails_half_way_says_so_and_is_completed_by_the_same_command(
    filled: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = filled.library

    def failing(*_: str) -> int:
        raise StoreError("the disk is full; make room")

    with monkeypatch.context() as patch:
        patch.setattr(filled.store, "move_collection", failing)
        said = r"renamed 'notes' to 'shelf' in .*the disk is full; make room.*the same rename.* finishes it"
        with pytest.raises(StoreError, match=said):
            library.rename_collection("notes", "shelf")
    assert filled.store.count({"collection": "notes"}) > 0
    assert library.rename_collection("notes", "shelf") > 0
    assert library.list_sources("shelf") == ["0.txt", "1.txt", "2.txt"]
    assert "formerly" not in library.collections.path.read_text(encoding="utf-8")
    library.create_collection("notes", "Others")
    with pytest.raises(CollectionAlreadyExistsError):
        library.rename_collection("notes", "shelf")


def test_a_collection_between_two_names_is_told_by_the_new_one(between: Workspace) -> None:
    library = between.library
    assert between.store.count({"collection": "shelf"}) == 0
    for technique in ("naive", "bm25", "hybrid", "parent_document"):
        for collection in (None, "shelf"):
            documents = library.search("tea", collection, technique=technique).documents
            assert {document.metadata["collection"] for document in documents} == {"shelf"}, technique
    tool = SearchLibraryTool(library)
    enum = tool.schema()["function"]["parameters"]["properties"]["collection"]["enum"]
    assert "[shelf]" in tool.handle({"query": "tea"})
    assert {"shelf", "econ"} <= set(enum)
    assert "notes" not in enum


@pytest.mark.parametrize(("where", "found"), [
    ({"collection": "shelf"}, {"shelf"}), ({"collection": {"$ne": "shelf"}}, {"econ"}),
    ({"collection": {"$in": ["shelf", "econ"]}}, {"shelf", "econ"}),
    ({"collection": {"$nin": ["shelf", "x"]}}, {"econ"}),
    ({"$or": [{"collection": "shelf"}, {"chunk_index": 99}]}, {"shelf"}), ({"collection": "econ"}, {"econ"}),
])  # fmt: skip
def test_a_condition_means_a_collection_by_the_name_that_is_told(
    between: Workspace, where: Where, found: set[str]
) -> None:
    between.store.move_source("2.txt", "notes", "econ")
    for technique in ("naive", "bm25"):
        documents = between.library.search("tea", n=20, where=where, technique=technique).documents
        assert {document.metadata["collection"] for document in documents} == found


def test_every_url_of_a_search_can_be_read_between_two_names(between: Workspace) -> None:
    pytest.importorskip("mcp")
    from ragistry.mcp import collections, tools

    tool = SearchLibraryTool(between.library)
    [answer] = tools.call(tool, "search", {"query": "tea"}).content
    results = json.loads(answer.text)["results"]
    assert len({result["url"] for result in results}) == len(results) > 1
    for result in results:
        assert result["url"].startswith("ragistry://collections/shelf/")
        [content] = collections.read(tool.reach, result["url"]).contents
        read = json.loads(content.text)
        assert (read["id"], read["url"], read["metadata"]["collection"]) == (result["id"], result["url"], "shelf")
        [fetched] = tools.call(tool, "fetch", {"id": result["id"]}).content
        assert json.loads(fetched.text) == read


def test_text_around_a_passage_is_found_between_two_names(between: Workspace) -> None:
    from ragistry.web.around import around

    source = "A kettle sings. " * 400
    between.library.ingest_text(source, "long.txt", "econ")
    path = between.library.collections.path
    path.write_text(path.read_text(encoding="utf-8").replace("name: econ", "name: money\n    formerly: econ"))
    hits = between.library.search("kettle", "money", n=20, where={"chunk_index": 1}).documents
    [hit] = [hit for hit in hits if hit.id == chunk_id("econ", "long.txt", 1)]
    found = around(between.store, hit)
    assert found.before
    assert found.after


def test_a_former_name_written_into_the_entry_of_another_takes_nothing_from_either(filled: Workspace) -> None:
    library = filled.library
    library.ingest_text("Salt is taxed.", "1.txt", "econ")
    path = library.collections.path
    asked = path.read_text(encoding="utf-8")
    entry = next(item for item in asked.split("  - ") if item.startswith("name: notes"))
    path.write_text(asked.replace(f"  - {entry}", "").replace("name: econ", "name: econ\n    formerly: notes"))
    with pytest.raises(StoreError, match=r"'notes' and 'econ' both have a source called '1.txt'; take `formerly"):
        library.ingest_text("Pepper", "pepper.txt", "econ")
    assert filled.store.count({"collection": "notes"}) > 0
    assert library.search("salt", "econ", technique="bm25").documents
    path.write_text(path.read_text(encoding="utf-8").replace("    formerly: notes\n", ""))
    library.create_collection("notes")
    library.move_source("1.txt", "notes", "econ", overwrite=True)
    assert library.list_sources("notes") == ["0.txt", "2.txt"]


def test_two_texts_of_which_nobody_knows_the_hash_are_both_kept(filled: Workspace) -> None:
    for name in ("notes", "shelf"):
        facts = {"source_file": "x.txt", "chunk_index": 0, "collection": name}
        [vector] = filled.embedder.embed([f"Tea by the {name}."])
        filled.store.add_documents([EmbeddedChunk(f"Tea by the {name}.", facts, vector)], ids=[f"x in {name}"])
    path = filled.library.collections.path
    path.write_text(path.read_text(encoding="utf-8").replace("name: notes", "name: shelf\n    formerly: notes"))
    with pytest.raises(StoreError, match="both have a source called 'x.txt'"):
        filled.library.ingest_text("Pepper", "pepper.txt", "econ")
    assert filled.store.count({"source_file": "x.txt"}) == 2
