"""Rows that are derived from a store: current at every search, over every store, and safe to lose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples.own_store import DictStore
from ragistry.errors import ModelError
from ragistry.stores.chroma import ChromaStore
from ragistry.stores.local import LocalStore
from ragistry.techniques.derived import BATCH, FEW, DerivedRows, documents_meeting, hashed
from ragistry.types import Document, EmbeddedChunk

STORES: dict[str, Callable[[Path], Any]] = {
    "local": LocalStore,
    "chroma": ChromaStore,
    "own": lambda _: DictStore(),
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    with closing(STORES[request.param](tmp_path / "store")) as opened:
        yield opened


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalStore]:
    with closing(LocalStore(tmp_path / "store")) as opened:
        yield opened


class Lengths:
    """Computes the lengths of a chunk's words, and keeps which chunks it was given."""

    def __init__(self, fails: str = "") -> None:
        self.texts: list[str] = []
        self.fails = fails

    def __call__(self, documents: Sequence[Document]) -> list[np.ndarray]:
        if self.fails and any(self.fails in one.content for one in documents):
            raise ModelError("no model")
        self.texts += [one.content for one in documents]
        return [np.array([len(word) for word in one.content.split()], dtype=np.int64) for one in documents]


def derived(store: Any, compute: Lengths, folder: Path | None = None, stamp: str = "lengths 1") -> DerivedRows:
    return DerivedRows(store, compute, name="lengths", stamp=stamp, empty=np.zeros(0, np.int64), folder=folder)


def put(store: Any, source: str, *texts: str, collection: str = "notes") -> None:
    metadata = {
        "collection": collection, "source_file": source, "source": source, "ingested_at": 1.0,
        "source_hash": str(hashed(repr(texts))),
    }  # fmt: skip
    chunks = [EmbeddedChunk(text, {**metadata, "chunk_index": number}, [1.0, 0.5]) for number, text in enumerate(texts)]
    store.replace_source(collection, source, chunks)


def lengths(rows: DerivedRows, store: Any) -> dict[str, list[int]]:
    """The rows by the text of their chunk."""
    table = rows.table()
    texts = {one.id: one.content for one in store.scan()}
    assert sorted(table.ids) == sorted(texts)
    return {
        texts[id]: table.rows[start:end].tolist()
        for id, start, end in zip(table.ids, table.starts[:-1].tolist(), table.starts[1:].tolist(), strict=True)
    }


def test_follows_every_kind_of_write(store: Any) -> None:
    rows = derived(store, Lengths())
    assert lengths(rows, store) == {}
    put(store, "a.txt", "one two", "three")
    put(store, "b.txt", "four")
    assert lengths(rows, store) == {"one two": [3, 3], "three": [5], "four": [4]}
    put(store, "a.txt", "changed")
    assert lengths(rows, store) == {"changed": [7], "four": [4]}
    store.move_source("a.txt", "notes", "archive")
    assert lengths(rows, store) == {"changed": [7], "four": [4]}
    store.add_documents([EmbeddedChunk("of no source", {}, [1.0, 0.0])], ids=["x"])
    assert lengths(rows, store) == {"changed": [7], "four": [4], "of no source": [2, 2, 6]}
    store.add_documents([EmbeddedChunk("replaced", {}, [1.0, 0.0])], ids=["x"])
    assert lengths(rows, store) == {"changed": [7], "four": [4], "replaced": [8]}
    store.delete(where={"source_file": "b.txt"})
    assert lengths(rows, store) == {"changed": [7], "replaced": [8]}
    store.clear_collection()
    assert lengths(rows, store) == {}


def test_computes_only_what_is_new(store: Any) -> None:
    compute = Lengths()
    rows = derived(store, compute)
    put(store, "a.txt", "one two", "three")
    put(store, "b.txt", "four")
    store.add_documents([EmbeddedChunk("of no source", {}, [1.0, 0.0])], ids=["x"])
    first = rows.table()
    compute.texts.clear()
    assert rows.table().ids == first.ids
    put(store, "b.txt", "five")
    rows.table()
    assert compute.texts == ["five"]


