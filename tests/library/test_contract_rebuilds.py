"""Rebuilds, failures and several writers: the old version of a collection stays until the new one is whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ragistry.errors import (
    CollectionNotFoundError,
    EmbeddingGenerationError,
    ModelConnectionError,
    StoreError,
)
from ragistry.library.contract import (
    Collection,
    DocumentChunk,
    add_chunks,
    create_collection,
    delete_collection,
    get_collection,
    list_collections,
    search_chunks,
    update_collection_metadata,
)
from ragistry.stores.local import LocalStore
from ragistry.testing.hashed import HashingEmbedder
from tests.messages import check_message, refused
from tests.stores.scripts import run


def chunks(*names: str) -> list[DocumentChunk]:
    return [DocumentChunk(name, f"text {name}", "a.md", "docs", "", 0, 2) for name in names]


def create(path: Path, *names: str, embedder: Any = None, **metadata: Any) -> Collection:
    """A collection with these chunks; without chunks, one whose rebuild is about to begin if there was one."""
    collection = create_collection("docs", metadata, path=path, embedder=embedder or HashingEmbedder())
    if names:
        add_chunks(collection, chunks(*names))
    return collection


def another(path: Path) -> Collection:
    """The collection as another process sees it."""
    return get_collection("docs", path=path, embedder=HashingEmbedder())


def ids(path: Path) -> set[str]:
    return {match.chunk_id for match in search_chunks(another(path), "text", 100).matches}


def versions(path: Path) -> int:
    return len(list(path.glob("docs@*")))


def write(collection: Collection, in_block: bool, *names: str) -> None:
    with collection if in_block else nullcontext():
        add_chunks(collection, chunks(*names))


def interrupt(collection: Collection, *names: str) -> None:
    """Add chunks in a block that is left by an exception."""
    with suppress(KeyboardInterrupt), collection:
        add_chunks(collection, chunks(*names))
        raise KeyboardInterrupt


# The old version stays until the new is whole


def test_rebuild_replaces_the_old_version_when_it_is_complete(tmp_path: Path) -> None:
    in_hand = create(tmp_path, "old", version=1)
    new = create(tmp_path, version=2)
    assert (new.count(), new.metadata, ids(tmp_path)) == (0, {"version": 2}, {"old"})
    assert list_collections(path=tmp_path)[0].metadata == {"version": 1}
    add_chunks(new, chunks("new", "newer"))
    assert ids(tmp_path) == {"new", "newer"}
    assert (in_hand.count(), in_hand.metadata) == (2, {"version": 2}), "an open collection follows"
    assert versions(tmp_path) == 1
    assert add_chunks(new, chunks("newest")) == 1, "from then on it is a collection like any other"
    assert ids(tmp_path) == {"new", "newer", "newest"}


def test_rebuild_in_a_block_is_seen_when_the_block_ends(tmp_path: Path) -> None:
    create(tmp_path, "old")
    with create(tmp_path) as new:
        add_chunks(new, chunks("1"))
        update_collection_metadata(another(tmp_path), {"note": "of the old"})
        assert versions(tmp_path) == 2, "the unfinished version is not removed as a leftover"
        add_chunks(new, chunks("2"))
        update_collection_metadata(new, {"total_chunks": 2})
        assert (new.count(), ids(tmp_path)) == (2, {"old"})
    assert ids(tmp_path) == {"1", "2"}
    assert another(tmp_path).metadata["total_chunks"] == 2
    interrupt(create(tmp_path), "3")
    assert ids(tmp_path) == {"1", "2"}
    update_collection_metadata(another(tmp_path), {})
    assert versions(tmp_path) == 1, "the unfinished version is removed"


@pytest.mark.parametrize("empty", [[], [DocumentChunk("id", " ", "a.md", "docs", "", 0, 0)]])
def test_rebuild_without_chunks_leaves_an_empty_collection(tmp_path: Path, empty: list[DocumentChunk]) -> None:
    create(tmp_path, "old")
    new = create(tmp_path, version=2)
    assert add_chunks(new, empty, on_empty="skip") == 0
    assert (ids(tmp_path), another(tmp_path).metadata) == (set(), {"version": 2})
    update_collection_metadata(new, {"total_chunks": 0})
    assert another(tmp_path).metadata["total_chunks"] == 0
    assert versions(tmp_path) <= 1
    add_chunks(new, chunks("newer"))
    assert ids(tmp_path) == {"newer"}


@pytest.mark.parametrize(("error", "on_error"), [(ModelConnectionError, "raise"), (EmbeddingGenerationError, "skip")])
def test_rebuild_that_embeds_nothing_leaves_the_old_version(tmp_path: Path, error: Any, on_error: Any) -> None:
    def check(texts: object) -> None:
        raise error("it cannot")

    create(tmp_path, "old")
    new = create(tmp_path, embedder=HashingEmbedder(check=check))
    if on_error == "raise":
        with refused(EmbeddingGenerationError):
            add_chunks(new, chunks("new"))
    else:
        assert add_chunks(new, chunks("new"), on_error="skip") == 0
    assert ids(tmp_path) == {"old"}


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.library.test_contract_rebuilds import *
collection = create(Path(sys.argv[1]), version=2)
collection.__enter__()
add_chunks(collection, chunks("1", "2"))
assert collection.count() == 2
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_killed_rebuild_leaves_the_old_version(tmp_path: Path) -> None:
    create(tmp_path, "old").close()
    run(KILLED, tmp_path, ends=-signal.SIGKILL)
    assert (ids(tmp_path), versions(tmp_path)) == ({"old"}, 2)
    update_collection_metadata(another(tmp_path), {})
    assert (ids(tmp_path), versions(tmp_path)) == ({"old"}, 1), "what the killed process made is removed"


def test_first_version_that_cannot_be_recorded_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = Mock(side_effect=OSError(28, "No space left on device"))
    create(tmp_path, "old")
    for collection in (create(tmp_path), create_collection("empty", {}, path=tmp_path, embedder=HashingEmbedder())):
        with monkeypatch.context() as patch, refused(StoreError):
            patch.setattr("os.fsync", full)
            add_chunks(collection, chunks("new"))
        assert (add_chunks(collection, chunks("new")), collection.count()) == (1, 1), "it is not a duplicate"
    assert list(tmp_path.glob(".*")) == []


# Several writers


@pytest.mark.parametrize("begin", [create, another])
def test_writes_of_others_during_a_block_over_an_empty_collection_stay(tmp_path: Path, begin: Any) -> None:
    create(tmp_path, commit_hash="a")
    with begin(tmp_path) as collection:
        add_chunks(collection, chunks("1"))
        assert ids(tmp_path) == {"1"}, "a first version is visible at once"
        assert add_chunks(another(tmp_path), chunks("2", "3")) == 2
        update_collection_metadata(another(tmp_path), {"commit_hash": "b"})
        add_chunks(collection, chunks("4"))
    assert ids(tmp_path) == {"1", "2", "3", "4"}
    assert another(tmp_path).metadata["commit_hash"] == "b"


def test_blocks_over_an_empty_collection_share_it(tmp_path: Path) -> None:
    with create(tmp_path) as one, create(tmp_path) as two:
        add_chunks(one, chunks("1"))
        add_chunks(two, chunks("2"))
    assert ids(tmp_path) == {"1", "2"}
    interrupt(create(tmp_path / "other"), "1")
    assert ids(tmp_path / "other") == {"1"}, "also after an error"


def test_collection_deleted_during_a_block_stays_deleted(tmp_path: Path) -> None:
    with create(tmp_path) as collection:
        add_chunks(collection, chunks("1"))
        assert delete_collection("docs", path=tmp_path) == 1
    assert (list_collections(path=tmp_path), versions(tmp_path)) == ([], 0)


def rebuilt_by_another(path: Path) -> None:
    create(path, "1", version=2)
    add_chunks(another(path), chunks("7"))


MEANWHILE: dict[str, tuple[Callable[[Path], object], type[Exception], set[str]]] = {
    "deleted": (lambda path: delete_collection("docs", path=path), CollectionNotFoundError, set()),
    "rebuilt": (rebuilt_by_another, StoreError, {"1", "7"}),
    "added to": (lambda path: add_chunks(another(path), chunks("more")), StoreError, {"old", "more"}),
}


@pytest.mark.parametrize("in_block", [True, False])
@pytest.mark.parametrize("change", MEANWHILE)
def test_rebuild_does_not_replace_what_changed_meanwhile(tmp_path: Path, change: str, in_block: bool) -> None:
    act, error, left = MEANWHILE[change]
    create(tmp_path, "old", version=1)
    new = create(tmp_path, version=3)
    act(tmp_path)
    with refused(error, "'docs'"):
        write(new, in_block, "new")
    if not left:
        assert list_collections(path=tmp_path) == []
        return
    assert ids(tmp_path) == left
    update_collection_metadata(another(tmp_path), {})
    assert versions(tmp_path) == 1, "what was not put in place is removed"
    assert another(tmp_path).metadata["version"] < 3
    create(tmp_path, "3", version=3)
    assert (ids(tmp_path), another(tmp_path).metadata) == ({"3"}, {"version": 3})


def test_threads_share_a_folder_and_a_collection(tmp_path: Path) -> None:
    create(tmp_path, "old")
    collection = create(tmp_path)
    add_chunks(collection, chunks("new"))

    def work(number: int) -> str:
        create_collection(f"other-{number}", {}, path=tmp_path)
        update_collection_metadata(collection, {f"key{number}": number})
        assert len(list_collections(path=tmp_path)) >= 2
        add_chunks(collection, chunks(f"{number}", f"{number} more"), batch_size=1)
        return search_chunks(collection, f"text {number} more", 1).matches[0].chunk_id

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [f"{number} more" for number in range(4)]
    assert {f"key{number}" for number in range(4)} < another(tmp_path).metadata.keys()
    assert len(ids(tmp_path)) == 9


WRITER = """
import sys
from pathlib import Path
from tests.library.test_contract_rebuilds import *
for number in range(4):
    add_chunks(another(Path(sys.argv[1])), chunks(f"{sys.argv[2]}{number}"))
