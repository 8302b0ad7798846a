"""documents.yaml and the store stay together: renames that stop half-way, edits by hand, and other processes.

`test_state_machine` interrupts renames and deletions at every step.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock, Timeout

from ragistry import Workspace, open_workspace
from ragistry.errors import (
    CollectionAlreadyExistsError,
    CollectionNotFoundError,
    ConfigError,
    SourceNotFoundError,
    StoreError,
    StoreLockedError,
)
from ragistry.library.service import DocumentService
from ragistry.tools.search_library import SearchLibraryTool
from ragistry.types import EmbeddedChunk
from ragistry.utils.ids import chunk_id
from tests.conftest import Corpus
from tests.messages import check_message, refused
from tests.stores.scripts import run

pytestmark = pytest.mark.usefixtures("embedder")
FILES = ["0.txt", "1.txt", "2.txt"]
SECONDS = 60.0


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    """Three sources of two chunks each in ``notes``, one in ``econ``."""
    for index, name in enumerate(FILES):
        workspace.library.ingest_text(f"Tea of part {index}. " * 80, name, "notes")
    workspace.library.create_collection("econ", "Money")
    workspace.library.ingest_text("The price of milk.", "milk.txt", "econ")
    return workspace


@pytest.fixture
def between(filled: Workspace) -> Workspace:
    """``notes`` was renamed to ``shelf`` in an editor, and nothing was written since."""
    edit(filled, "name: notes", "name: shelf\n    formerly: notes")
    return filled


def edit(workspace: Workspace, old: str, new: str) -> None:
    """Edit documents.yaml by hand."""
    path = workspace.library.collections.path
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def lock_of_another_process(workspace: Workspace) -> FileLock:
    """The lock of the store, which a process has to hold to write."""
    return FileLock(workspace.root / ".ragistry" / "lock", timeout=0)


def found(library: DocumentService, query: str = "tea", collection: str | None = None, **options: Any) -> set[str]:
    """The collections of the results."""
    documents = library.search(query, collection, 20, technique="bm25", **options).documents
    return {document.metadata["collection"] for document in documents}


def assert_renamed(workspace: Workspace) -> None:
    library = workspace.library
    assert library.list_sources("shelf") == FILES
    assert (workspace.store.count({"collection": "shelf"}), workspace.store.count({"collection": "notes"})) == (6, 0)
    assert {document.id for document in workspace.store.scan({"collection": "shelf"})} == {
        chunk_id("shelf", name, index) for name in FILES for index in (0, 1)
    }
    assert "formerly" not in library.collections.path.read_text(encoding="utf-8")


# A rename


def test_on_a_locked_store_no_rename_is_begun(filled: Workspace) -> None:
    library = filled.library
    before = library.collections.path.read_bytes()
    with lock_of_another_process(filled), refused(StoreLockedError, filled.root / ".ragistry"):
        library.rename_collection("notes", "shelf")
    assert library.collections.path.read_bytes() == before
    assert found(library) == {"notes"}
    assert library.rename_collection("notes", "shelf") == 6
    assert_renamed(filled)


def test_no_other_process_can_write_between_the_two_names(filled: Workspace) -> None:
    outcomes: list[str] = []

    def write_elsewhere() -> None:
        try:
            with lock_of_another_process(filled):
                outcomes.append("written")
        except Timeout:
            outcomes.append("refused")

    filled.library.collections.edited.append(write_elsewhere)
    filled.library.rename_collection("notes", "shelf")
    assert outcomes == ["refused", "written"], "with the new name beside the old one, then without the old one"


def test_rename_that_fails_is_finished_by_the_same_call(filled: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    library = filled.library

    def failing(*_: str) -> int:
        raise StoreError("the disk is full; make room")

    with monkeypatch.context() as patch:
        patch.setattr(filled.store, "move_collection", failing)
        with refused(StoreError, "'notes'", "'shelf'", library.collections.path, "the disk is full"):
            library.rename_collection("notes", "shelf")
    assert filled.store.count({"collection": "notes"}) == 6
    assert library.rename_collection("notes", "shelf") == 6
    assert_renamed(filled)
    library.create_collection("notes", "Others")
    with refused(CollectionAlreadyExistsError, "'shelf'"):
        library.rename_collection("notes", "shelf")


def test_a_rename_that_two_processes_finish_at_once_is_finished(filled: Workspace) -> None:
    with open_workspace(filled.root) as other:
        end_rename = filled.library.collections.end_rename

        def late(name: str) -> None:
            filled.library.collections.end_rename = end_rename  # type: ignore[method-assign]
            other.library.delete_collection("shelf")
            end_rename(name)

        filled.library.collections.end_rename = late  # type: ignore[method-assign]
        filled.library.rename_collection("notes", "shelf")
    assert (filled.library.orphans(), filled.library.list_sources()) == ([], ["milk.txt"])


def test_no_model_is_called_to_move_rename_describe_or_delete(filled: Workspace, embedder: Any) -> None:
    library, calls = filled.library, embedder.calls
    before = filled.store.vectors([chunk_id("notes", "1.txt", index) for index in (0, 1)])
    library.ingest_text("An older text.", "1.txt", "econ")
    assert library.move_source("1.txt", "notes", "econ", overwrite=True) == 2
    after = filled.store.vectors([chunk_id("econ", "1.txt", index) for index in (0, 1)])
    assert (before == after).all()
    assert (library.rename_collection("notes", "shelf"), library.count("econ")) == (4, 3)
    library.update_description("shelf", "Tea")
    assert (library.delete_source("1.txt", "econ"), library.delete_collection("shelf")) == (2, 4)
    assert embedder.calls == calls + 1, "the older text"
    assert library.ingest_text("An older text.", "1.txt", "econ") == 1


# What is told of a collection between its two names


def test_a_collection_between_two_names_is_known_by_the_new_one(between: Workspace) -> None:
    library, tool = between.library, SearchLibraryTool(between.library)
    assert between.store.count({"collection": "shelf"}) == 0
    for technique in ("naive", "bm25", "hybrid", "parent_document"):
        for collection in (None, "shelf"):
            documents = library.search("tea of part", collection, technique=technique).documents
            names = {document.metadata["collection"] for document in documents}
            assert names - ({"econ"} if collection is None else set()) == {"shelf"}, technique
    assert {info.collection for info in library.sources()} == {"econ", "shelf"}
    assert [(row["name"], row["chunk_count"]) for row in library.list_collections()] == [("shelf", 6), ("econ", 1)]
    enum = tool.schema()["function"]["parameters"]["properties"]["collection"]["enum"]
    assert ("shelf" in enum, "econ" in enum, "notes" in enum) == (True, True, False)
    assert "[shelf]" in tool.handle({"query": "tea"})
    library.delete_source("milk.txt", "econ")
    assert_renamed(between)


def test_copies_are_listed_under_the_new_name(between: Workspace) -> None:
    copy = {"collection": "notes", "source_file": "copy.txt", "chunk_index": 0, "source_hash": "1"}
    between.store.replace_source("notes", "copy.txt", [EmbeddedChunk("The price of milk.", copy, None)])
    [milk] = between.search("price of milk", "bm25").documents
    assert {milk.metadata["collection"], milk.metadata["copy_places"][0].partition(":")[0]} == {"econ", "shelf"}


def test_a_condition_means_a_collection_by_its_new_name(between: Workspace) -> None:
    between.store.move_source("2.txt", "notes", "econ")
    for where, expected in [
        ({"collection": "shelf"}, {"shelf"}),
        ({"collection": {"$ne": "shelf"}}, {"econ"}),
        ({"collection": {"$in": ["shelf", "econ"]}}, {"shelf", "econ"}),
        ({"collection": {"$nin": ["shelf", "x"]}}, {"econ"}),
        ({"$or": [{"collection": "shelf"}, {"chunk_index": 99}]}, {"shelf"}),
        ({"collection": "econ"}, {"econ"}),
    ]:
        assert found(between.library, where=where) == expected, where


def test_every_url_of_a_search_can_be_read_between_two_names(between: Workspace) -> None:
    pytest.importorskip("mcp")
    from ragistry.mcp import server

    tool = SearchLibraryTool(between.library)
    [answer] = server.call_tool(tool, "search", {"query": "the price of milk and tea"}).content
    results = json.loads(answer.text)["results"]
    assert len({result["url"] for result in results}) == len(results) > 1
    collections = [result["url"].split("/")[3] for result in results]
    assert set(collections) == {"shelf", "econ"}
    for result, collection in zip(results, collections, strict=True):
        [content] = server.read_resource(tool.reach, result["url"]).contents
        read = json.loads(content.text)
        assert (read["id"], read["url"], read["metadata"]["collection"]) == (result["id"], result["url"], collection)
        [fetched] = server.call_tool(tool, "fetch", {"id": result["id"]}).content
        assert json.loads(fetched.text) == read


def test_text_around_a_passage_is_found_between_two_names(between: Workspace) -> None:
    from ragistry.web.reader import context_in_store

    between.library.ingest_text("A kettle sings. " * 400, "long.txt", "econ")
    edit(between, "name: econ", "name: money\n    formerly: econ")
    [hit] = between.library.search("kettle", "money", 20, technique="bm25", where={"chunk_index": 1}).documents
    assert hit.id == chunk_id("econ", "long.txt", 1)
    shown = context_in_store(between.store, hit)
    assert (bool(shown.before), bool(shown.after)) == (True, True)


# Sources of one name under both names


def test_of_two_versions_the_later_one_is_kept(
    filled: Workspace, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, folder = filled.library, corpus({"one.txt": "Tea of one."})
    library.ingest_file(folder / "one.txt", "notes")
    library.collections.begin_rename("notes", "shelf")
    monkeypatch.setattr(library, "_complete_renames", lambda: None)  # as a process that looked before the rename
    corpus({"one.txt": "A later text."})
    library.ingest_file(folder / "one.txt", "shelf")
    monkeypatch.undo()
    library.create_collection("another")
    assert library.list_sources("shelf") == [*FILES, "one.txt"]
    assert filled.store.count({"collection": "notes"}) == 0
    assert [d.content for d in filled.store.get([chunk_id("shelf", "one.txt", 0)])] == ["A later text."]


def test_a_former_name_that_is_defined_again_keeps_its_chunks(filled: Workspace) -> None:
    edit(filled, "name: econ", "name: shelf\n    formerly: notes")
    filled.library.create_collection("another")
    assert (filled.library.count("notes"), filled.library.count("shelf")) == (6, 0)
    assert "formerly" not in filled.library.collections.path.read_text(encoding="utf-8")


def test_a_former_name_in_the_entry_of_another_collection_loses_nothing(filled: Workspace) -> None:
    library, path = filled.library, filled.library.collections.path
    library.ingest_text("Salt is taxed.", "1.txt", "econ")
    entry = next(item for item in path.read_text(encoding="utf-8").split("  - ") if item.startswith("name: notes"))
    edit(filled, f"  - {entry}", "")
    edit(filled, "name: econ", "name: econ\n    formerly: notes")
    with refused(StoreError, "'notes'", "'econ'", "'1.txt'"):
        library.ingest_text("Pepper", "pepper.txt", "econ")
    assert filled.store.count({"collection": "notes"}) == 6
    assert found(library, "salt", "econ") == {"econ"}
    edit(filled, "    formerly: notes\n", "")
    library.create_collection("notes")
    library.move_source("1.txt", "notes", "econ", overwrite=True)
    assert library.list_sources("notes") == ["0.txt", "2.txt"]


def test_two_texts_without_a_known_hash_are_both_kept(filled: Workspace, embedder: Any) -> None:
    for name in ("notes", "shelf"):
        facts = {"source_file": "x.txt", "chunk_index": 0, "collection": name}
        [vector] = embedder.embed([f"Tea by the {name}."])
        filled.store.add_documents([EmbeddedChunk(f"Tea by the {name}.", facts, vector)], ids=[f"x in {name}"])
    edit(filled, "name: notes", "name: shelf\n    formerly: notes")
    with refused(StoreError, "'x.txt'"):
        filled.library.ingest_text("Pepper", "pepper.txt", "econ")
    assert filled.store.count({"source_file": "x.txt"}) == 2


# Edits by hand, and files that cannot be written


def test_edits_by_hand_are_seen_at_once_and_what_is_not_changed_stays(filled: Workspace) -> None:
    library, path = filled.library, filled.library.collections.path
    edit(filled, "Notes about everything", "Notes about tea")
    edit(filled, "name: econ\n", "name: econ\n    # for the course\n")
    edit(filled, "description: Money", "description: >-\n      Money\n      and banks")
    assert [row["description"] for row in library.list_collections()] == ["Notes about tea", "Money and banks"]
    before = path.read_bytes()
    library.update_description("econ", "Money and banks", display_name="")
    assert path.read_bytes() == before
    library.update_description("econ", "Money and banks", display_name="Economics")
    assert path.read_bytes() == before.replace(b"and banks\n", b"and banks\n    display_name: Economics\n")
    library.update_description("econ", "", display_name="")
    assert [library.list_collections()[1][key] for key in ("description", "display_name")] == ["", "econ"]
    edit(filled, "Notes about tea", "")
    assert library.list_collections()[0]["description"] == ""
    edit(filled, "collections:", "topic: Tea\ncollections:")
    with refused(ConfigError, path, "topic"):
        library.list_collections()


def test_an_ingest_goes_on_where_documents_yaml_cannot_be_locked(filled: Workspace) -> None:
    lock = filled.library.collections.path.with_name(".documents.yaml.lock")
    lock.unlink()
    lock.mkdir()  # stands for a folder that is mounted to be read only
    assert filled.library.ingest_text("Tea from the hills.", "tea.txt", "notes") == 1
    with pytest.raises(SourceNotFoundError):
        filled.library.move_source("nothing.txt", "econ", "notes")


# A write while its collection ends


def test_an_ingest_stops_where_its_collection_is_taken_out_by_hand(filled: Workspace, corpus: Corpus) -> None:
    folder = corpus({"a.txt": "Text of a.", "b.txt": "Text of b."})

    def remove(name: str, *_: object) -> None:
        if name == "b.txt":
            edit(filled, "name: econ", "name: other")

    with refused(CollectionNotFoundError, "'econ'"):
        filled.library.ingest_paths([folder / "a.txt", folder / "b.txt"], "econ", progress=remove)
    assert [info.source_file for info in filled.library.orphans()] == ["milk.txt"], "nothing was written"


def test_write_to_a_collection_that_is_taken_out_does_not_stay(
    filled: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, write = filled.library, filled.store.replace_source

    def edited(*words: Any) -> None:
        monkeypatch.undo()
        edit(filled, "name: econ", "name: paper")
        library.search("tea", technique="bm25")
        write(*words)

    monkeypatch.setattr(filled.store, "replace_source", edited)
    with refused(CollectionNotFoundError, "'econ'"):
        library.ingest_text("Tea from the hills.", "tea.txt", "econ")
    assert [info.source_file for info in library.orphans()] == ["milk.txt"]


ENDS: dict[str, Callable[[DocumentService], object]] = {
    "delete": lambda library: library.delete_collection("notes"),
    "rename": lambda library: library.rename_collection("notes", "shelf"),
}
WRITES: dict[str, Callable[[DocumentService], object]] = {
    "replace_source": lambda library: library.ingest_text("Tea from the hills.", "tea.txt", "notes"),
    "move_source": lambda library: library.move_source("milk.txt", "econ", "notes"),
}


@contextmanager
def paused_before(part: Any, method: str) -> Iterator[tuple[threading.Event, threading.Event]]:
    """The method waits: it sets the first event and goes on at the second one."""
    reached, go_on, call = threading.Event(), threading.Event(), getattr(part, method)

    def paused(*arguments: Any) -> Any:
        reached.set()
        assert go_on.wait(SECONDS)
        return call(*arguments)

    setattr(part, method, paused)
    try:
        yield reached, go_on
    finally:
        go_on.set()
        setattr(part, method, call)


@pytest.mark.parametrize("end", ENDS)
def test_a_write_after_the_end_of_its_collection_is_refused(filled: Workspace, end: str) -> None:
    messages: list[str] = []

    def write(library: DocumentService) -> None:
        try:
            WRITES["replace_source"](library)
        except CollectionNotFoundError as error:
            messages.append(str(error))

    with open_workspace(filled.root) as other, paused_before(other.library.store, "known_vectors") as (reached, go_on):
        writer = threading.Thread(target=write, args=(other.library,))
        writer.start()
        assert reached.wait(SECONDS)
        ENDS[end](filled.library)
        found(filled.library)  # orphans are looked for, and remembered
        go_on.set()
        writer.join(SECONDS)
    [message] = messages
    check_message(message, "'notes'")
    assert filled.library.orphans() == []
    assert filled.library.list_sources() == [*(FILES if end == "rename" else []), "milk.txt"]


@pytest.mark.parametrize("method", WRITES)
@pytest.mark.parametrize("end", ENDS)
def test_the_end_of_a_collection_waits_for_a_write_to_it(filled: Workspace, end: str, method: str) -> None:
    ended = threading.Event()

    def finish() -> None:
        with suppress(CollectionNotFoundError):
            ENDS[end](filled.library)
            ended.set()

    with open_workspace(filled.root) as other, paused_before(other.store, method) as (reached, go_on):
        writer = threading.Thread(target=WRITES[method], args=(other.library,))
        writer.start()
        assert reached.wait(SECONDS)
        ending = threading.Thread(target=finish)
        ending.start()
        assert not ended.wait(0.3), "it must not end before the write"
        go_on.set()
        writer.join(SECONDS)
        ending.join(SECONDS)
    assert ended.is_set()
    assert filled.library.orphans() == []
    assert filled.store.count({"collection": "notes"}) == 0
    written = "tea.txt" if method == "replace_source" else "milk.txt"
    assert (written in filled.library.list_sources()) == (end == "rename")


ENDED = """
import os, shutil, sys
from ragistry import open_workspace
from ragistry.config import collections
from ragistry.stores.local import LocalStore

