"""What fails half-way loses nothing: rebuilds, embeddings, killed processes, several writers."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ragistry.errors import (
    CollectionNotFoundError,
    ConfigError,
    EmbeddingGenerationError,
    EmbeddingMismatchError,
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
from ragistry.models.minilm import MiniLMEmbedder
from ragistry.stores.local import LocalStore
from ragistry.types import EmbedderFingerprint

EMBEDDER = MiniLMEmbedder()


class Failing:
    """The model, but its first calls raise, and so does every call with a text that has a word in it."""

    fingerprint = EMBEDDER.fingerprint

    def __init__(self, error: Exception, times: int = 0, word: str = "") -> None:
        self.error, self.times, self.word = error, times, word
        self.calls = 0

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def embed(self, texts: Sequence[str], *, role: Any = "document") -> Any:
        self.calls += 1
        if self.calls <= self.times or (self.word and any(self.word in text for text in texts)):
            raise self.error
        return EMBEDDER.embed(texts, role=role)


def chunks(*texts: str) -> list[DocumentChunk]:
    return [DocumentChunk(text, text, "a.md", "docs", "", number, 2) for number, text in enumerate(texts)]


def make(path: Path, *texts: str, embedder: Any = EMBEDDER) -> Collection:
    collection = create_collection("docs", {"commit_hash": "old"}, path=path, embedder=embedder)
    add_chunks(collection, chunks(*texts))
    return collection


def contents(path: Path) -> set[str]:
    collection = get_collection("docs", path=path, embedder=EMBEDDER)
    return {match.content for match in search_chunks(collection, "anything", limit=100).matches}


def versions(path: Path) -> int:
    return len(list(path.glob("docs@*")))


def test_a_rebuild_takes_the_place_of_the_old_when_it_is_done(tmp_path: Path) -> None:
    in_hand = make(tmp_path, "old")
    new = create_collection("docs", {"commit_hash": "new"}, path=tmp_path, embedder=EMBEDDER)
    assert (new.count(), new.metadata) == (0, {"commit_hash": "new"})
    assert contents(tmp_path) == {"old"}
    assert list_collections(path=tmp_path)[0].metadata == {"commit_hash": "old"}
    add_chunks(new, chunks("new", "newer"))
    assert contents(tmp_path) == {"new", "newer"}
    assert in_hand.count() == 2, "a collection in hand follows"
    assert in_hand.metadata == {"commit_hash": "new"}
    assert versions(tmp_path) == 1
    assert add_chunks(new, chunks("newest")) == 1, "from then on it is a collection like any other"
    assert contents(tmp_path) == {"new", "newer", "newest"}


def test_a_rebuild_that_fails_leaves_the_old(tmp_path: Path) -> None:
    make(tmp_path, "old")
    broken = Failing(ModelConnectionError("no server"), times=9)
    new = create_collection("docs", {}, path=tmp_path, embedder=broken)
    with pytest.raises(EmbeddingGenerationError, match="no server"):
        add_chunks(new, chunks("new"))
    assert contents(tmp_path) == {"old"}


def test_a_rebuild_of_no_chunks_leaves_none_and_is_a_collection_like_any_other(tmp_path: Path) -> None:
    make(tmp_path, "old")
    new = create_collection("docs", {"commit_hash": "new"}, path=tmp_path, embedder=EMBEDDER)
    assert add_chunks(new, []) == 0
    assert contents(tmp_path) == set()
    assert list_collections(path=tmp_path)[0].metadata == {"commit_hash": "new"}
    update_collection_metadata(new, {"total_chunks": 0})
    assert get_collection("docs", path=tmp_path).metadata["total_chunks"] == 0
    assert versions(tmp_path) <= 1
    add_chunks(new, chunks("newer"))
    assert contents(tmp_path) == {"newer"}


def test_a_rebuild_of_chunks_that_are_all_left_out_as_empty_leaves_none(tmp_path: Path) -> None:
    make(tmp_path, "old")
    new = create_collection("docs", {}, path=tmp_path, embedder=EMBEDDER)
    assert add_chunks(new, [DocumentChunk("id", " ", "a.md", "docs", "", 0, 0)], on_empty="skip") == 0
    assert contents(tmp_path) == set()


def test_a_rebuild_in_a_block_is_seen_when_the_block_ends(tmp_path: Path) -> None:
    make(tmp_path, "old")
    with create_collection("docs", {"commit_hash": "new"}, path=tmp_path, embedder=EMBEDDER) as new:
        add_chunks(new, chunks("one"))
        update_collection_metadata(get_collection("docs", path=tmp_path), {"note": "of the old"})
        assert versions(tmp_path) == 2, "what is being made is not taken for what somebody left"
        add_chunks(new, chunks("two"))
        update_collection_metadata(new, {"total_chunks": 2})
        assert (new.count(), contents(tmp_path)) == (2, {"old"})
    assert contents(tmp_path) == {"one", "two"}
    assert get_collection("docs", path=tmp_path).metadata["total_chunks"] == 2

    def half_done() -> None:
        with create_collection("docs", {}, path=tmp_path, embedder=EMBEDDER) as newer:
            add_chunks(newer, chunks("three"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half_done()
    assert contents(tmp_path) == {"one", "two"}
    add_chunks(get_collection("docs", path=tmp_path, embedder=EMBEDDER), chunks("four"))
    update_collection_metadata(get_collection("docs", path=tmp_path), {})
    assert versions(tmp_path) == 1, "what was half done is removed"


def test_what_passes_by_itself_is_tried_three_times(tmp_path: Path) -> None:
    twice = Failing(EmbeddingGenerationError("overloaded"), times=2)
    make(tmp_path, "text", embedder=twice)
    assert (twice.calls, contents(tmp_path)) == (3, {"text"})
    always = Failing(EmbeddingGenerationError("overloaded"), times=9)
    with pytest.raises(EmbeddingGenerationError):
        add_chunks(get_collection("docs", path=tmp_path, embedder=always), chunks("other"))
    assert always.calls == 3
    gone = Failing(ModelConnectionError("no server"), times=9)
    with pytest.raises(EmbeddingGenerationError, match="no server"):
        add_chunks(get_collection("docs", path=tmp_path, embedder=gone), chunks("other"))
    assert gone.calls == 1, "a server that is not there is told at once"


def test_one_chunk_that_cannot_be_embedded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    poison = Failing(EmbeddingGenerationError("too odd"), word="odd")
    collection = create_collection("docs", {}, path=tmp_path, embedder=poison)
    wanted = chunks("even", "odd", "round")
    with pytest.raises(EmbeddingGenerationError):
        add_chunks(collection, wanted)
    assert collection.count() == 0, "nothing of the call is written"
    with caplog.at_level(logging.ERROR):
        assert add_chunks(collection, wanted, on_error="skip") == 2
    assert "'odd'" in caplog.text
    assert contents(tmp_path) == {"even", "round"}
    with pytest.raises(ConfigError, match="on_error"):
        add_chunks(collection, wanted, on_error="ignore")  # type: ignore[arg-type]


def test_another_embedder_is_refused(tmp_path: Path) -> None:
    make(tmp_path, "text")

    class Other:
        fingerprint = EmbedderFingerprint("test", "other", "", 384)
        embed = EMBEDDER.embed

    other = get_collection("docs", path=tmp_path, embedder=Other())
    with pytest.raises(EmbeddingMismatchError):
        search_chunks(other, "text")
    with pytest.raises(EmbeddingMismatchError):
        add_chunks(other, chunks("more"))
    assert contents(tmp_path) == {"text"}


KILLED = """
import os, signal, sys
from pathlib import Path
from ragistry.library.contract import *
collection = create_collection("docs", {"commit_hash": "new"}, path=Path(sys.argv[1]))
collection.__enter__()
add_chunks(collection, [DocumentChunk(str(n), f"new {n}", "b.md", "docs", "", n, 2) for n in range(5)])
assert collection.count() == 5
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_rebuild_that_is_killed_leaves_the_old(tmp_path: Path) -> None:
    make(tmp_path, "old").close()
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False, timeout=60, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert contents(tmp_path) == {"old"}
    assert versions(tmp_path) == 2
    update_collection_metadata(get_collection("docs", path=tmp_path), {})
    assert versions(tmp_path) == 1, "what the killed process made is removed"
    assert contents(tmp_path) == {"old"}


