"""Tests of writes: valid, invalid and replaced chunks."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ragistry.errors import (
    DuplicateChunkIDError,
    InvalidChunkError,
)
from ragistry.protocols import DocumentStore
from ragistry.testing.stores.chunks import BAD_CHUNKS, EAST, NORTH, chunk
from ragistry.types import EmbeddedChunk

GOOD = chunk("good")
BAD_IDS: tuple[Any, ...] = ("", None, 3, "\ud800", "x" * 10_000)
OLD_VALUES: tuple[Any, ...] = (1, 1.5, True, "1", [1], [1.5], ["1"], [True])
NEW_VALUES: tuple[Any, ...] = (2, 2.5, False, "2", [2], [2.5], ["2"], [False])
METADATA: dict[str, Any] = {
    "text": "",
    "quote": "a'b\"c",
    "ünï": "日本",
    "whole": -(2**63),
    "big": 2**53 + 1,
    "broken": 0.1,
    "one": 1.0,
    "yes": True,
    "no": False,
    "tags": ["a", "b"],
    "pages": [3, 1],
    "flags": [True, False],
    "parts": [0.5],
    "dotted.key": 1,
    "with blank": 1,
}


class WritingConformance:
    """Tests of writes: valid, invalid and replaced chunks."""

    def test_everything_comes_back_as_it_was_given(self, store: DocumentStore) -> None:
        text = "Ünï\u2028cödé 日本 🙂 \x00 \r\n end"
        store.add_documents([EmbeddedChunk(text, METADATA, EAST)], ids=["an id/with: ünï"])
        [found] = store.get(["an id/with: ünï"])
        [searched] = store.search(EAST)
        assert (found.content, found.metadata, found.score, found.id) == (text, METADATA, 0.0, "an id/with: ünï")
        assert (searched.content, searched.metadata) == (text, METADATA)
        assert {key: type(value) for key, value in found.metadata.items()} == {
            key: type(value) for key, value in METADATA.items()
        }

    def test_metadata_may_be_empty(self, store: DocumentStore) -> None:
        store.add_documents([chunk("none"), chunk("some", page=1)], ids=["a", "b"])
        assert [document.metadata for document in store.get(["a", "b"])] == [{}, {"page": 1}]

    def test_none_and_an_empty_list_say_the_same_as_no_key(self, store: DocumentStore) -> None:
        store.add_documents([chunk("text", page=None, tags=[], kept=1)], ids=["a"])
        assert store.get(["a"])[0].metadata == {"kept": 1}

    def test_the_callers_chunks_are_not_changed(self, store: DocumentStore) -> None:
        metadata = {"tags": ("a",), "none": None}
        vector = [3.0, 4.0, 0.0]
        store.add_documents([EmbeddedChunk("text", metadata, vector)])
        store.search(vector)[0].metadata["more"] = 1
        assert (metadata, vector) == ({"tags": ("a",), "none": None}, [3.0, 4.0, 0.0])
        assert store.search(vector)[0].metadata == {"tags": ["a"]}

    def test_adding_replaces_whole_records(self, store: DocumentStore) -> None:
        store.add_documents([chunk("old", EAST, page=1, tags=["x"]), chunk("other")], ids=["a", "b"])
        assert store.add_documents([chunk("new", NORTH, title="t")], ids=["a"]) == 1
        [found] = store.get(["a"])
        assert (found.content, found.metadata) == ("new", {"title": "t"})
        assert store.count({"page": 1}) == 0
        assert store.search(NORTH, 1)[0].id == "a"
        assert store.count() == 2

    def test_a_value_of_another_kind_replaces_the_old_one(self, store: DocumentStore) -> None:
        pairs = {f"{old!r} to {new!r}": (old, new) for old in OLD_VALUES for new in NEW_VALUES}
        for index in (0, 1):
            store.add_documents([chunk("text", key=pair[index]) for pair in pairs.values()], ids=list(pairs))
        found = {document.id: document.metadata["key"] for document in store.scan()}
        assert found == {name: new for name, (_, new) in pairs.items()}
        for old in OLD_VALUES:
            operator, value = ("$contains", old[0]) if isinstance(old, list) else ("$eq", old)
            assert [document.id for document in store.scan({"key": {operator: value}})] == []

    def test_ids_come_from_the_source_or_else_from_the_text(self, store: DocumentStore) -> None:
        store.add_documents([chunk("text"), chunk("text", collection="c", source_file="f.md", chunk_index=0)])
        store.add_documents([chunk("text"), chunk("changed", collection="c", source_file="f.md", chunk_index=0)])
        assert sorted(document.content for document in store.scan()) == ["changed", "text"]

    def test_one_id_twice_in_a_call_is_refused(self, store: DocumentStore) -> None:
        with pytest.raises(DuplicateChunkIDError, match="'a'"):
            store.add_documents([chunk("one"), chunk("two"), chunk("three")], ids=["a", "b", "a"])
        assert store.count() == 0

    def test_what_cannot_be_stored_is_refused_and_nothing_is_written(self, store: DocumentStore) -> None:
        for bad in BAD_CHUNKS.values():
            with pytest.raises(InvalidChunkError, match="nothing was written"):
                store.add_documents([GOOD, bad, GOOD], ids=["a", "b", "c"])
        assert store.count() == 0
        assert store.add_documents([GOOD]) == 1

    def test_a_bad_id_is_refused(self, store: DocumentStore) -> None:
        for bad in BAD_IDS:
            with pytest.raises(InvalidChunkError, match="id"):
                store.add_documents([GOOD, chunk("bad")], ids=["a", bad])
            assert store.get(["a", bad]) == []
            assert store.delete(ids=[bad]) == 0
        with pytest.raises(InvalidChunkError, match="1 chunks and 0 ids"):
            store.add_documents([GOOD], ids=[])
        store.add_documents([GOOD], ids=["3"])
        assert store.get([3, 3.0, True, b"3", ("3",)]) == []  # type: ignore[list-item]
        assert store.count() == 1

    def test_all_faults_are_told_at_once(self, store: DocumentStore) -> None:
        with pytest.raises(InvalidChunkError) as caught:
            store.add_documents([chunk("", page=math.nan), chunk("good"), chunk("text", [math.inf, 0, 0], **{"#": 1})])
        message = str(caught.value)
        assert all(part in message for part in ("chunk 0 metadata 'page'", "chunk 0 has no text", "chunk 2 vector"))
        with pytest.raises(InvalidChunkError, match="; and 90 more"):
            store.add_documents([chunk("")] * 100)
