"""Bad settings, bad chunks and hostile values: refused with one clear line, or stored and returned unchanged."""

from __future__ import annotations

import gc
import sqlite3
from contextlib import closing, suppress
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragistry.errors import ConfigError, InvalidChunkError, StoreError
from ragistry.stores.local import LocalStore
from ragistry.testing.stores.chunks import EAST, chunk, source
from ragistry.types import EmbeddedChunk
from tests.messages import refused


@pytest.fixture
def store(local: LocalStore) -> LocalStore:
    return local


# Opening


def test_value_that_is_not_a_path_is_refused() -> None:
    folders: list[Any] = ["", None, 3, b"bytes", "a\0b", "\ud800"]
    for folder in folders:
        with refused(ConfigError):
            LocalStore(folder)


def test_folder_that_cannot_be_created_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for name in ("x" * 300, "file", "file/below"):
        with refused(StoreError, name):
            LocalStore(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_unknown_language_is_refused_before_a_file_is_made(tmp_path: Path) -> None:
    for language in (None, 3, "klingon"):
        with refused(ConfigError, repr(language)):
            LocalStore(tmp_path / "local", language=language)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    for name in ("a?mode=memory#x", "100%41", "ünï 日本 🙂", " ", "'; --"):
        with closing(LocalStore(tmp_path / name)) as store:
            store.add_documents([chunk("text")])
            assert len(store.search(EAST)) == len(store.search_text("text")) == 1
        assert LocalStore.exists(tmp_path / name)
        assert {path.name for path in (tmp_path / name).iterdir()} >= {"store.db", "words", "vectors"}


def test_a_file_of_another_format_says_to_ingest_again(tmp_path: Path) -> None:
    (tmp_path / "local").mkdir()
    with closing(sqlite3.connect(tmp_path / "local" / "store.db")) as connection:
        connection.execute("CREATE TABLE notes (text)")
        connection.execute("PRAGMA user_version = 9")
    with closing(LocalStore(tmp_path / "local")) as store:
        for call in (store.count, store.verify, store.repair, lambda: store.add_documents([chunk("text")])):
            with refused(StoreError):
                call()


# Chunks and sources


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


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files cannot be listed")
def test_an_abandoned_scan_closes_its_files(store: LocalStore) -> None:
    def open_files() -> list[str]:
        links = [str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
        return [link for link in links if link.startswith(str(store.folder))]

    store.add_documents([chunk("one"), chunk("two")])
    begun, not_begun, late = store.scan(batch=1), store.scan(batch=1), store.scan()
    next(begun)
    store.close()
    assert open_files()
    with refused(StoreError):
        next(late)
    del begun, not_begun
    gc.collect()
    assert open_files() == []


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


def test_chunks_and_ids_may_be_iterators(store: LocalStore) -> None:
    assert store.add_documents((chunk(text) for text in "ab"), ids=(text for text in "ab")) == 2
    assert [document.content for document in store.get(text for text in "ba")] == ["b", "a"]
    store.replace_source("c", "f.md", iter(source("c", "f.md", ["text"])))
    assert store.count({"collection": "c"}) == 1
