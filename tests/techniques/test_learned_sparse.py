"""Learned sparse retrieval over a scripted encoder: dot products, expansion, and one encoding for each chunk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ragistry.errors import ConfigError, InvalidConfigError, ModelError
from ragistry.stores.local import LocalStore
from ragistry.techniques.learned_sparse import LearnedSparseTechnique
from ragistry.testing.sparse import WordCounts
from ragistry.trace import collect
from ragistry.types import EmbeddedChunk, Role

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
def store(tmp_path: Path) -> Iterator[LocalStore]:
    with closing(LocalStore(tmp_path / "store")) as opened:
        opened.add_documents(
            [EmbeddedChunk(text, {"name": id}, [1.0, 0.0]) for id, text in TEXTS.items()], ids=list(TEXTS)
        )
        yield opened


def sparse(store: LocalStore, encoder: type[Any] = WordCounts, folder: Path | None = None) -> LearnedSparseTechnique:
    spec = f"{encoder.__module__}:{encoder.__qualname__}"
    return LearnedSparseTechnique({"encoder": spec}, store=store, folder=folder)


def scores(technique: LearnedSparseTechnique, query: str, **options: Any) -> list[tuple[str, float]]:
    return [(one.id, one.score) for one in technique.retrieve(query, **options)]


def test_scores_are_dot_products(store: LocalStore) -> None:
    assert scores(sparse(store), "car car tea") == [("a", 4.0), ("b", 3.0), ("d", 1.0)]
    assert sparse(store).retrieve("car")[0].scores[-1].kind == "dot"


def test_terms_that_the_model_adds_are_found(store: LocalStore) -> None:
    assert scores(sparse(store), "car") == [("a", 2.0), ("b", 1.0)]
    assert scores(sparse(store, Expanding), "car") == [("a", 2.0), ("b", 1.0), ("c", 0.5)]


def test_limits_and_conditions_are_kept(store: LocalStore) -> None:
    assert scores(sparse(store), "car tea", top_k=1) == [("a", 2.0)]
    assert scores(sparse(store), "car tea", where={"name": {"$in": ["d", "c"]}}) == [("d", 1.0)]
    assert scores(sparse(store), "submarine") == []


def test_titles_and_headings_are_encoded_with_the_text(store: LocalStore) -> None:
    store.add_documents([EmbeddedChunk("wheels", {"breadcrumb": "Guide > Car"}, [1.0, 0.0])], ids=["e"])
    assert ("e", 1.0) in scores(sparse(store), "car")


def test_each_chunk_is_encoded_once(store: LocalStore, tmp_path: Path) -> None:
    technique = sparse(store, folder=tmp_path / "derived")
    technique.retrieve("car")
    store.add_documents([EmbeddedChunk("new car", {}, [1.0, 0.0])], ids=["e"])
    technique.retrieve("car")
    calls = technique.encoder.calls
    assert [(role, len(texts)) for role, texts in calls] == [
        ("document", 4),
        ("query", 1),
        ("document", 1),
        ("query", 1),
    ]
    again = sparse(store, folder=tmp_path / "derived")
    assert scores(again, "car") == scores(technique, "car")
    assert [role for role, _ in again.encoder.calls] == ["query"]


def test_model_calls_are_in_the_trace(store: LocalStore) -> None:
    with collect() as trace:
        sparse(store).retrieve("car")
    assert [(stage.name, stage.model_calls) for stage in trace.stages()] == [("encode", 2), ("search", 0)]


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), -1.0])
def test_a_weight_that_is_not_one_is_refused(store: LocalStore, monkeypatch: pytest.MonkeyPatch, weight: float) -> None:
    monkeypatch.setattr(Fixed, "terms", {"car": weight})
    with pytest.raises(ModelError, match=f"gave 'car' the weight {weight!r}"):
        sparse(store, Fixed).retrieve("car")


def test_too_many_answers_are_refused(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fixed, "answers", 2)
    with pytest.raises(ModelError, match="8 answers for 4 texts"):
        sparse(store, Fixed).retrieve("car")


def test_texts_without_terms_are_not_found(store: LocalStore) -> None:
    assert scores(sparse(store, Fixed), "car") == []


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        ("no_such_module:Encoder", "no module 'no_such_module'"),
        ("ragistry.types:Document", "cannot be made without arguments"),
        ("ragistry.trace:Trace", "has no encode"),
    ],
)
def test_an_encoder_that_does_not_fit_is_refused(store: LocalStore, encoder: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        LearnedSparseTechnique({"encoder": encoder}, store=store)


def test_an_encoder_is_required(store: LocalStore) -> None:
    with pytest.raises(InvalidConfigError, match="encoder"):
        LearnedSparseTechnique({}, store=store)