"""


def test_two_processes_write_to_one_collection(tmp_path: Path) -> None:
    create(tmp_path)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda name: run(WRITER, tmp_path, name), "ab"))
    assert ids(tmp_path) == {f"{name}{number}" for name in "ab" for number in range(4)}


# Readers


@contextmanager
def reading(collection: Collection) -> Iterator[list[set[str]]]:
    """Search in a thread from the beginning of the block to its end; gives the sets of ids as they changed."""
    seen: list[set[str]] = []
    searched, stopped = threading.Semaphore(0), threading.Event()

    def read() -> None:
        while not stopped.wait(0.001):
            found = {match.chunk_id for match in search_chunks(collection, "text", 100).matches}
            if seen[-1:] != [found]:
                seen.append(found)
            searched.release()

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(read)
        try:
            assert searched.acquire(timeout=30), reader
            yield seen
            while searched.acquire(blocking=False):
                pass
            assert all(searched.acquire(timeout=30) for _ in range(2)), reader  # the second began after the block
        finally:
            stopped.set()
        reader.result()


def test_readers_see_the_old_or_the_new_version_during_rebuilds(tmp_path: Path) -> None:
    every = [{f"{number} a", f"{number} b"} for number in range(4)]
    create(tmp_path, *every[0])
    with reading(another(tmp_path)) as seen:
        for names in every[1:]:
            create(tmp_path, *names)
    assert (seen[0], seen[-1]) == (every[0], every[3])
    assert all(found in every for found in seen)


@pytest.mark.parametrize(("is_filled", "in_block"), [(True, True), (True, False), (False, False)])
def test_shared_collection_never_loses_chunks_while_it_is_filled(
    tmp_path: Path, is_filled: bool, in_block: bool
) -> None:
    create(tmp_path, *["old"] * is_filled)
    collection = create(tmp_path)
    with reading(collection) as seen:
        write(collection, in_block, "new")
    assert seen == [set(), {"new"}]


def test_reader_whose_store_another_thread_closed_reads_again(tmp_path: Path) -> None:
    create(tmp_path, "old")
    collection = another(tmp_path)
    used: list[LocalStore] = []

    def use(store: Any) -> int:
        used.append(store)
        if len(used) == 1:  # as another thread that knew the previous version, and opens that
            collection.close()
        return store.count()

    assert (collection.read(use, 0), len(used)) == (1, 2)
    collection.close()
    with refused(StoreError):
        collection.read(lambda store: len(store.vectors(["none"])), 0)


@pytest.mark.parametrize("change", ["deleted", "rebuilt", None])
def test_list_continues_if_a_collection_changes_while_it_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str | None
) -> None:
    create(tmp_path, "old")

    def opened(folder: Path) -> None:
        monkeypatch.undo()
        if change is not None:
            MEANWHILE[change][0](tmp_path)
        raise StoreError("unable to open database file")

    monkeypatch.setattr("ragistry.library.contract.collection.open_local", opened)
    if change is None:
        with refused(StoreError):
            list_collections(path=tmp_path)
    else:
        assert [info.chunk_count for info in list_collections(path=tmp_path)] == [len(MEANWHILE[change][2])]


# Damage and leftovers


@pytest.mark.parametrize("repair", ["delete", "rebuild"])
def test_damaged_collection_can_be_deleted_or_rebuilt(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, repair: str
) -> None:
    create(tmp_path, "old").close()
    [version] = tmp_path.glob("docs@*")
    (version / "store.db").write_bytes(b"not a database" * 1_000)
    if repair == "delete":
        assert delete_collection("docs", path=tmp_path) == 0
        assert list(tmp_path.glob("docs*")) == [tmp_path / "docs.lock"]
    else:
        create(tmp_path, "new")
        assert ids(tmp_path) == {"new"}
    check_message(caplog.messages[0], "'docs'")


def test_deletion_removes_what_an_open_collection_wrote(tmp_path: Path) -> None:
    create(tmp_path, "text").close()
    in_hand = another(tmp_path)
    add_chunks(in_hand, chunks("more"))
    delete_collection("docs", path=tmp_path)
    in_hand.close()
    assert [path.name for path in tmp_path.iterdir()] == ["docs.lock"], "no words of it in an index"


def test_leftovers_of_killed_processes_are_removed_and_other_files_are_not(tmp_path: Path) -> None:
    create(tmp_path)
    (tmp_path / "docs.json").write_bytes(b"")  # half written at a power cut
    assert list_collections(path=tmp_path) == []
    with pytest.raises(CollectionNotFoundError):
        another(tmp_path)
    collection = create(tmp_path, commit_hash="a")
    assert collection.metadata == {"commit_hash": "a"}
    kept = [".docs.swp", ".docs-2.json.new", ".docs.json.saved"]
    for action in (
        lambda: update_collection_metadata(collection, {}),
        lambda: delete_collection("docs", path=tmp_path),
    ):
        for name in [*kept, ".docs.json.new"]:
            (tmp_path / name).write_text("{}", encoding="utf-8")
        action()
        assert sorted(path.name for path in tmp_path.glob(".*")) == sorted(kept)
