"""A store that a library can stand on."""

from __future__ import annotations

from typing import Any

import pytest

from ragistry.errors import DuplicateChunkIDError, InvalidChunkError
from ragistry.protocols import SourceStore
from ragistry.testing.stores.chunks import EAST, NORTH, source
from ragistry.types import SourceInfo


class SourceStoreConformance:
    """`SourceStore`."""

    def test_has_the_shape_of_a_source_store(self, store: SourceStore) -> None:
        assert isinstance(store, SourceStore)

    def test_sources_are_listed_by_collection_and_name(self, store: SourceStore) -> None:
        store.replace_source("b", "z.md", source("b", "z.md", ["one", "two"]))
        store.replace_source("b", "a.md", source("b", "a.md", ["one"], "other"))
        store.replace_source("a", "z.md", source("a", "z.md", ["one"]))
        z = SourceInfo("b", "z.md", 2, "/in/z.md", "h", 12.5)
        assert [(info.collection, info.source_file) for info in store.sources()] == [
            ("a", "z.md"), ("b", "a.md"), ("b", "z.md"),
        ]  # fmt: skip
        assert store.sources("b") == [SourceInfo("b", "a.md", 1, "/in/a.md", "other", 12.5), z]
        assert store.sources("c") == []

    @pytest.mark.parametrize(("before", "after"), [(3, 3), (3, 1), (1, 3), (0, 2), (2, 0), (0, 0)])
    def test_replacing_leaves_nothing_of_the_old(self, store: SourceStore, before: int, after: int) -> None:
        store.replace_source("c", "other.md", source("c", "other.md", ["kept"]))
        store.replace_source("c", "f.md", source("c", "f.md", [f"old {i}" for i in range(before)], "old"))
        store.replace_source("c", "f.md", source("c", "f.md", [f"new {i}" for i in range(after)], "new"))
        found = [document.content for document in store.scan({"source_file": "f.md"})]
        assert sorted(found) == [f"new {i}" for i in range(after)]
        listed = [(info.source_file, info.chunks, info.source_hash) for info in store.sources()]
        assert listed == [("f.md", after, "new")] * bool(after) + [("other.md", 1, "h")]

    def test_a_bad_chunk_leaves_the_old_version(self, store: SourceStore) -> None:
        store.replace_source("c", "f.md", source("c", "f.md", ["old"], "old"))
        with pytest.raises(InvalidChunkError):
            store.replace_source("c", "f.md", source("c", "f.md", ["new", " "], "new"))
        assert [document.content for document in store.scan()] == ["old"]
        assert store.sources()[0].source_hash == "old"

    @pytest.mark.parametrize("wrong", [
        {"collection": "d"}, {"source_file": "g.md"}, {"chunk_index": 1}, {"chunk_index": 0.0}, {"chunk_index": False},
        {"source_hash": None}, {"source_hash": 3},
    ], ids=repr)  # fmt: skip
    def test_chunks_of_another_source_are_refused(self, store: SourceStore, wrong: dict[str, Any]) -> None:
        [good] = source("c", "f.md", ["text"])
        with pytest.raises(InvalidChunkError, match=next(iter(wrong))):
            store.replace_source("c", "f.md", [good._replace(metadata={**good.metadata, **wrong})])
        assert store.count() == 0

    def test_results_show_the_metadata_as_given_and_no_more(self, store: SourceStore) -> None:
        chunks = source("c", "f.md", ["one", "two"])
        store.replace_source("c", "f.md", chunks)
        found = {document.content: document.metadata for document in store.search(EAST)}
        assert found == {chunk.text: chunk.metadata for chunk in chunks}

    def test_move_keeps_vectors_and_gives_new_ids(self, store: SourceStore) -> None:
        chunks = source("a", "f.md", ["one", "two"])
        store.replace_source("a", "f.md", [chunks[0], chunks[1]._replace(embedding=NORTH)])
        store.replace_source("a", "g.md", source("a", "g.md", ["other"]))
        old = {document.id for document in store.scan({"source_file": "f.md"})}
        assert store.move_source("f.md", "a", "b") == 2
        assert store.get(sorted(old)) == []
        moved = store.search(NORTH, 10, where={"collection": "b"})
        assert [(document.content, document.metadata["collection"]) for document in moved] == [
            ("two", "b"),
            ("one", "b"),
        ]
        assert moved[0].score == pytest.approx(1.0, abs=1e-4)
        assert [(info.collection, info.source_file, info.chunks, info.source_hash) for info in store.sources()] == [
            ("a", "g.md", 1, "h"), ("b", "f.md", 2, "h"),
        ]  # fmt: skip
        store.replace_source("b", "f.md", source("b", "f.md", ["only"]))
        assert store.count({"collection": "b"}) == 1

    def test_move_does_not_replace_what_is_there(self, store: SourceStore) -> None:
        store.replace_source("a", "f.md", source("a", "f.md", ["from a"]))
        store.replace_source("b", "f.md", source("b", "f.md", ["from b"]))
        with pytest.raises(DuplicateChunkIDError, match="source"):
            store.move_source("f.md", "a", "b")
        assert sorted(document.content for document in store.scan()) == ["from a", "from b"]

    def test_moving_what_is_not_there_moves_nothing(self, store: SourceStore) -> None:
        store.replace_source("a", "f.md", source("a", "f.md", ["text"]))
        assert store.move_source("g.md", "a", "b") == 0
        assert store.move_source("f.md", "a", "a") == 1
        assert [info.collection for info in store.sources()] == ["a"]

    def test_a_source_that_lost_a_chunk_is_listed_without_its_hash(self, store: SourceStore) -> None:
        store.replace_source("c", "f.md", source("c", "f.md", ["one", "two", "three"]))
        store.delete(where={"chunk_index": 1})
        [info] = store.sources()
        assert (info.chunks, info.source_hash, info.source) == (2, "", "/in/f.md")
        store.move_source("f.md", "c", "d")
        assert store.sources("d")[0].source_hash == ""
        store.delete(where={"chunk_index": 0})
        assert store.sources()[0].source_hash == ""
        store.replace_source("d", "f.md", source("d", "f.md", ["one", "two", "three"]))
        assert store.sources()[0].source_hash == "h"
