"""A source in ChromaDB that was interrupted on its way in is known, and whole again after the next ingest."""

from __future__ import annotations

from contextlib import closing

import pytest

from ragistry.errors import StoreError
from ragistry.stores import chroma_records
from ragistry.stores.chroma import ChromaStore
from ragistry.testing.stores.chunks import EAST, source


class InterruptedWriteError(StoreError):
    pass


@pytest.fixture
def small(tmp_path):
    """A store that writes two chunks at a time."""
    with closing(ChromaStore(tmp_path / "chroma", batch_size=2)) as store:
        yield store


def interrupt(monkeypatch, call: str, after: int) -> None:
    """Let `call` of ChromaDB fail when it has succeeded so many times."""
    from chromadb.api.models.Collection import Collection

    original, done = getattr(Collection, call), []

    def failing(self, *arguments, **options):
        if len(done) == after:
            raise InterruptedWriteError("interrupted")
        done.append(1)
        return original(self, *arguments, **options)

    monkeypatch.setattr(Collection, call, failing)


@pytest.mark.parametrize("old", [0, 3, 5, 7])
@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_source_interrupted_between_batches_is_listed_without_its_hash(small, monkeypatch, old, after):
    small.replace_source("c", "f.md", source("c", "f.md", [f"old {i}" for i in range(old)]))
    with monkeypatch.context() as patch:
        interrupt(patch, "upsert", after)
        with pytest.raises(InterruptedWriteError):
            small.replace_source("c", "f.md", source("c", "f.md", [f"new {i}" for i in range(5)]))
    assert [info.source_hash for info in small.sources()] == [""] * bool(old or after)
    small.replace_source("c", "f.md", source("c", "f.md", [f"new {i}" for i in range(5)]))
    assert [(info.chunks, info.source_hash) for info in small.sources()] == [(5, "h")]
    assert sorted(document.content for document in small.scan()) == [f"new {i}" for i in range(5)]


def test_a_source_interrupted_before_its_old_chunks_went_is_listed_without_its_hash(small, monkeypatch):
    small.replace_source("c", "f.md", source("c", "f.md", ["old 0", "old 1", "old 2"]))
    with monkeypatch.context() as patch:
        interrupt(patch, "delete", 0)
        with pytest.raises(InterruptedWriteError):
            small.replace_source("c", "f.md", source("c", "f.md", ["new 0"]))
    assert [(info.chunks, info.source_hash) for info in small.sources()] == [(3, "")]


def test_a_source_of_one_batch_is_replaced_in_one_piece(small, monkeypatch):
    small.replace_source("c", "f.md", source("c", "f.md", ["old 0", "old 1"]))
    with monkeypatch.context() as patch:
        interrupt(patch, "upsert", 0)
        with pytest.raises(InterruptedWriteError):
            small.replace_source("c", "f.md", source("c", "f.md", ["new 0", "new 1"]))
    assert [(info.chunks, info.source_hash) for info in small.sources()] == [(2, "h")]
    assert sorted(document.content for document in small.search(EAST)) == ["old 0", "old 1"]


def test_a_large_source_is_written_in_batches_with_its_record_last(small):
    small.replace_source("c", "f.md", source("c", "f.md", [f"text {i}" for i in range(7)]))
    assert [(info.chunks, info.source_hash) for info in small.sources()] == [(7, "h")]
    stored = chroma_records.rows(small._rows, chroma_records.matching_ids(small._rows, None))
    assert [row.metadata["ragistry:source_chunks"] for row in stored.values() if row.text == "text 0"] == [7]
    assert all("ragistry:source_chunks" not in row.metadata for row in stored.values() if row.text != "text 0")
    assert all("ragistry:source_chunks" not in document.metadata for document in small.scan())


def test_an_interrupted_move_leaves_the_source_where_it_was(small, monkeypatch):
    small.replace_source("a", "f.md", source("a", "f.md", ["one", "two", "three"]))
    with monkeypatch.context() as patch:
        interrupt(patch, "upsert", 1)
        with pytest.raises(InterruptedWriteError):
            small.move_source("f.md", "a", "b")
    assert [(info.collection, info.source_hash) for info in small.sources()] == [("a", "h"), ("b", "")]


def test_chunks_added_one_by_one_are_a_source_that_has_yet_to_be_ingested(small):
    small.add_documents(source("c", "f.md", ["one", "two"]))
    assert [(info.source_file, info.chunks, info.source_hash) for info in small.sources()] == [("f.md", 2, "")]
