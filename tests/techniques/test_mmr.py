"""Maximal marginal relevance: the greedy order of the paper, over what a base finds."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ragistry.errors import StoreError
from ragistry.stores.local import LocalStore
from ragistry.techniques.mmr import AGAIN, MMRTechnique, choose
from ragistry.testing.hashed import HashingEmbedder
from ragistry.types import Document, EmbeddedChunk
from tests.techniques.doubles import Ready, ids

TEXTS = ["green tea is steeped", "green tea is steeped in water", "rain comes with a cold front", "bread is baked"]


def reference(vectors: np.ndarray, relevance: np.ndarray, weight: float, count: int) -> list[int]:
    """The definition of Carbonell and Goldstein, one pair at a time."""
    chosen: list[int] = []
    while len(chosen) < min(count, len(vectors)):

        def value(row: int) -> float:
            nearest = max((max(0.0, float(vectors[row] @ vectors[other])) for other in chosen), default=0.0)
            return weight * float(relevance[row]) - (1 - weight) * nearest

        chosen.append(
            max((row for row in range(len(vectors)) if row not in chosen), key=lambda row: (value(row), -row))
        )
    return chosen


@pytest.mark.parametrize("seed", range(8))
def test_order_is_that_of_the_definition(seed):
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(25, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    relevance = random.random(25).astype(np.float32)
    for weight in (0.0, 0.3, 0.7, 1.0):
        rows, scores = zip(*choose(vectors, relevance, weight, 10), strict=True)
        assert list(rows) == reference(vectors, relevance, weight, 10)
        assert all(0 <= score <= 1 for score in scores)
        assert all(one >= other - 1e-6 for one, other in pairwise(scores))


@pytest.fixture
def notes(store: LocalStore) -> LocalStore:
    vectors = HashingEmbedder(32).embed(TEXTS)
    chunks = [EmbeddedChunk(text, {}, vector) for text, vector in zip(TEXTS, vectors, strict=True)]
    store.add_documents(chunks, ids=list("abcd"))
    return store


def diverse(store: Any, documents: Sequence[Document], weight: float = 0.4) -> MMRTechnique:
    return MMRTechnique({"lambda": weight}, base=Ready(documents), store=store, embedder=HashingEmbedder(32))


def test_relevance_is_the_score_of_the_base(notes):
    scores = {"a": 3.0, "b": 5.0, "c": 21.0, "d": -4.0}  # such as of a reranker
    documents = [replace(document, score=scores[document.id]) for document in notes.get(list("abcd"))]
    found = {one.id: one.score for one in diverse(notes, documents, weight=1).retrieve("green tea")}
    assert list(found) == ["c", "b", "a", "d"]
    assert found == pytest.approx({"c": 1.0, "b": 9 / 25, "a": 7 / 25, "d": 0.0})


@pytest.mark.parametrize("kind", [list, tuple])
def test_repetition_comes_last_and_the_documents_of_the_base_are_left_alone(notes, kind):
    documents = kind([replace(one, score=1 - rank / 10) for rank, one in enumerate(notes.get(list("abcd")))])
    technique = diverse(notes, documents, weight=0.2)
    assert ids(technique.retrieve("green tea")) == ["a", "c", "d", "b"]
    assert ids(documents) == list("abcd")
    technique.retrieve("green tea", top_k=40)
    assert [asked["top_k"] for asked in technique.base.asked] == [30, 40]


def test_what_the_store_lacks_is_embedded_at_once_and_ranked_alike(notes):
    documents = notes.get(list("abcd"))
    whole = diverse(notes, documents)
    expected = whole.retrieve("tea")
    assert whole.embedder.calls == 0, "neither the query nor a vector that is stored is embedded again"
    for gone in (["b", "d"], ["a", "c"]):
        notes.delete(ids=gone)
        found = (technique := diverse(notes, documents)).retrieve("tea")
        assert ids(found) == ids(expected)
        assert [document.score for document in found] == pytest.approx([document.score for document in expected])
        missing = [text for name, text in zip("abcd", TEXTS, strict=True) if not notes.get([name])]
        assert (technique.embedder.calls, technique.embedder.texts) == (1, missing)


def test_chunk_that_is_deleted_while_vectors_are_read_stays_in_the_answer(notes):
    class Shrinking(LocalStore):
        """Loses one more chunk whenever it has said which it has."""

        def get(self, ids: Sequence[str]) -> list[Document]:
            found = super().get(ids)
            notes.delete(ids=[document.id for document in found[:1]])
            return found

    documents = notes.get(list("abd"))
    notes.delete(ids=["d"])
    with closing(Shrinking(notes.folder)) as shrinking:
        assert sorted(ids(diverse(shrinking, documents).retrieve("tea"))) == list("abd")


def test_store_that_cannot_be_read_is_reported(notes):
    def vectors(ids):
        attempts.append(ids)
        raise StoreError("unreadable")

    documents, attempts = notes.get(list("abcd")), []
    with pytest.raises(StoreError):
        diverse(SimpleNamespace(vectors=vectors, get=notes.get), documents).retrieve("tea")
    assert len(attempts) == 1 + AGAIN
    notes.close()
    with pytest.raises(StoreError):
        diverse(notes, documents).retrieve("tea")
