"""What nobody should give a store: refused by name, or taken and given back; never half taken."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragistry.errors import (
    DuplicateChunkIDError,
    EmbeddingMismatchError,
    InvalidChunkError,
    QueryError,
    RagistryError,
    StoreError,
)
from ragistry.stores.local import LocalStore
from ragistry.testing.stores.chunks import EAST, NORTH, chunk, source
from ragistry.types import EmbeddedChunk, EmbedderFingerprint
from ragistry.utils.ids import chunk_id


@pytest.fixture
def store(quick_path: Path) -> Iterator[LocalStore]:
    with closing(LocalStore(quick_path / "local")) as store:
        yield store


def test_five_megabytes_of_text_are_one_chunk(store: LocalStore) -> None:
    text = "needle " + "A sentence of a very long text. " * 160_000
    assert len(text) > 5_000_000
    store.replace_source("c", "f.md", source("c", "f.md", [text, "another"]))
    assert [d.content == text for d in store.search_text("needle")] == [True]
    assert store.search(EAST, where={"chunk_index": 0})[0].content == text
    assert store.verify() == []


def test_ten_thousand_metadata_keys_are_refused(store: LocalStore) -> None:
    with pytest.raises(InvalidChunkError, match="10000 metadata keys, the limit is 100"):
        store.add_documents([chunk("text", **{f"key{i}": i for i in range(10_000)})])
    assert store.count() == 0


@pytest.mark.parametrize("vector", [
    [math.nan, 0, 0], [math.inf, 0, 0], np.array([1, 2, np.nan], dtype=np.float16), np.zeros(3), [10**400, 0, 0],
    np.array(["1", "2", "3"]), np.array([1 + 2j, 0, 0]), np.ones((1, 3)), [True, False, True], "abc", b"abc", 3,
], ids=repr)  # fmt: skip
def test_what_is_no_vector_is_refused(store: LocalStore, vector: Any) -> None:
    store.add_documents([chunk("kept")], ids=["kept"])
    with pytest.raises(InvalidChunkError, match="vector"):
        store.add_documents([chunk("good"), EmbeddedChunk("bad", {}, vector)])
    with pytest.raises(RagistryError, match="vector"):
        store.search(vector)
    assert [document.id for document in store.scan()] == ["kept"]


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint64", ">f4"])
def test_vectors_of_any_kind_of_number_are_taken(store: LocalStore, dtype: str) -> None:
    store.add_documents([EmbeddedChunk("text", {}, np.array([3, 4, 0], dtype=dtype))], ids=["a"])
    assert store.vectors(["a"]).tolist() == [pytest.approx([0.6, 0.8, 0.0])]
    assert store.search(np.array([3, 4, 0], dtype=dtype))[0].score == pytest.approx(1)


@pytest.mark.parametrize(
    "name", ["\ud800", "", "x" * 2_000_000, None, 3], ids=["surrogate", "empty", "long", "none", "3"]
)
def test_what_is_no_name_of_a_source_is_refused_or_unknown(store: LocalStore, name: Any) -> None:
    store.replace_source("c", "f.md", source("c", "f.md", ["kept"]))
    for collection, source_file in ((name, "f.md"), ("c", name)):
        with pytest.raises(InvalidChunkError):
            store.replace_source(collection, source_file, source(collection, source_file, ["text"]))
        with suppress(InvalidChunkError):
            store.replace_source(collection, source_file, [])
    for arguments in ((name, "c", "d"), ("f.md", name, "d"), ("f.md", "c", name)):
        with suppress(InvalidChunkError):
            store.move_source(*arguments)
    with suppress(InvalidChunkError):
        store.move_source("f.md", name, "c")
    assert [(info.source_file, info.source_hash) for info in store.sources("c")] == [("f.md", "h")]
    assert name is None or store.sources(name) == []
    assert [d.content for d in store.scan()] == ["kept"]


@pytest.mark.parametrize(
    "name", ["a\x00b", "ünï 日本 🙂", "../../etc/passwd", "'; DROP TABLE chunks; --", " ", "x" * 5_000]
)
def test_a_source_may_have_any_other_name(store: LocalStore, name: str) -> None:
    store.replace_source(name, name, source(name, name, ["one", "two"]))
    assert store.move_source(name, name, name + "2") == 2
    [info] = store.sources(name + "2")
    assert (info.source_file, info.chunks) == (name, 2)
    assert len(store.search(EAST, where={"source_file": name})) == 2
    store.replace_source(name + "2", name, [])
    assert store.count() == 0


def test_ids_that_are_no_text_are_unknown(store: LocalStore) -> None:
    store.add_documents([chunk("text")], ids=["3"])
    strange: list[Any] = [3, 3.0, True, None, math.nan, b"3", ("3",), "\ud800", "x" * 10_000]
    assert store.get(strange) == []
    assert store.delete(ids=strange) == 0
    with pytest.raises(StoreError, match="not stored"):
        store.vectors(["3", *strange])
    assert store.count() == 1


def test_texts_that_nobody_stored_have_no_vector(store: LocalStore) -> None:
    store.add_documents([chunk("text")])
    found = store.vectors_of_texts(["text", "\ud800", "", "other"])
    assert {text: vector.tolist() for text, vector in found.items()} == {"text": EAST}


def test_no_ids_have_no_vectors(store: LocalStore) -> None:
    assert len(store.vectors([])) == 0
    store.add_documents([chunk("text")])
    assert len(store.vectors([])) == 0


def test_a_move_onto_an_id_that_is_taken_is_refused(store: LocalStore) -> None:
    store.replace_source("a", "f.md", source("a", "f.md", ["one", "two"]))
    store.add_documents([chunk("squatter")], ids=[chunk_id("b", "f.md", 1)])
    with pytest.raises(DuplicateChunkIDError, match="nothing was changed"):
        store.move_source("f.md", "a", "b")
    assert [(info.collection, info.chunks) for info in store.sources()] == [("a", 2)]


def test_a_cleared_store_takes_another_dimension_even_after_a_search(quick_path: Path) -> None:
    for number, options in enumerate(({}, {"exclusive": True, "graph_above": 0})):
        with closing(LocalStore(quick_path / f"{number}", **options)) as store:
            for vector in (EAST, [1.0, 0.0], [0.0, 1.0, 0.0, 0.0]):
                store.add_documents([chunk("text", vector), chunk("more", vector, page=1)])
                assert len(store.search(vector)) == 2
                assert len(store.search(vector, where={"page": 1})) == 1
                with pytest.raises(EmbeddingMismatchError):
                    store.search([*vector, 1.0])
                store.clear_collection()


def test_two_that_record_their_embedder_at_once_do_not_both_succeed(store: LocalStore) -> None:
    """The second checks again when its turn to write has come."""
    one, other = (EmbedderFingerprint("embedded", name, "abc", 3) for name in ("one", "other"))
    with closing(LocalStore(store.folder)) as second:
        write = second._state.write

        def slow() -> Any:
            store.use_embedder(one)
            return write()

        second._state.write = slow
        with pytest.raises(EmbeddingMismatchError):
            second.use_embedder(other)
    store.check_embedder(one)


def test_equal_vectors_score_the_same_wherever_they_stand(store: LocalStore) -> None:
    """And so are ranked by id; a matrix product adds a row up in an order that depends on its place."""
    rng = np.random.default_rng(1)
    same = rng.normal(size=384)
    vectors = [same if i % 3 else rng.normal(size=384) for i in range(120)]
    chunks = [EmbeddedChunk(f"text {i}", {"number": i}, vector) for i, vector in enumerate(vectors)]
    store.add_documents(chunks, ids=[f"{i * 37 % 120:03}" for i in range(120)])
    query = same + rng.normal(size=384)
    scores = set()
    for most in range(5, 120, 6):
        found = store.search(query, 120, where={"number": {"$lt": most}})
        copies = [document for document in found if document.metadata["number"] % 3]
        assert [d.id for d in copies] == sorted(d.id for d in copies)
        scores |= {document.score for document in copies}
    assert len(scores) == 1


def test_ids_given_as_one_text_are_not_its_letters(store: LocalStore) -> None:
    store.add_documents([chunk(letter, NORTH) for letter in "abc"], ids=list("abc"))
    for call in (store.get, lambda ids: store.delete(ids=ids)):
        with pytest.raises(QueryError, match="ids must be a list of text, got 'abc'"):
            call("abc")
    assert store.count() == 3
