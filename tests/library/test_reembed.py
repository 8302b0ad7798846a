"""Another embedder in the place of the old one: searched only when all is there, gone on with after a stop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ragistry.errors import EmbeddingMismatchError, ModelConnectionError
from ragistry.library.reembed import reembed
from ragistry.stores.local import LocalStore
from ragistry.testing.hashed import hashed_embedding
from ragistry.types import EmbeddedChunk, EmbedderFingerprint

OLD = EmbedderFingerprint("test", "old", "", 8)
NEW = EmbedderFingerprint("test", "new", "", 16)
"""Of the same dimension as the old one it would be told by its name alone."""


class Hashing:
    """Vectors of words, different for each model; it stops after so many calls."""

    def __init__(self, fingerprint: EmbedderFingerprint, calls: int = 1000) -> None:
        self.fingerprint = fingerprint
        self.calls = calls
        self.seen = 0

    def embed(self, texts, *, role="document"):
        if self.seen == self.calls:
            raise ModelConnectionError("gone")
        self.seen += 1
        rows = [hashed_embedding(f"{self.fingerprint.model} {text}", self.fingerprint.dimension) for text in texts]
        return np.array(rows, dtype=np.float32)


def fill(store: LocalStore, embedder: Hashing, *names: str) -> None:
    store.use_embedder(embedder.fingerprint)
    for name in names:
        texts = [f"{name} part {index}" for index in range(3)]
        chunks = [
            EmbeddedChunk(text, {"collection": "c", "source_file": name, "chunk_index": i, "source_hash": "h"}, vector)
            for i, (text, vector) in enumerate(zip(texts, embedder.embed(texts), strict=True))
        ]
        store.replace_source("c", name, chunks)


def finds_itself(store: LocalStore, embedder: Hashing, text: str) -> bool:
    [best] = store.search(embedder.embed([text])[0], 1)
    return best.content == text and best.score > 0.999


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    opened = LocalStore(tmp_path / "store")
    fill(opened, Hashing(OLD), "a", "b", "c")
    yield opened
    opened.close()


@pytest.mark.parametrize("dimension", [8, 16])
def test_afterwards_the_new_vectors_are_searched(store: LocalStore, dimension: int) -> None:
    new = Hashing(replace(NEW, dimension=dimension))
    assert finds_itself(store, Hashing(OLD), "b part 1"), "the old matrix is in memory"
    assert reembed(store, new) == 3
    assert finds_itself(store, new, "b part 1")
    store.check_embedder(new.fingerprint)
    with pytest.raises(EmbeddingMismatchError):
        store.check_embedder(OLD)


def test_until_then_the_old_ones_are(store: LocalStore) -> None:
    with pytest.raises(ModelConnectionError):
        reembed(store, Hashing(NEW, calls=2))
    assert finds_itself(store, Hashing(OLD), "c part 2")
    store.check_embedder(OLD)


def test_an_interrupted_attempt_is_gone_on_with(store: LocalStore) -> None:
    with pytest.raises(ModelConnectionError):
        reembed(store, Hashing(NEW, calls=2))
    assert reembed(store, Hashing(NEW)) == 1
    assert finds_itself(store, Hashing(NEW), "a part 0")


def test_an_attempt_with_yet_another_embedder_begins_anew(store: LocalStore) -> None:
    with pytest.raises(ModelConnectionError):
        reembed(store, Hashing(NEW, calls=2))
    other = Hashing(replace(NEW, model="other"))
    assert reembed(store, other) == 3
    assert finds_itself(store, other, "a part 0")


def test_what_changes_meanwhile_is_embedded_too(store: LocalStore) -> None:
    class Busy(Hashing):
        def embed(self, texts, *, role="document"):
            if self.seen == 1:
                fill(store, Hashing(OLD), "a", "d")
            return super().embed(texts, role=role)

    new = Busy(NEW)
    assert reembed(store, new) > 3
    assert all(finds_itself(store, new, f"{name} part 1") for name in "abcd")


def test_the_approximate_index_follows(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "store", exclusive=True, graph_above=2)
    fill(store, Hashing(OLD), "a", "b", "c")
    assert finds_itself(store, Hashing(OLD), "b part 1")
    reembed(store, Hashing(NEW))
    assert finds_itself(store, Hashing(NEW), "b part 1")
    assert store.verify() == []
    store.close()