WRITER = """
import sys
from pathlib import Path
from ragistry.library.contract import *
name = sys.argv[2]
collection = get_collection("docs", path=Path(sys.argv[1]))
for n in range(4):
    add_chunks(collection, [DocumentChunk(f"{name}{n}", f"text {name} {n}", f"{name}.md", "docs", "", n, 2)])
"""


def test_two_processes_that_write_lose_nothing(tmp_path: Path) -> None:
    create_collection("docs", {}, path=tmp_path)
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name]) for name in ("a", "b")]
    assert [writer.wait(timeout=100) for writer in writers] == [0, 0]
    assert contents(tmp_path) == {f"text {name} {n}" for name in "ab" for n in range(4)}


def test_a_reader_whose_store_another_thread_closed_reads_again(tmp_path: Path) -> None:
    make(tmp_path, "0 a")
    collection = get_collection("docs", path=tmp_path, embedder=EMBEDDER)
    used: list[LocalStore] = []

    def use(store: LocalStore) -> int:
        used.append(store)
        if len(used) == 1:  # as by one that had read of the former version, and opens that
            collection.close()
        return store.count()

    assert collection.read(use, 0) == 1
    assert len(used) == 2
    collection.close()
    with pytest.raises(StoreError, match="not stored: .*'none'"):
        collection.read(lambda store: len(store.vectors(["none"])), 0)


