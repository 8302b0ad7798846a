"""Maximal marginal relevance: the greedy order of the paper, over what a base finds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from ragistry import RetrievalResult, Workspace, open_workspace
from ragistry.errors import StoreError
from ragistry.models.registry import choose_embedder
from ragistry.protocols import Embedder, Technique
from ragistry.stores.local import LocalStore
from ragistry.techniques.mmr import MMRTechnique, choose
from ragistry.types import Document, EmbeddedChunk, Role

MODEL = choose_embedder("minilm")


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
def test_the_order_is_that_of_the_definition(seed: int) -> None:
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(25, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    relevance = random.random(25).astype(np.float32)
    for weight in (0.0, 0.3, 0.7, 1.0):
        rows, scores = zip(*choose(vectors, relevance, weight, 10), strict=True)
        assert list(rows) == reference(vectors, relevance, weight, 10)
        assert all(0 <= score <= 1 for score in scores)
        assert all(one >= other - 1e-6 for one, other in pairwise(scores))


def test_the_relevance_is_the_score_of_the_base(store: LocalStore) -> None:
    scores = {"a": 3.0, "b": 5.0, "c": 21.0, "d": -4.0}  # such as of a reranker
    base = Fixed([replace(document, score=scores[document.id]) for document in store.get(list("abcd"))])
    technique = MMRTechnique({"lambda": 1}, base=base, store=store, embedder=MODEL)
    found = {document.id: document.score for document in technique.retrieve("green tea")}
    assert list(found) == ["c", "b", "a", "d"]
    assert found == pytest.approx({"c": 1.0, "b": 9 / 25, "a": 7 / 25, "d": 0.0})


def test_a_repetition_comes_after_what_is_new(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "techniques.yaml").write_text(
        "techniques:\n  naive: {use: naive}\n  diverse: {use: mmr, base: naive, lambda: 0.2}\n", encoding="utf-8"
    )
    with open_workspace(tmp_path) as workspace:
        fill(workspace)
        diverse = workspace.search("green tea", "diverse", top_k=2)
        assert sum(stage.model_calls for stage in diverse.trace) == 1, "the query is embedded once"
        assert names(diverse) == ["a.txt", "d.txt"]
        assert names(workspace.search("green tea", "naive", top_k=3)) == ["a.txt", "b.txt", "c.txt"]


def names(result: RetrievalResult) -> list[str]:
    return [document.metadata["source_file"] for document in result.documents]


def fill(workspace: Workspace) -> None:
    workspace.library.create_collection("notes")
    for name, text in [
        ("a", "Green tea is steeped in water of eighty degrees."),
        ("b", "Green tea is steeped in water of 80 degrees."),
        ("c", "Green teas are steeped in water of eighty degrees."),
        ("d", "Tea bushes grow in the hills and are picked by hand in spring."),
    ]:
        workspace.library.ingest_text(text, f"{name}.txt", "notes")


TEXTS = ["green tea is steeped", "green tea is steeped in water", "rain comes with a cold front", "bread is baked"]


class Counting:
    """An embedder that remembers what it was given."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.calls: list[list[str]] = []

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> np.ndarray:
        self.calls.append(list(texts))
        return self.embedder.embed(texts, role=role)


class Fixed:
    """A base that finds the same documents whatever is asked."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self.documents = documents

    def retrieve(self, query: str, **options: object) -> Sequence[Document]:
        return self.documents


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    with closing(LocalStore(tmp_path)) as opened:
        opened.add_documents(
            [EmbeddedChunk(text, {}, vector) for text, vector in zip(TEXTS, MODEL.embed(TEXTS), strict=True)],
            ids=list("abcd"),
        )
        yield opened


def diverse(base: Technique, store: LocalStore) -> tuple[MMRTechnique, Counting]:
    embedder = Counting(MODEL)
    return MMRTechnique({"lambda": 0.4}, base=base, store=store, embedder=embedder), embedder


def test_what_the_store_does_not_have_is_embedded_at_once_and_ranked_alike(store: LocalStore) -> None:
    base = Fixed(store.get(list("abcd")))
    whole, embedder = diverse(base, store)
    expected = whole.retrieve("tea")
    assert embedder.calls == [], "neither the query nor a vector that is stored is embedded again"
    for gone in (["b", "d"], ["a", "c"]):
        store.delete(ids=gone)
        technique, embedder = diverse(base, store)
        found = technique.retrieve("tea")
        assert [document.id for document in found] == [document.id for document in expected]
        assert [document.score for document in found] == pytest.approx([document.score for document in expected])
        missing = [text for name, text in zip("abcd", TEXTS, strict=True) if not store.get([name])]
        assert embedder.calls == [missing]


def test_a_chunk_that_is_deleted_while_vectors_are_asked_for_stays_in_the_answer(store: LocalStore) -> None:
    class Shrinking(LocalStore):
        """Loses one more chunk whenever it has said which it has."""

        def get(self, ids: Sequence[str]) -> list[Document]:
            found = super().get(ids)
            store.delete(ids=[document.id for document in found[:1]])
            return found

    base = Fixed(store.get(list("abd")))
    store.delete(ids=["d"])
    with closing(Shrinking(store.folder)) as shrinking:
        found = diverse(base, shrinking)[0].retrieve("tea")
    assert sorted(document.id for document in found) == list("abd")


def test_a_store_that_cannot_be_read_is_told(store: LocalStore) -> None:
    base = Fixed(store.get(list("abcd")))
    store.close()
    with pytest.raises(StoreError):
        diverse(base, store)[0].retrieve("tea")


def test_what_the_base_returned_is_left_as_it_is(store: LocalStore) -> None:
    documents = store.get(list("dcba"))
    for given in (documents, tuple(documents)):
        diverse(Fixed(given), store)[0].retrieve("tea")
        assert [document.id for document in given] == list("dcba")
