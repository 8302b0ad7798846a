"""Several writers of one collection: what one was told is written stays, and what one deleted stays away."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragistry.errors import CollectionNotFoundError, StoreError
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
from ragistry.testing.hashed import hashed_embedding
from ragistry.types import EmbedderFingerprint


class Hashed:
    """An embedder without a model."""

    fingerprint = EmbedderFingerprint("test", "hashed", "", 16)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def embed(self, texts: Sequence[str], *, role: Any = "document") -> Any:
        return np.array([hashed_embedding(text, 16) for text in texts], dtype=np.float32)


def chunks(*names: str) -> list[DocumentChunk]:
    return [DocumentChunk(name, f"text {name}", "a.md", "docs", "", 0, 2) for name in names]


def create(path: Path, *names: str, **metadata: Any) -> Collection:
    """A collection that is begun; where it has chunks, a rebuild of it."""
    collection = create_collection("docs", metadata, path=path, embedder=Hashed())
    if names:
        add_chunks(collection, chunks(*names))
    return collection


def other(path: Path) -> Collection:
    return get_collection("docs", path=path, embedder=Hashed())


def ids(path: Path) -> set[str]:
    return {match.chunk_id for match in search_chunks(other(path), "text", 100).matches}


@pytest.mark.parametrize("begin", [create, other])
def test_what_others_write_during_a_block_over_an_empty_collection_stays(tmp_path: Path, begin: Any) -> None:
    create(tmp_path, commit_hash="a")
    with begin(tmp_path) as collection:
        add_chunks(collection, chunks("1"))
        assert ids(tmp_path) == {"1"}, "a first version has nothing to hold back"
        assert add_chunks(other(tmp_path), chunks("2", "3")) == 2
        update_collection_metadata(other(tmp_path), {"commit_hash": "b"})
        add_chunks(collection, chunks("4"))
    assert ids(tmp_path) == {"1", "2", "3", "4"}
    assert other(tmp_path).metadata["commit_hash"] == "b"


def test_two_blocks_over_one_empty_collection_share_it(tmp_path: Path) -> None:
    with create(tmp_path) as one, create(tmp_path) as two:
        add_chunks(one, chunks("1"))
        add_chunks(two, chunks("2"))
    assert ids(tmp_path) == {"1", "2"}


def test_what_is_deleted_during_a_block_stays_deleted(tmp_path: Path) -> None:
    with create(tmp_path) as collection:
        add_chunks(collection, chunks("1"))
        assert delete_collection("docs", path=tmp_path) == 1
    assert list_collections(path=tmp_path) == []
    assert list(tmp_path.glob("docs@*")) == []


@pytest.mark.parametrize("in_block", [True, False])
def test_a_rebuild_of_what_was_deleted_meanwhile_does_not_bring_it_back(tmp_path: Path, in_block: bool) -> None:
    create(tmp_path, "old")
    new = create(tmp_path)
    delete_collection("docs", path=tmp_path)
    with pytest.raises(CollectionNotFoundError, match="'docs'"):
        write(new, in_block)
    assert list_collections(path=tmp_path) == []


def write(collection: Collection, in_block: bool) -> None:
    if not in_block:
        add_chunks(collection, chunks("new"))
        return
    with collection:
        add_chunks(collection, chunks("new"))


@pytest.mark.parametrize("in_block", [True, False])
def test_a_rebuild_does_not_replace_another_that_was_done_meanwhile(tmp_path: Path, in_block: bool) -> None:
    create(tmp_path, "old")
    one, two = create(tmp_path, version=1), create(tmp_path, version=2)
    add_chunks(one, chunks("1"))
    add_chunks(other(tmp_path), chunks("7"))
    with pytest.raises(StoreError, match="'docs' was written by another .*; begin again with create_collection"):
        write(two, in_block)
    assert (ids(tmp_path), other(tmp_path).metadata) == ({"1", "7"}, {"version": 1})
    create(tmp_path, "2", version=2)
    assert (ids(tmp_path), other(tmp_path).metadata) == ({"2"}, {"version": 2})


@pytest.mark.parametrize("in_block", [True, False])
def test_a_rebuild_does_not_replace_what_was_added_to_the_old_meanwhile(tmp_path: Path, in_block: bool) -> None:
    create(tmp_path, "old")
    new = create(tmp_path)
    add_chunks(other(tmp_path), chunks("more"))
    with pytest.raises(StoreError, match="was written by another"):
        write(new, in_block)
    assert ids(tmp_path) == {"old", "more"}
    update_collection_metadata(other(tmp_path), {})
    assert len(list(tmp_path.glob("docs@*"))) == 1, "what was not put in place is removed"


def test_metadata_given_to_one_handle_by_several_threads_are_kept(tmp_path: Path) -> None:
    create(tmp_path, "old")
    collection = create(tmp_path)
    threads = [
        threading.Thread(target=update_collection_metadata, args=(collection, {f"key{number}": number}))
        for number in range(10)
    ]
    for thread in threads:
        thread.start()
    add_chunks(collection, chunks("new"))
    for thread in threads:
        thread.join()
    assert {f"key{number}" for number in range(10)} < other(tmp_path).metadata.keys()


@pytest.mark.parametrize("in_block", [True, False])
@pytest.mark.parametrize("is_filled", [True, False])
def test_who_shares_a_handle_never_sees_fewer_chunks_again(tmp_path: Path, in_block: bool, is_filled: bool) -> None:
    create(tmp_path, *["old"] * is_filled)
    collection = create(tmp_path)
    stop, reading, seen, failed = threading.Event(), threading.Event(), [0], []

    def look() -> None:
        while not stop.is_set():
            try:
                found = search_chunks(collection, "text", 100).total_results
            except Exception as error:  # noqa: BLE001, told by the assertion below
                failed.append(error)
                return
            if found != seen[-1]:
                seen.append(found)
            reading.set()

    reader = threading.Thread(target=look)
    reader.start()
    assert reading.wait(30)
    write(collection, in_block)
    reading.clear()
    assert reading.wait(30)
    reading.clear()
    assert reading.wait(30)
    stop.set()
    reader.join()
    assert (failed, seen) == ([], [0, 1])


def test_a_block_that_fails_keeps_what_was_added_to_an_empty_collection(tmp_path: Path) -> None:
    def half_done() -> None:
        with create(tmp_path) as collection:
            add_chunks(collection, chunks("1"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half_done()
    assert ids(tmp_path) == {"1"}


def test_a_first_version_that_cannot_be_put_on_record_is_tried_again_from_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(tmp_path, "old")
    for collection in (create(tmp_path), create_collection("empty", {}, path=tmp_path, embedder=Hashed())):
        with monkeypatch.context() as patch:
            patch.setattr("ragistry.library.contract_entries.os.fsync", full)
            with pytest.raises(StoreError, match="No space left"):
                add_chunks(collection, chunks("new"))
        assert add_chunks(collection, chunks("new")) == 1, "it was not said to be written, and is no duplicate"
        assert collection.count() == 1
    assert list(tmp_path.glob(".*")) == []


def full(handle: int) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("is_made_again", [True, False])
def test_a_list_goes_on_where_a_collection_is_deleted_or_made_again_while_it_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_made_again: bool
) -> None:
    create(tmp_path, "old")

    def opened(folder: Path) -> None:
        monkeypatch.undo()
        if is_made_again:
            create(tmp_path, "1", "2")
        else:
            delete_collection("docs", path=tmp_path)
        raise StoreError(f"{str(folder)!r} cannot be opened or written (unable to open database file)")

    monkeypatch.setattr("ragistry.library.contract.open_local", opened)
    assert [info.chunk_count for info in list_collections(path=tmp_path)] == [2 if is_made_again else 0]


def test_a_list_tells_of_a_store_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(folder: Path) -> None:
        raise StoreError("reading failed")

    create(tmp_path, "old")
    monkeypatch.setattr("ragistry.library.contract.open_local", opened)
    with pytest.raises(StoreError, match="reading failed"):
        list_collections(path=tmp_path)