def test_readers_see_the_old_or_the_new_while_a_collection_is_made_again(tmp_path: Path) -> None:
    make(tmp_path, "0 a", "0 b")
    collection = get_collection("docs", path=tmp_path, embedder=EMBEDDER)
    stop, seen, failed = threading.Event(), set(), []

    def wait_for(number: int) -> None:
        deadline = time.monotonic() + 60
        while (f"{number} a", f"{number} b") not in seen and not failed and time.monotonic() < deadline:
            time.sleep(0.01)

    def look() -> None:
        while not stop.is_set():
            try:
                found = search_chunks(collection, "anything").matches
            except Exception as error:  # noqa: BLE001, told by the assertion below
                failed.append(error)
                return
            seen.add(tuple(sorted(match.content for match in found)))
            stop.wait(0.01)

    readers = [threading.Thread(target=look) for _ in range(2)]
    for reader in readers:
        reader.start()
    wait_for(0)
    for number in range(1, 4):
        add_chunks(
            create_collection("docs", {}, path=tmp_path, embedder=EMBEDDER), chunks(f"{number} a", f"{number} b")
        )
    wait_for(3)
    stop.set()
    for reader in readers:
        reader.join()
    assert failed == []
    assert seen <= {(f"{number} a", f"{number} b") for number in range(4)}
    assert {("0 a", "0 b"), ("3 a", "3 b")} <= seen


def test_a_damaged_collection_can_be_made_again_or_deleted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for end in (lambda: delete_collection("docs", path=tmp_path), lambda: make(tmp_path, "new").close()):
        make(tmp_path, "old").close()
        [version] = tmp_path.glob("docs@*")
        (version / "store.db").write_bytes(b"not a database" * 1_000)
        end()
        assert "damaged" in caplog.text
    assert contents(tmp_path) == {"new"}


@pytest.mark.skipif(os.geteuid() == 0, reason="everything can be written by root")
def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    from ragistry.errors import ChromaDBConnectionError

    tmp_path.chmod(0o500)
    try:
        with pytest.raises(ChromaDBConnectionError, match="cannot be opened"):
            create_collection("docs", {}, path=tmp_path / "new")
    finally:
        tmp_path.chmod(0o700)


def test_a_collection_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    collection = make(tmp_path, "text")
    delete_collection("docs", path=tmp_path)
    for use in (lambda: search_chunks(collection, "text"), lambda: add_chunks(collection, chunks("more"))):
        with pytest.raises(CollectionNotFoundError):
            use()


def test_what_a_collection_in_hand_wrote_goes_with_the_collection(tmp_path: Path) -> None:
    make(tmp_path, "text").close()
    in_hand = get_collection("docs", path=tmp_path, embedder=EMBEDDER)
    add_chunks(in_hand, chunks("more"))
    delete_collection("docs", path=tmp_path)
    in_hand.close()
    assert [path.name for path in tmp_path.iterdir()] == ["docs.lock"], "no words of it in an index"


def test_a_name_that_a_power_cut_left_half_written_is_none(tmp_path: Path) -> None:
    create_collection("docs", {}, path=tmp_path)
    (tmp_path / "docs.json").write_bytes(b"")
    assert list_collections(path=tmp_path) == []
    with pytest.raises(CollectionNotFoundError):
        get_collection("docs", path=tmp_path)
    assert create_collection("docs", {"commit_hash": "a"}, path=tmp_path).metadata == {"commit_hash": "a"}
    assert [info.name for info in list_collections(path=tmp_path)] == ["docs"]


def test_entries_that_a_kill_left_are_removed_and_other_files_are_not(tmp_path: Path) -> None:
    collection = create_collection("docs", {}, path=tmp_path, embedder=EMBEDDER)
    kept = [".docs.swp", ".docs-2." + "a" * 32, "." + "a" * 32, ".docs.json." + "a" * 31]
    for name in [*kept, ".docs." + "a" * 32, ".docs." + "0" * 32]:
        (tmp_path / name).write_text("{}", encoding="utf-8")
    update_collection_metadata(collection, {"commit_hash": "a"})
    assert sorted(path.name for path in tmp_path.glob(".*")) == sorted(kept)
    (tmp_path / (".docs." + "b" * 32)).write_text("{}", encoding="utf-8")
    delete_collection("docs", path=tmp_path)
    assert sorted(path.name for path in tmp_path.glob(".*")) == sorted(kept)
