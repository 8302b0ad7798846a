"""Bad settings, bad chunks and hostile values: refused with one clear line, or stored and returned unchanged."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragistry.errors import (
    ConfigError,
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


# Opening


@pytest.mark.parametrize("folder", ["", None, 3, b"bytes", "a\0b", "\ud800"], ids=repr)
def test_a_value_that_is_not_a_path_is_refused(folder: Any) -> None:
    with pytest.raises(ConfigError, match="is not the path of a folder; give the path as text") as caught:
        LocalStore(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["x" * 300, "file", "file/below"])
def test_a_folder_that_cannot_be_created_is_one_clear_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(
        StoreError, match="cannot be opened: .*; make the folder readable and writable, or name another"
    ):
        LocalStore(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("language", [None, 3, "klingon"], ids=repr)
def test_an_unknown_language_is_refused_before_a_file_is_made(tmp_path: Path, language: Any) -> None:
    with pytest.raises(ConfigError, match=repr(language)):
        LocalStore(tmp_path / "local", language=language)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_may_have_any_name(quick_path: Path) -> None:
    for name in ("a?mode=memory#x", "100%41", "ünï 日本 🙂", " ", "'; --"):
        with closing(LocalStore(quick_path / name)) as store:
            store.add_documents([chunk("text")])
            assert len(store.search(EAST)) == len(store.search_text("text")) == 1
        assert LocalStore.exists(quick_path / name)
        assert {path.name for path in (quick_path / name).iterdir()} >= {"store.db", "words", "vectors"}


def test_a_file_of_another_format_says_to_ingest_again(quick_path: Path) -> None:
    (quick_path / "local").mkdir()
    with closing(sqlite3.connect(quick_path / "local" / "store.db")) as connection:
        connection.execute("CREATE TABLE notes (text)")
        connection.execute("PRAGMA user_version = 9")
    with closing(LocalStore(quick_path / "local")) as store:
        for call in (store.count, store.verify, store.repair, lambda: store.add_documents([chunk("text")])):
            with pytest.raises(
                StoreError, match=r"another version .*format 9.*; move the folder away and ingest again"
            ):
                call()


# Chunks and sources


def test_five_megabytes_of_text_are_one_chunk(store: LocalStore) -> None:
    text = "needle " + "A sentence of a very long text. " * 160_000
    store.replace_source("c", "f.md", source("c", "f.md", [text, "another"]))
    assert [d.content == text for d in store.search_text("needle")] == [True]
    assert store.search(EAST, where={"chunk_index": 0})[0].content == text
    assert store.verify() == []


@pytest.mark.parametrize("vector", [
    [math.nan, 0, 0], [math.inf, 0, 0], np.array([1, 2, np.nan], dtype=np.float16), np.zeros(3), [10**400, 0, 0],
    np.array(["1", "2", "3"]), np.array([1 + 2j, 0, 0]), np.ones((1, 3)), [True, False, True], "abc", b"abc", 3,
], ids=repr)  # fmt: skip
def test_a_value_that_is_not_a_vector_is_refused(store: LocalStore, vector: Any) -> None:
    store.add_documents([chunk("kept")], ids=["kept"])
    with pytest.raises(InvalidChunkError, match="vector"):
        store.add_documents([chunk("good"), EmbeddedChunk("bad", {}, vector)])
    with pytest.raises(RagistryError, match="vector"):
        store.search(vector)
    assert [document.id for document in store.scan()] == ["kept"]


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint64", ">f4"])
def test_vectors_of_any_type_of_number_are_accepted(store: LocalStore, dtype: str) -> None:
    store.add_documents([EmbeddedChunk("text", {}, np.array([3, 4, 0], dtype=dtype))], ids=["a"])
    assert store.vectors(["a"]).tolist() == [pytest.approx([0.6, 0.8, 0.0])]
    assert store.search(np.array([3, 4, 0], dtype=dtype))[0].score == pytest.approx(1)


@pytest.mark.parametrize("name", ["\ud800", "", None, 3], ids=["surrogate", "empty", "none", "3"])
def test_a_bad_name_of_a_source_is_refused_or_unknown(store: LocalStore, name: Any) -> None:
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
        store.move_collection(name, "d")
    assert [(info.source_file, info.source_hash) for info in store.sources("c")] == [("f.md", "h")]
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


def test_ids_that_are_not_text_are_unknown(store: LocalStore) -> None:
    store.add_documents([chunk("text")], ids=["3"])
    strange: list[Any] = [3, 3.0, True, None, math.nan, b"3", ("3",), "\ud800", "x" * 10_000]
    assert store.get(strange) == []
    assert store.delete(ids=strange) == 0
    with pytest.raises(StoreError, match="not stored"):
        store.vectors(["3", *strange])


def test_a_move_onto_an_id_of_another_chunk_is_refused(store: LocalStore) -> None:
    store.replace_source("a", "f.md", source("a", "f.md", ["one", "two"]))
    store.add_documents([chunk("other")], ids=[chunk_id("b", "f.md", 1)])
    for move in (lambda: store.move_source("f.md", "a", "b"), lambda: store.move_collection("a", "b")):
        with pytest.raises(DuplicateChunkIDError, match="nothing was changed"):
            move()
    assert [(info.collection, info.chunks) for info in store.sources()] == [("a", 2)]


def test_a_cleared_store_accepts_another_dimension_after_a_search(store: LocalStore) -> None:
    for vector in (EAST, [1.0, 0.0], [0.0, 1.0, 0.0, 0.0]):
        store.add_documents([chunk("text", vector), chunk("more", vector, page=1)])
        assert len(store.search(vector)) == 2
        assert len(store.search(vector, where={"page": 1})) == 1
        with pytest.raises(EmbeddingMismatchError):
            store.search([*vector, 1.0])
        store.clear_collection()


def test_of_two_stores_that_record_an_embedder_only_the_first_may_add(store: LocalStore) -> None:
    one, other = (EmbedderFingerprint("embedded", name, "abc", 3) for name in ("one", "other"))
    with closing(LocalStore(store.folder)) as second:
        store.use_embedder(one)
        with pytest.raises(EmbeddingMismatchError):
            second.use_embedder(other)
        second.clear_collection()
        second.use_embedder(other)
        with pytest.raises(EmbeddingMismatchError):
            store.add_documents([chunk("text")])
        second.add_documents([chunk("text")])
        assert (store.embedder(), store.count()) == (other, 1)


def test_equal_vectors_score_the_same_wherever_they_are(store: LocalStore) -> None:
    """So they are ranked by id; a matrix product adds a row up in an order that depends on its place."""
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


# Values that look like other values


class Collection(StrEnum):
    OPEN = "open"
    SECRET = "secret"


def test_an_id_with_a_nul_is_its_own_id(store: LocalStore) -> None:
    store.add_documents([chunk("short"), chunk("long"), chunk("third")], ids=["a", "a\0b", "c"])
    assert [document.content for document in store.get(["a\0b", "a"])] == ["long", "short"]
    assert store.delete(ids=["c\0", "\0"]) == 0
    store.add_documents([chunk("long again")], ids=["a\0b"])
    assert store.delete(ids=["a\0b"]) == 1
    assert sorted(document.id for document in store.scan()) == ["a", "c"]


def test_a_zero_keeps_its_sign(store: LocalStore) -> None:
    zeros = [0.0, -0.0, 0.0]
    origin = {"collection": "c", "source_file": "f", "source_hash": "h"}
    chunks = [chunk(f"text {n}", **origin, chunk_index=n, value=zero) for n, zero in enumerate(zeros)]
    store.replace_source("c", "f", chunks)
    found = sorted(store.scan(), key=lambda document: document.content)
    assert [str(document.metadata["value"]) for document in found] == ["0.0", "-0.0", "0.0"]


def test_values_of_subclasses_select_as_their_plain_values(store: LocalStore) -> None:
    """A condition also limits access."""
    for page, name in enumerate(("open", "secret"), 1):
        [only] = source(name, name, [f"text of {name}"])
        store.replace_source(name, name, [only._replace(metadata=only.metadata | {"page": page})])
    for where in (
        {"collection": Collection.OPEN}, {"collection": {"$ne": Collection.SECRET}},
        {"collection": {"$nin": [np.str_("secret")]}}, {"page": np.int64(1)}, {"page": {"$lt": np.float32(1.5)}},
    ):  # fmt: skip
        assert [document.content for document in store.search(EAST, where=where)] == ["text of open"], where
        assert store.count(where) == 1


ODD_CALLS: list[Callable[[LocalStore], object]] = [
    lambda store: store.get(None), lambda store: store.get([["a"]]), lambda store: store.vectors(3),
    lambda store: store.get("abc"), lambda store: store.delete(ids="abc"),
    lambda store: store.delete(ids=[{}]), lambda store: store.scan(batch="x"), lambda store: store.scan(batch=1.5),
    lambda store: store.add_documents(None), lambda store: store.add_documents([chunk("x")], ids=3),
    lambda store: store.add_documents([np.eye(30)]), lambda store: store.search(EAST, np.eye(30)),
    lambda store: store.count({"a": {"$in": np.eye(30)}}), lambda store: store.vectors(["x" * 1_000_000] * 3),
    lambda store: store.replace_source("c\nd", "f" * 1_000_000, [chunk("x")]),
    lambda store: store.add_documents([chunk(f"x{i}", **{f"key{k}": k for k in range(10_000)}) for i in range(3)]),
]  # fmt: skip


@pytest.mark.parametrize("call", ODD_CALLS, ids=range(len(ODD_CALLS)))
def test_an_odd_argument_is_refused_with_one_short_line(
    store: LocalStore, call: Callable[[LocalStore], object]
) -> None:
    store.add_documents([chunk(letter, NORTH) for letter in "abc"], ids=list("abc"))
    with pytest.raises((QueryError, StoreError)) as caught:
        call(store)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1_000
    assert store.count() == 3


def test_chunks_and_ids_may_be_iterators(store: LocalStore) -> None:
    assert store.add_documents((chunk(text) for text in "ab"), ids=(text for text in "ab")) == 2
    assert [document.content for document in store.get(text for text in "ba")] == ["b", "a"]
    store.replace_source("c", "f.md", iter(source("c", "f.md", ["text"])))
    assert store.count({"collection": "c"}) == 1