def test_an_unchanged_store_is_asked_for_its_version_only(local: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    put(local, "a.txt", "one")
    rows = derived(local, Lengths())
    table = rows.table()
    for name in ("sources", "count", "scan", "get"):
        monkeypatch.delattr(LocalStore, name)
    assert rows.table() is table


def test_many_sources_are_read_in_one_scan(local: LocalStore) -> None:
    for number in range(FEW + 5):
        put(local, f"{number}.txt", f"text {'x' * number}", "second")
    found = lengths(derived(local, Lengths()), local)
    assert found["text xxx"] == [4, 3]
    assert len(found) == FEW + 6


def test_more_chunks_than_one_batch(local: LocalStore) -> None:
    put(local, "long.txt", *(f"chunk {number}" for number in range(BATCH + 10)))
    assert len(lengths(derived(local, Lengths()), local)) == BATCH + 10


class TestFile:
    def test_is_read_by_the_next_process(self, local: LocalStore, tmp_path: Path) -> None:
        put(local, "a.txt", "one two", "three")
        first = derived(local, Lengths(), tmp_path / "derived").table()
        compute = Lengths()
        second = derived(local, compute, tmp_path / "derived").table()
        assert (second.ids, second.starts.tolist(), second.rows.tolist()) == (
            first.ids, first.starts.tolist(), first.rows.tolist(),
        )  # fmt: skip
        assert compute.texts == []

    def test_a_stale_file_is_brought_up(self, local: LocalStore, tmp_path: Path) -> None:
        put(local, "a.txt", "one two")
        put(local, "b.txt", "three")
        derived(local, Lengths(), tmp_path).table()
        put(local, "b.txt", "four four")
        compute = Lengths()
        assert lengths(derived(local, compute, tmp_path), local) == {"one two": [3, 3], "four four": [4, 4]}
        assert compute.texts == ["four four"]

    @pytest.mark.parametrize("place", [0, 20, 60, 200, -1])
    def test_a_damaged_byte_is_noticed(
        self, local: LocalStore, tmp_path: Path, place: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        put(local, "a.txt", "one two", "three")
        derived(local, Lengths(), tmp_path).table()
        path = tmp_path / "lengths.rows"
        content = bytearray(path.read_bytes())
        content[place] ^= 1
        path.write_bytes(content)
        assert lengths(derived(local, Lengths(), tmp_path), local) == {"one two": [3, 3], "three": [5]}
        assert "making it again" in caplog.text
        assert derived(local, compute := Lengths(), tmp_path).table().ids
        assert compute.texts == []

    @pytest.mark.parametrize("content", [b"", b"\n", b"text", b"\x93NUMPY\x01\x00"])
    def test_another_file_of_this_name_is_replaced(self, local: LocalStore, tmp_path: Path, content: bytes) -> None:
        put(local, "a.txt", "one two")
        (tmp_path / "lengths.rows").write_bytes(content)
        assert lengths(derived(local, Lengths(), tmp_path), local) == {"one two": [3, 3]}

    def test_another_stamp_means_computing_anew(self, local: LocalStore, tmp_path: Path) -> None:
        put(local, "a.txt", "one two")
        derived(local, Lengths(), tmp_path).table()
        derived(local, compute := Lengths(), tmp_path, stamp="lengths 2").table()
        assert compute.texts == ["one two"]

    def test_follows_deletion(self, local: LocalStore, tmp_path: Path) -> None:
        put(local, "a.txt", "x" * 1234)
        put(local, "secret.txt", "y" * 4321)
        rows = derived(local, Lengths(), tmp_path)
        rows.table()
        number = np.int64(4321).tobytes()
        assert number in (tmp_path / "lengths.rows").read_bytes()
        local.delete(where={"source_file": "secret.txt"})
        rows.table()
        assert number not in (tmp_path / "lengths.rows").read_bytes()
        assert [path.name for path in tmp_path.glob("*.new")] == []

    def test_a_folder_that_cannot_be_written_is_reported(
        self, local: LocalStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        put(local, "a.txt", "one two")
        (tmp_path / "taken").write_text("a file")
        assert lengths(derived(local, Lengths(), tmp_path / "taken"), local) == {"one two": [3, 3]}
        assert "kept in memory" in caplog.text

    def test_an_empty_store_makes_no_file(self, local: LocalStore, tmp_path: Path) -> None:
        derived(local, Lengths(), tmp_path / "derived").table()
        assert not (tmp_path / "derived").exists()


def test_what_was_computed_before_a_failure_is_kept(local: LocalStore) -> None:
    compute = Lengths(fails="bad")
    rows = derived(local, compute)
    put(local, "a.txt", *(f"good {number}" for number in range(BATCH)))
    put(local, "b.txt", "bad")
    with pytest.raises(ModelError):
        rows.table()
    compute.fails = ""
    compute.texts.clear()
    assert len(rows.table().ids) == BATCH + 1
    assert compute.texts == ["bad"]


def test_documents_come_in_order_and_under_the_condition(store: Any) -> None:
    put(store, "a.txt", *(f"text {number}" for number in range(100)))
    put(store, "b.txt", "other", collection="garden")
    ids = [one.id for one in sorted(store.scan(), key=lambda one: one.content)]
    assert [one.id for one in documents_meeting(store, [*ids, "gone"], None)] == ids
    assert [one.content for one in documents_meeting(store, ids, {"collection": "garden"})] == ["other"]


def test_hashes_are_the_same_in_every_process() -> None:
    assert hashed("Ed Wood") == 626743141880537866
    assert 0 <= hashed("\ud800") < 2**64