def ending(plain):
    def call(*arguments, **options):
        for part in (lambda: None, lambda: plain(*arguments, **options)):
            done = part()
            step.append(0)
            if len(step) == last:
                os._exit(9)
        return done
    return call

collections.replace_text, LocalStore.delete = ending(collections.replace_text), ending(LocalStore.delete)
for last in range(1, 8):
    folder, step = shutil.copytree(sys.argv[1], f"{sys.argv[1]}-{last}"), []
    if not (child := os.fork()):
        with open_workspace(folder) as opened:
            opened.library.delete_collection("gone")
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_deletion_that_is_killed_leaves_the_collection_with_its_chunks_or_neither(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    with open_workspace(base) as opened:
        for name in ("gone", "kept"):
            opened.library.create_collection(name)
            opened.library.ingest_text("Green tea.", collection=name, source="tea")
        opened.search("tea")
    assert run(ENDED, base).split() == ["9"] * 6 + ["0"]
    states = []
    for last in range(1, 8):
        for _ in range(2):  # the first one finishes the deletion
            with open_workspace(f"{base}-{last}") as opened:
                assert opened.store.verify() == []
                chunks = {row["name"]: row["chunk_count"] for row in opened.library.list_collections()}
                assert (opened.library.orphans(), len(opened.search("tea").documents)) == ([], 1)
            assert ("gone" in Path(f"{base}-{last}", "config", "documents.yaml").read_text()) is ("gone" in chunks)
        states.append(chunks)
    assert states == [{"gone": 1, "kept": 1}] * 3 + [{"kept": 1}] * 4
    with open_workspace(f"{base}-4") as opened:
        opened.library.create_collection("gone")
    with open_workspace(f"{base}-4") as opened:
        assert len(opened.library.list_collections()) == 2
