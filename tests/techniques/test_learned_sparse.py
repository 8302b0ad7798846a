"""Learned sparse retrieval over a scripted encoder: dot products, expansion, and one encoding for each chunk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ragistry.errors import ConfigError, ModelError
from ragistry.stores.local import LocalStore
from ragistry.techniques.learned_sparse import LearnedSparseTechnique
from ragistry.testing.sparse import WordCounts
from ragistry.types import EmbeddedChunk, Role
from tests.messages import refused
from tests.techniques.doubles import traced

TEXTS = {"a": "car car motor", "b": "car tea", "c": "automobile", "d": "tea"}


class Expanding(WordCounts):
    """Documents with an automobile are also about cars."""

    expansions: ClassVar = {"automobil": {"car": 0.5}}


class Fixed:
    """Gives every text the terms that a test sets."""

    fingerprint = "fixed"
    terms: ClassVar[dict[str, Any]] = {}
    answers = 1

    def encode(self, texts: Sequence[str], *, role: Role) -> list[dict[str, float]]:
        return [dict(self.terms)] * len(texts) * self.answers


@pytest.fixture
def notes(store: LocalStore) -> LocalStore:
    chunks = [EmbeddedChunk(text, {"name": id}, [1.0, 0.0]) for id, text in TEXTS.items()]
    store.add_documents(chunks, ids=list(TEXTS))
    return store


def sparse(store: LocalStore, encoder: type[Any] = WordCounts, folder: Path | None = None) -> LearnedSparseTechnique:
    spec = f"{encoder.__module__}:{encoder.__qualname__}"
    return LearnedSparseTechnique({"encoder": spec}, store=store, folder=folder)


def scores(technique: LearnedSparseTechnique, query: str, **options: Any) -> list[tuple[str, float]]:
    return [(one.id, one.score) for one in technique.retrieve(query, **options)]


def test_scores_are_dot_products(notes):
    assert scores(sparse(notes), "car car tea") == [("a", 4.0), ("b", 3.0), ("d", 1.0)]
    [best, *_], stages = traced(sparse(notes), "car")
    assert best.scores[-1].kind == "dot"
    assert [(stage.name, stage.model_calls) for stage in stages] == [("encode", 2), ("search", 0)]


def test_terms_that_the_model_adds_are_found(notes):
    assert scores(sparse(notes), "car") == [("a", 2.0), ("b", 1.0)]
    assert scores(sparse(notes, Expanding), "car") == [("a", 2.0), ("b", 1.0), ("c", 0.5)]
    assert scores(sparse(notes, Fixed), "car") == [], "an encoder may give no terms"


def test_titles_and_headings_are_encoded_with_the_text(notes):
    notes.add_documents([EmbeddedChunk("wheels", {"breadcrumb": "Guide > Car"}, [1.0, 0.0])], ids=["e"])
    assert ("e", 1.0) in scores(sparse(notes), "car")


def test_each_chunk_is_encoded_once(notes, tmp_path):
    technique = sparse(notes, folder=tmp_path / "derived")
    technique.retrieve("car")
    notes.add_documents([EmbeddedChunk("new car", {}, [1.0, 0.0])], ids=["e"])
    technique.retrieve("car")
    calls = [(role, len(texts)) for role, texts in technique.encoder.calls]
    assert calls == [("document", 4), ("query", 1), ("document", 1), ("query", 1)]
    again = sparse(notes, folder=tmp_path / "derived")
    assert scores(again, "car") == scores(technique, "car")
    assert [role for role, _ in again.encoder.calls] == ["query"]


@pytest.mark.parametrize(
    ("terms", "answers", "said"),
    [({"car": float("nan")}, 1, "'car'"), ({"car": float("inf")}, 1, "inf"), ({"car": -1.0}, 1, "-1.0"), ({}, 2, "8")],
)
def test_weights_that_are_not_finite_and_too_many_answers_are_refused(notes, monkeypatch, terms, answers, said):
    monkeypatch.setattr(Fixed, "terms", terms)
    monkeypatch.setattr(Fixed, "answers", answers)
    with refused(ModelError, said):
        sparse(notes, Fixed).retrieve("car")


@pytest.mark.parametrize("encoder", ["no_such_module:Encoder", "ragistry.types:Document", "ragistry.trace:Trace"])
def test_encoder_that_does_not_fit_is_refused(store, encoder):
    with refused(ConfigError, encoder.split(":")[0]):
        LearnedSparseTechnique({"encoder": encoder}, store=store)
