"""Another embedder that fails, or meets others at work: the store never holds vectors of two, nor what is no vector."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ragistry.errors import EmbeddingMismatchError, InvalidChunkError, StoreCorruptError, StoreError
from ragistry.library.reembed import reembed
from ragistry.stores.local import LocalStore
from ragistry.testing.hashed import hashed_embedding
from ragistry.types import EmbeddedChunk, EmbedderFingerprint

DIMENSION = 8


class Hashing:
    """Vectors of words, different for each model; ``flaw`` is done to those of a call."""

    def __init__(self, model: str, flaw=None, meanwhile=None) -> None:
        self.fingerprint = EmbedderFingerprint("test", model, "", DIMENSION)
        self.flaw = flaw
        self.meanwhile = meanwhile

    def embed(self, texts, *, role="document"):
        rows = np.array([hashed_embedding(f"{self.fingerprint.model} {text}", DIMENSION) for text in texts], np.float32)
        if self.meanwhile is not None:
            once, self.meanwhile = self.meanwhile, None
            once()
        return self.flaw(rows) if self.flaw else rows


OLD, A, B = (Hashing(name) for name in ("old", "a", "b"))


def put(store: LocalStore, name: str, embedder: Hashing) -> None:
    texts = [f"{name} part {index}" for index in range(3)]
    origin = {"collection": "c", "source_file": name, "source_hash": "h"}
    store.replace_source("c", name, [
        EmbeddedChunk(text, {**origin, "chunk_index": index}, vector)
        for index, (text, vector) in enumerate(zip(texts, embedder.embed(texts), strict=True))
    ])  # fmt: skip


def are_all_of(store: LocalStore, embedder: Hashing) -> bool:
    store.check_embedder(embedder.fingerprint)
    documents = list(store.scan())
    return np.allclose(store.vectors([d.id for d in documents]), embedder.embed([d.content for d in documents]))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    with closing(LocalStore(tmp_path / "store", lock_timeout=30)) as opened:
        opened.use_embedder(OLD.fingerprint)
        for name in "xyz":
            put(opened, name, OLD)
        yield opened


FLAWS = {
    "NaN": (lambda rows: rows * [[np.nan]], "vector 0 holds NaN"),
    "zeros": (lambda rows: rows * 0, "vector 0 is all zeros"),
    "one too few": (lambda rows: rows[:-1], "2 vectors for 3 texts"),
    "one too many": (lambda rows: np.vstack([rows, rows[:1]]), "4 vectors for 3 texts"),
    "unequal": (lambda rows: [*rows[:-1], rows[-1][:-1]], "unequal lengths"),
    "nothing": (lambda rows: None, "not iterable"),
    "text": (lambda rows: ["a"] * len(rows), "is not a list of numbers"),
}


@pytest.mark.parametrize("name", FLAWS)
def test_what_is_no_vector_is_refused_and_the_old_ones_stay(store: LocalStore, name: str) -> None:
    flaw, message = FLAWS[name]
    with pytest.raises(InvalidChunkError, match=f"'new' gave .*{message}.*; the old vectors stay in use; see to"):
        reembed(store, Hashing("new", flaw))
    assert are_all_of(store, OLD)
    assert store.verify() == []


def test_vectors_of_another_length_than_the_embedder_says_are_refused(store: LocalStore) -> None:
    with pytest.raises(EmbeddingMismatchError, match="gave vectors of 7 numbers in place of 8; the old vectors stay"):
        reembed(store, Hashing("new", lambda rows: rows[:, :7]))
    assert are_all_of(store, OLD)


def test_vectors_of_any_length_are_kept_at_length_one(store: LocalStore) -> None:
    assert reembed(store, Hashing("a", lambda rows: (rows * 3).astype(np.float64).tolist())) == 3
    assert are_all_of(store, A)
    assert store.verify() == []


def test_of_two_embedders_at_once_the_one_that_came_later_wins(store: LocalStore) -> None:
    with closing(LocalStore(store.folder)) as other:
        groups = store.begin_reembedding(A.fingerprint)
        store.put_reembedded(groups[0], A.embed(store.texts_of_group(groups[0])), A.fingerprint)
        assert other.begin_reembedding(B.fingerprint) == groups
        for call in (
            lambda: store.put_reembedded(groups[1], A.embed(store.texts_of_group(groups[1])), A.fingerprint),
            lambda: store.finish_reembedding(A.fingerprint),
        ):
            with pytest.raises(EmbeddingMismatchError, match="'a' were not put in place: .* with 'b', came later; run"):
                call()
        assert are_all_of(store, OLD)
        assert reembed(other, B) == 3
        with pytest.raises(EmbeddingMismatchError, match="with 'b', came later"):
            store.put_reembedded(groups[1], A.embed(store.texts_of_group(groups[1])), A.fingerprint)
    assert are_all_of(store, B)


def test_of_two_with_the_same_embedder_the_second_has_nothing_left_to_do(store: LocalStore) -> None:
    with closing(LocalStore(store.folder)) as other:
        assert reembed(store, Hashing("a", meanwhile=lambda: reembed(other, A))) == 3
        assert are_all_of(other, A)
    assert are_all_of(store, A)


def test_a_write_of_the_old_embedders_vectors_is_refused_afterwards(store: LocalStore) -> None:
    """As an ingest that began before goes on after it."""
    with closing(LocalStore(store.folder)) as other:
        reembed(other, A)
    for call in (
        lambda: put(store, "x", OLD),
        lambda: store.add_documents([EmbeddedChunk("new", {}, OLD.embed(["new"])[0])]),
    ):
        with pytest.raises(EmbeddingMismatchError, match="come from test 'a' .* set embed_model"):
            call()
    assert are_all_of(store, A)
    store.replace_source("c", "x", [])
    assert store.count({"source_file": "x"}) == 0
    store.use_embedder(A.fingerprint)
    put(store, "x", A)
    assert are_all_of(store, A)


def test_a_store_that_was_cleared_meanwhile_takes_the_embedder_again(store: LocalStore) -> None:
    with closing(LocalStore(store.folder)) as other:
        other.clear_collection()
    put(store, "x", OLD)
    assert are_all_of(store, OLD)
    with pytest.raises(EmbeddingMismatchError):
        store.check_embedder(A.fingerprint)


def test_who_clears_a_store_may_fill_it_with_any_vectors(store: LocalStore) -> None:
    store.clear_collection()
    store.add_documents([EmbeddedChunk("text", {}, [1.0, 0.0])])
    store.check_embedder(EmbedderFingerprint("test", "any", "", 2))
    with pytest.raises(StoreError):
        put(store, "x", OLD)


DAMAGE = {
    "all chunks of a source gone": "DELETE FROM chunks WHERE id IN (SELECT id FROM chunks ORDER BY key LIMIT 3)",
    "one chunk gone": "DELETE FROM chunks WHERE id IN (SELECT id FROM chunks ORDER BY key LIMIT 1)",
    "another text": "UPDATE chunks SET text = text || '!' WHERE key = (SELECT min(key) FROM chunks)",
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_source_is_told_and_nothing_takes_the_place_of_its_vectors(store: LocalStore, name: str) -> None:
    with closing(sqlite3.connect(store.folder / "store.db", isolation_level=None)) as connection:
        connection.execute(DAMAGE[name])
    with pytest.raises(
        StoreCorruptError, match=r"(source 'x'|chunk) .*; the old vectors stay in use: delete that source"
    ):
        reembed(store, A)
    store.check_embedder(OLD.fingerprint)
    store.replace_source("c", "x", [])
    assert reembed(store, A) == 2
    assert are_all_of(store, A)
