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
from tests.messages import check_message

STORES: dict[str, Callable[[Path], Any]] = {"local": LocalStore, "chroma": ChromaStore, "own": lambda _: DictStore()}


@pytest.fixture(params=STORES)
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    with closing(STORES[request.param](tmp_path / "store")) as opened:
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


def test_follows_every_kind_of_write_and_computes_only_what_is_new(any_store):
    rows = derived(any_store, compute := Lengths())

    def now(*new: str) -> dict[str, list[int]]:
        found = lengths(rows, any_store)
        assert sorted(compute.texts) == sorted(new)
        compute.texts.clear()
        return found

    assert now() == {}
    put(any_store, "a.txt", "one two", "three")
    put(any_store, "b.txt", "four")
    assert now("one two", "three", "four") == {"one two": [3, 3], "three": [5], "four": [4]}
    put(any_store, "a.txt", "changed")
    assert now("changed") == {"changed": [7], "four": [4]}
    any_store.move_source("a.txt", "notes", "archive")
    assert now("changed") == {"changed": [7], "four": [4]}
    any_store.add_documents([EmbeddedChunk("of no source", {}, [1.0, 0.0])], ids=["x"])
    assert now("of no source") == {"changed": [7], "four": [4], "of no source": [2, 2, 6]}
    any_store.add_documents([EmbeddedChunk("replaced", {}, [1.0, 0.0])], ids=["x"])
    assert now("replaced") == {"changed": [7], "four": [4], "replaced": [8]}
    any_store.delete(where={"source_file": "b.txt"})
    assert now() == {"changed": [7], "replaced": [8]}
    any_store.clear_collection()
    assert now() == {}


def test_unchanged_store_is_asked_for_its_version_only(store, monkeypatch):
    put(store, "a.txt", "one")
    rows = derived(store, Lengths())
    table = rows.table()
    for name in ("sources", "count", "scan", "get"):
        monkeypatch.delattr(LocalStore, name)
    assert rows.table() is table


@pytest.mark.parametrize(("sources", "scans"), [(FEW, FEW), (FEW + 1, 1)])
def test_few_sources_are_read_one_by_one_and_many_in_one_scan(store, monkeypatch, sources, scans):
    for number in range(sources):
        put(store, f"{number}.txt", f"text {'x' * number}")
    put(store, "0.txt", *(f"chunk {number}" for number in range(BATCH + 10)))
    conditions, scan = [], LocalStore.scan
    monkeypatch.setattr(LocalStore, "scan", lambda self, *a, **k: conditions.append(a) or scan(self, *a, **k))
    table = derived(store, Lengths()).table()
    assert len(conditions) == scans
    assert len(table.ids) == BATCH + 10 + sources - 1


class TestFile:
    def test_is_read_by_the_next_process_and_updated(self, store, tmp_path):
        put(store, "a.txt", "one two", "three")
        put(store, "b.txt", "three")
        first = derived(store, Lengths(), tmp_path / "derived").table()
        second = derived(store, compute := Lengths(), tmp_path / "derived").table()
        assert [part if isinstance(part, list) else part.tolist() for part in second] == [
            part if isinstance(part, list) else part.tolist() for part in first
        ]
        assert compute.texts == []
        put(store, "b.txt", "four four")
        assert derived(store, compute, tmp_path / "derived").table().rows.tolist() in ([3, 3, 5, 4, 4], [4, 4, 3, 3, 5])
        assert compute.texts == ["four four"]

    @pytest.mark.parametrize("damage", [0, 20, 60, 200, -1, b"", b"\n", b"text", b"\x93NUMPY\x01\x00"])
    def test_damaged_or_foreign_file_is_replaced(self, store, tmp_path, damage, caplog):
        put(store, "a.txt", "one two", "three")
        derived(store, Lengths(), tmp_path).table()
        path = tmp_path / "lengths.rows"
        content = bytearray(path.read_bytes())
        if isinstance(damage, int):
            content[damage] ^= 1
        path.write_bytes(content if isinstance(damage, int) else damage)
        assert lengths(derived(store, Lengths(), tmp_path), store) == {"one two": [3, 3], "three": [5]}
        check_message(caplog.messages[0], "lengths.rows")
        assert derived(store, compute := Lengths(), tmp_path).table().ids
        assert compute.texts == []

    def test_another_stamp_means_computing_again(self, store, tmp_path):
        put(store, "a.txt", "one two")
        derived(store, Lengths(), tmp_path).table()
        derived(store, compute := Lengths(), tmp_path, stamp="lengths 2").table()
        assert compute.texts == ["one two"]

    def test_follows_deletion(self, store, tmp_path):
        put(store, "a.txt", "x" * 1234)
        put(store, "secret.txt", "y" * 4321)
        rows = derived(store, Lengths(), tmp_path)
        rows.table()
        number = np.int64(4321).tobytes()
        assert number in (tmp_path / "lengths.rows").read_bytes()
        store.delete(where={"source_file": "secret.txt"})
        rows.table()
        assert number not in (tmp_path / "lengths.rows").read_bytes()
        assert [path.name for path in tmp_path.glob("*.new")] == []

    def test_folder_that_cannot_be_written_is_reported(self, store, tmp_path, caplog):
        put(store, "a.txt", "one two")
        (tmp_path / "taken").write_text("a file")
        assert lengths(derived(store, Lengths(), tmp_path / "taken"), store) == {"one two": [3, 3]}
        check_message(caplog.messages[-1], "lengths.rows")

    def test_empty_store_makes_no_file(self, store, tmp_path):
        derived(store, Lengths(), tmp_path / "derived").table()
        assert not (tmp_path / "derived").exists()


def test_what_was_computed_before_a_failure_is_kept(store):
    compute = Lengths(fails="bad")
    rows = derived(store, compute)
    put(store, "a.txt", *(f"good {number}" for number in range(BATCH)))
    put(store, "b.txt", "bad")
    with pytest.raises(ModelError):
        rows.table()
    compute.fails = ""
    compute.texts.clear()
    assert len(rows.table().ids) == BATCH + 1
    assert compute.texts == ["bad"]


def test_documents_come_in_order_and_under_the_condition(any_store):
    put(any_store, "a.txt", *(f"text {number}" for number in range(100)))
    put(any_store, "b.txt", "other", collection="garden")
    ids = [one.id for one in sorted(any_store.scan(), key=lambda one: one.content)]
    assert [one.id for one in documents_meeting(any_store, [*ids, "gone"], None)] == ids
    assert [one.content for one in documents_meeting(any_store, ids, {"collection": "garden"})] == ["other"]


def test_hashes_are_the_same_in_every_process():
    assert hashed("Ed Wood") == 626743141880537866
    assert 0 <= hashed("\ud800") < 2**64
