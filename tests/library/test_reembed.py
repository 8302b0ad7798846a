"""Another embedder in the place of the old one: searched only when all vectors are there, continued after a stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragistry.errors import EmbeddingMismatchError, InvalidChunkError, ModelConnectionError
from ragistry.stores.local import LocalStore
from ragistry.testing.hashed import hashed_embedding
from ragistry.types import EmbeddedChunk, EmbedderFingerprint

CHUNKS = 100


class Hashing:
    """Vectors of words, different for each model.

    ``calls``: after so many the server is gone. ``meanwhile`` is called once, ``flaw`` is done to all vectors.
    """

    def __init__(
        self,
        model: str,
        dimension: int = 8,
        *,
        calls: int = 1000,
        meanwhile: Callable[[], object] | None = None,
        flaw: Callable[[Any], Any] | None = None,
    ) -> None:
        self.fingerprint = EmbedderFingerprint("test", model, "", dimension)
        self.calls, self.meanwhile, self.flaw = calls, meanwhile, flaw
        self.embedded = 0

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def embed(self, texts: Sequence[str], *, role: str = "document") -> Any:
        if not self.calls:
            raise ModelConnectionError("gone")
        self.calls -= 1
        self.embedded += len(texts)
        if self.meanwhile is not None:
            once, self.meanwhile = self.meanwhile, None
            once()
        made = [hashed_embedding(f"{self.fingerprint.model} {text}", self.fingerprint.dimension) for text in texts]
        rows = np.array(made, dtype=np.float32)
        return rows if self.flaw is None else self.flaw(rows)


OLD, A, B = (Hashing(name) for name in ("old", "a", "b"))


def put(store: LocalStore, name: str, embedder: Hashing, chunks: int = CHUNKS) -> None:
    texts = [f"{name} part {index}" for index in range(chunks)]
    origin = {"collection": "c", "source_file": name, "source_hash": "h"}
    store.replace_source("c", name, [
        EmbeddedChunk(text, {**origin, "chunk_index": index}, vector)
        for index, (text, vector) in enumerate(zip(texts, embedder.embed(texts), strict=True))
    ])  # fmt: skip


def are_all_of(store: LocalStore, embedder: Hashing) -> bool:
    """Whether every vector, those that are searched too, comes from this embedder."""
    assert store.embedder() == embedder.fingerprint
    documents = list(store.scan())
    made = embedder.embed([document.content for document in documents])
    [best] = store.search(made[7], 1)
    assert (best.content, best.score > 0.999) == (documents[7].content, True)
    return np.allclose(store.vectors([document.id for document in documents]), made, atol=1e-6)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    with closing(LocalStore(tmp_path / "store", lock_timeout=30)) as opened:
        opened.use_embedder(OLD.fingerprint)
        for name in "xyz":
            put(opened, name, OLD)
        yield opened


@pytest.mark.parametrize("dimension", [8, 16])
def test_afterwards_the_new_vectors_are_searched(store: LocalStore, dimension: int) -> None:
    assert are_all_of(store, OLD), "the old vectors are in memory"
    new = Hashing("new", dimension)
    assert store.reembed(new) == 3 * CHUNKS
    assert are_all_of(store, new)
    with pytest.raises(EmbeddingMismatchError):
        store.use_embedder(OLD.fingerprint)
    assert store.verify() == []


def test_an_interrupted_run_leaves_the_old_vectors_and_is_continued(store: LocalStore) -> None:
    stopped = Hashing("new", calls=2)
    with pytest.raises(ModelConnectionError):
        store.reembed(stopped)
    assert are_all_of(store, OLD)
    assert store.reembed(Hashing("new")) == 3 * CHUNKS - stopped.embedded < 3 * CHUNKS
    assert are_all_of(store, Hashing("new"))


def test_a_run_with_yet_another_embedder_begins_anew(store: LocalStore) -> None:
    with pytest.raises(ModelConnectionError):
        store.reembed(Hashing("new", calls=2))
    assert store.reembed(A) == 3 * CHUNKS
    assert are_all_of(store, A)


def test_chunks_that_are_written_meanwhile_are_embedded_too(store: LocalStore) -> None:
    def ingest() -> None:
        put(store, "x", OLD, 3)
        put(store, "new", OLD, 3)

    store.reembed(Hashing("a", meanwhile=ingest))
    assert store.count() == 2 * CHUNKS + 6
    assert are_all_of(store, A)


FLAWS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "NaN": (lambda rows: rows * [[np.nan]], "NaN"),
    "zeros": (lambda rows: rows * 0, "zeros"),
    "one too few": (lambda rows: rows[:-1], "vectors for"),
    "one too many": (lambda rows: np.vstack([rows, rows[:1]]), "vectors for"),
    "unequal": (lambda rows: [*rows[:-1], rows[-1][:-1]], "unequal lengths"),
    "nothing": (lambda rows: None, "not iterable"),
    "text": (lambda rows: ["a"] * len(rows), "is not a list of numbers"),
}


@pytest.mark.parametrize("name", FLAWS)
def test_what_is_not_a_vector_is_refused_and_the_old_ones_stay(store: LocalStore, name: str) -> None:
    flaw, message = FLAWS[name]
    with pytest.raises(InvalidChunkError, match=f"'new' gave .*{message}.*; the old vectors stay in use"):
        store.reembed(Hashing("new", flaw=flaw))
    assert are_all_of(store, OLD)
    assert store.verify() == []


def test_vectors_of_another_length_than_the_embedder_says_are_refused(store: LocalStore) -> None:
    with pytest.raises(EmbeddingMismatchError, match="gave vectors of 7 numbers instead of 8; the old vectors stay"):
        store.reembed(Hashing("new", flaw=lambda rows: rows[:, :7]))
    assert are_all_of(store, OLD)


def test_vectors_of_any_length_are_kept_at_length_one(store: LocalStore) -> None:
    store.reembed(Hashing("a", flaw=lambda rows: (rows * 3).astype(np.float64).tolist()))
    assert are_all_of(store, A)


def test_of_two_embedders_at_once_the_one_that_came_later_wins(store: LocalStore) -> None:
    with closing(LocalStore(store.folder)) as other:
        with pytest.raises(EmbeddingMismatchError, match="'a' were not put in place: .*'b', came later; run"):
            store.reembed(Hashing("a", meanwhile=lambda: other.reembed(B)))
        assert are_all_of(other, B)
    assert are_all_of(store, B)


def test_two_runs_with_the_same_embedder_end_with_its_vectors(store: LocalStore) -> None:
    with closing(LocalStore(store.folder)) as other:
        store.reembed(Hashing("a", meanwhile=lambda: other.reembed(A)))
        assert are_all_of(other, A)
    assert are_all_of(store, A)
    assert store.reembed(A) == 0


def test_a_write_of_the_old_embedders_vectors_is_refused_afterwards(store: LocalStore) -> None:
    """As an ingest that began before continues after it."""
    with closing(LocalStore(store.folder)) as other:
        other.reembed(A)
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


def test_a_store_that_another_process_cleared_takes_the_embedder_again(store: LocalStore) -> None:
    with closing(LocalStore(store.folder)) as other:
        other.clear_collection()
    put(store, "x", OLD)
    assert are_all_of(store, OLD)
    with pytest.raises(EmbeddingMismatchError):
        store.use_embedder(replace(OLD.fingerprint, model="a"))
