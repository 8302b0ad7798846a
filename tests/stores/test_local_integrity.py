"""`verify` sees every value that changed in the database; `repair` says what is lost, and lets it be ingested again."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ragistry.errors import StoreCorruptError
from ragistry.stores.local import LocalStore
from ragistry.types import EmbeddedChunk, EmbedderFingerprint
from tests.stores.local_stores import check, check_searches, moved, put, truth_of, vector_of, version_of
from tests.stores.scripts import run

A, B = version_of("a.md", 1), version_of("b.md", 1, 4)
TRUTH = truth_of(A, B)
LOOSE = EmbeddedChunk("a loose text", {"colour": "red"}, vector_of("loose"))
SOURCE = "source 'a.md' of collection 'c'"
FINGERPRINT = EmbedderFingerprint("test", "next", "", 8)


@pytest.fixture(scope="module")
def base(quick_folder: Path) -> Path:
    folder = quick_folder / "base"
    with closing(LocalStore(folder)) as store:
        put(store, A)
        put(store, B)
        store.add_documents([LOOSE], ids=["loose"])
        store.begin_reembedding(FINGERPRINT)
        store.put_reembedded(1, [vector_of(chunk.text) for chunk in A], FINGERPRINT)
    return folder


@pytest.fixture
def copy(base: Path, quick_path: Path) -> Path:
    return Path(shutil.copytree(base, quick_path / "local"))


def change(folder: Path, statement: str, *values: object) -> None:
    """As a program would that knows nothing of checksums, or a disk that garbles a page and its index alike."""
    with closing(sqlite3.connect(folder / "store.db")) as connection, connection:
        assert connection.execute(statement, values).rowcount == 1


def vectors(folder: Path, table: str = "vectors") -> np.ndarray:
    with closing(sqlite3.connect(folder / "store.db")) as connection:
        [data] = connection.execute(f"SELECT data FROM {table} WHERE source = 1").fetchone()
    return np.frombuffer(data, dtype=np.float32).reshape(len(A), -1).copy()


def turned(vectors: np.ndarray) -> bytes:
    vectors[1] *= -1
    return vectors.tobytes()


def tilted(vectors: np.ndarray) -> bytes:
    vectors[1, :2] = vectors[1, 0] * 0.8 - vectors[1, 1] * 0.6, vectors[1, 0] * 0.6 + vectors[1, 1] * 0.8
    return vectors.tobytes()


def swapped(vectors: np.ndarray) -> bytes:
    return vectors[[1, 0, 2]].tobytes()


CHUNK_CHANGES = {
    "own": ("UPDATE chunks SET own = replace(own, '1', '2') WHERE key = 2", "metadata of chunk"),
    "page": ("UPDATE chunks SET page = 7 WHERE key = 2", "metadata of chunk"),
    "section": ("UPDATE chunks SET section = 'x' WHERE key = 2", "metadata of chunk"),
    "has_code": ("UPDATE chunks SET has_code = 1 WHERE key = 2", "metadata of chunk"),
    "id": ("UPDATE chunks SET id = 'other' WHERE key = 2", "metadata of chunk 'other'"),
    "hash": ("UPDATE chunks SET text_hash = 5 WHERE key = 2", "text of chunk"),
    "text": ("UPDATE chunks SET text = 'other' WHERE key = 2", "text of chunk"),
}
LOST = ("own", "id", "text")
"""Those changes of a chunk that do not follow from the rest of it."""
SOURCE_CHANGES = {
    "common": ("UPDATE sources SET common = replace(common, '/in/a', '/in/x') WHERE id = 1", "is recorded of"),
    "varying": ("UPDATE sources SET varying = '[]' WHERE id = 1", "is recorded of"),
    "whole": ("UPDATE sources SET whole = 0 WHERE id = 1", "is recorded of"),
    "chunks": ("UPDATE sources SET chunks = 2 WHERE id = 1", "is recorded of"),
    "collection": ("UPDATE sources SET collection = 'd' WHERE id = 1", "is recorded of"),
    "source_file": ("UPDATE sources SET source_file = 'd' WHERE id = 1", "is recorded of"),
}
OTHER_CHANGES = {
    "lost chunk": ("DELETE FROM chunks WHERE key = 2", "2 chunks in place of 3"),
    "lost vectors": ("DELETE FROM vectors WHERE source = 1", "vectors of"),
    "key of another": ("REPLACE INTO meta SELECT key, '9', checksum FROM meta WHERE key = 'dimension'", "'dimension'"),
    "next embedder": (
        "REPLACE INTO meta SELECT key, 'x', checksum FROM meta WHERE key = 'next_embedder'",
        "'next_embedder'",
    ),
    "order of chunks": ("UPDATE chunks SET key = 100 WHERE key = 2", "belongs to no source"),
}


@pytest.mark.parametrize("what", [*CHUNK_CHANGES, *SOURCE_CHANGES, *OTHER_CHANGES])
def test_a_changed_value_is_told_by_verify(copy: Path, what: str) -> None:
    statement, said = (CHUNK_CHANGES | SOURCE_CHANGES | OTHER_CHANGES)[what]
    change(copy, statement)
    with closing(LocalStore(copy)) as store:
        assert said in store.verify()[0]


@pytest.mark.parametrize("table", ["vectors", "next_vectors"])
@pytest.mark.parametrize("changed", [turned, tilted, swapped])
def test_vectors_that_changed_and_still_have_length_1_are_told_by_verify(
    copy: Path, table: str, changed: Callable[[np.ndarray], bytes]
) -> None:
    change(copy, f"UPDATE {table} SET data = ? WHERE source = 1", changed(vectors(copy, table)))
    with closing(LocalStore(copy)) as store:
        [line] = store.verify()
        assert f"the vectors of {SOURCE} are not what was written" in line


@pytest.mark.parametrize("what", LOST)
def test_what_is_lost_of_a_chunk_is_said_and_comes_back_when_it_is_ingested_again(copy: Path, what: str) -> None:
    change(copy, CHUNK_CHANGES[what][0])
    with closing(LocalStore(copy)) as store:
        [line] = store.repair()
        assert SOURCE in line
        assert "it is lost: ingest the source again" in line
        assert {info.source_file: info.source_hash for info in store.sources()} == {"a.md": "", "b.md": "hash 1"}
        assert store.verify() != []
        put(store, A)
        store.delete(ids=["loose"])
        check(store, TRUTH)


def test_damaged_vectors_are_made_anew_when_their_source_is_ingested_again(copy: Path) -> None:
    change(copy, "UPDATE vectors SET data = ? WHERE source = 1", turned(vectors(copy)))
    with closing(LocalStore(copy)) as store:
        texts = [chunk.text for chunk in (*A, *B)]
        assert sorted(store.vectors_of_texts(texts)) == sorted(chunk.text for chunk in B)
        assert len(store.repair()) == 1
        put(store, A)
        store.delete(ids=["loose"])
        check(store, TRUTH)


WRITES: dict[str, Callable[[LocalStore], object]] = {
    "move": lambda store: store.move_source("a.md", "c", "d"),
    "add": lambda store: store.add_documents([A[0]._replace(metadata={**A[0].metadata, "chunk_index": 9})]),
    "remove": lambda store: store.delete(where={"page": 0}),
    "clear": lambda store: store.clear_collection(),
}


@pytest.mark.parametrize("write", ["move", "add", "remove"])
@pytest.mark.parametrize("what", ["own", "text", "id"])
def test_damage_is_not_written_on_as_if_it_were_sound(copy: Path, write: str, what: str) -> None:
    change(copy, CHUNK_CHANGES[what][0])
    with closing(LocalStore(copy)) as store:
        with pytest.raises(StoreCorruptError, match="chunk '.*' is not what was written; ?.*|is damaged: chunk"):
            WRITES[write](store)
        assert CHUNK_CHANGES[what][1] in store.verify()[0]


def test_every_way_to_write_leaves_what_verify_finds_sound(copy: Path) -> None:
    with closing(LocalStore(copy)) as store:
        for write in WRITES.values():
            write(store)
            assert store.verify() == []
        put(store, B)
        store.begin_reembedding(FINGERPRINT)
        for group in store.begin_reembedding(FINGERPRINT):
            store.put_reembedded(
                group, np.array([vector_of(text) for text in store.texts_of_group(group)]), FINGERPRINT
            )
        assert store.verify() == []
        assert store.finish_reembedding(FINGERPRINT)
        store.move_collection("c", "e")
        assert store.verify() == []
        check_searches(store, truth_of(moved(B, "e")))


def test_a_garbled_record_of_the_store_is_said_plainly(copy: Path) -> None:
    change(copy, "REPLACE INTO meta SELECT key, 'x', checksum FROM meta WHERE key = 'state'")
    with closing(LocalStore(copy)) as store, pytest.raises(StoreCorruptError, match="the record 'state'"):
        store.count()


def test_what_varies_and_what_is_shared_is_as_it_was_given(copy: Path) -> None:
    with closing(sqlite3.connect(copy / "store.db")) as connection:
        [varying] = connection.execute("SELECT varying FROM sources WHERE id = 1").fetchone()
    assert json.loads(varying) == ["chunk_index", "page"]


VERIFIED = """
import logging, sys
from ragistry.stores.local import LocalStore
logging.basicConfig(stream=sys.stdout, format="%(message)s")
print(LocalStore(sys.argv[1], lock_timeout=0.1).verify())
"""


def test_the_database_is_verified_whoever_has_the_right_to_write(quick_path: Path) -> None:
    with closing(LocalStore(quick_path / "s", exclusive=True)) as server:
        put(server, A)
        said, found = run(VERIFIED, quick_path / "s").splitlines()
        assert said.startswith("only store.db was looked at, the indexes were not: the store at")
        assert found == "[]"
        with closing(sqlite3.connect(quick_path / "s" / "store.db")) as connection, connection:
            connection.execute("UPDATE chunks SET text = 'other' WHERE key = 1")
        assert "store.db: the text of chunk" in run(VERIFIED, quick_path / "s").splitlines()[-1]
