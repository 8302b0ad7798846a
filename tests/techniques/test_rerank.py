"""Reranking over any base: mixed scores, failures, and rerankers at servers and in this process."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ragistry import open_workspace
from ragistry.errors import ConfigError, InvalidConfigError, ModelError
from ragistry.models.openai import OpenAIReranker
from ragistry.models.tei import TEIReranker
from ragistry.techniques.rerank import RerankTechnique
from ragistry.testing.openai_server import OpenAIServer
from ragistry.trace import Trace, collect
from ragistry.types import TOP_K_LIMIT, Document, StageScore


class Base:
    """Finds documents of these scores, and remembers what it was asked."""

    def __init__(self, **scores: float) -> None:
        self.scores = scores
        self.asked: list[dict[str, Any]] = []

    def retrieve(self, query: str, **options: Any) -> list[Document]:
        self.asked.append({"query": query, **options})
        return [
            Document(f"text of {name}", {}, score, name, (StageScore("base", "bm25", score),))
            for name, score in self.scores.items()
        ][: options["top_k"]]


class Judge:
    """Scores a text by its last word."""

    def __init__(self, **scores: float) -> None:
        self.scores = scores
        self.texts: list[str] = []

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        self.texts += texts
        return [self.scores[text.split()[-1]] for text in texts]


class Broken:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[no-any-return]


def ids(documents: list[Document]) -> list[str]:
    return [document.id for document in documents]


BASE = {"a": 12.0, "b": 8.0, "c": 4.0}
JUDGED = {"a": -3.0, "b": 1.0, "c": 0.0}


def test_scores_are_the_weighted_mean_of_both_scaled() -> None:
    documents = RerankTechnique({"weight": 0.75}, base=Base(**BASE), reranker=Judge(**JUDGED)).retrieve("q")
    # scaled: base 1, .5, 0; reranker 0, 1, .75
    assert {document.id: document.score for document in documents} == {"b": 0.875, "c": 0.5625, "a": 0.25}
    assert ids(documents) == ["b", "c", "a"]


def test_the_reranker_alone_decides_with_weight_1() -> None:
    documents = RerankTechnique({"weight": 1}, base=Base(**BASE), reranker=Judge(**JUDGED)).retrieve("q", top_k=2)
    assert ids(documents) == ["b", "c"]


def test_every_score_is_kept_with_its_kind() -> None:
    [first, *_] = RerankTechnique({"weight": 1}, base=Base(**BASE), reranker=Judge(**JUDGED)).retrieve("q")
    assert first.scores == (
        StageScore("base", "bm25", 8.0),
        StageScore("reranker", "cross_encoder", 1.0),
        StageScore("rerank", "min_max", 1.0),
    )


def test_equal_scores_are_ordered_by_id() -> None:
    technique = RerankTechnique({}, base=Base(c=1, a=1, b=1), reranker=Judge(a=0, b=0, c=0))
    assert [(document.id, document.score) for document in technique.retrieve("q")] == [("a", 1), ("b", 1), ("c", 1)]


def test_an_empty_result_asks_no_reranker() -> None:
    assert RerankTechnique({"strict": True}, base=Base(), reranker=Broken(ModelError("asked"))).retrieve("q") == []


def test_one_result_has_the_highest_score() -> None:
    [document] = RerankTechnique({}, base=Base(a=-7), reranker=Judge(a=0.01)).retrieve("q")
    assert document.score == 1


@pytest.mark.parametrize(("top_k", "fetched"), [(None, 50), (3, 50), (80, 80), (TOP_K_LIMIT, TOP_K_LIMIT)])
def test_the_base_is_asked_for_fetch_candidates_or_more(top_k: int | None, fetched: int) -> None:
    base = Base(**BASE)
    where = {"page": 3}
    RerankTechnique({}, base=base, reranker=Judge(**JUDGED)).retrieve("q", top_k=top_k, where=where)
    assert base.asked == [{"query": "q", "top_k": fetched, "where": where}]


def test_title_and_headings_are_read_with_the_text() -> None:
    class Titled:
        def retrieve(self, query: str, **options: Any) -> list[Document]:
            return [Document("text of a", {"breadcrumb": "Guide > Install"}, 1.0, "a")]

    judge = Judge(a=1)
    RerankTechnique({}, base=Titled(), reranker=judge).retrieve("q")
    assert judge.texts == ["Guide > Install\ntext of a"]


BAD = [ModelError("no answer"), [1.0, 2.0], [1.0, 2.0, float("nan")], []]


@pytest.mark.parametrize("answer", BAD, ids=["error", "too few", "nan", "empty"])
def test_a_failing_reranker_leaves_the_order_of_the_base(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    with collect() as trace, caplog.at_level(logging.WARNING):
        documents = RerankTechnique({}, base=Base(**BASE), reranker=Broken(answer)).retrieve("q", top_k=2)
    assert [(document.id, document.score) for document in documents] == [("a", 12.0), ("b", 8.0)]
    assert documents[0].scores == (StageScore("base", "bm25", 12.0),)
    assert "not reranked" in degraded_of(trace)
    assert "the reranker failed" in caplog.text


@pytest.mark.parametrize("answer", BAD, ids=["error", "too few", "nan", "empty"])
def test_a_failing_reranker_is_an_error_where_strict(answer: Any) -> None:
    technique = RerankTechnique({"strict": True}, base=Base(**BASE), reranker=Broken(answer))
    with pytest.raises(ModelError):
        technique.retrieve("q")


@pytest.mark.parametrize("config", [{"weight": 0}, {"weight": 1.1}, {"fetch": 0}, {"wieght": 0.5}])
def test_a_bad_configuration_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfigError):
        RerankTechnique(config, base=Base(), reranker=Judge())


@pytest.mark.parametrize("accent", ["tei", "vllm"])
def test_a_server_reranks_in_batches_that_the_trace_counts(accent: Any) -> None:
    texts = {"Paris": 1.0, "tea": 2.0, "capital": 3.0}
    with OpenAIServer("BAAI/bge-reranker-base", accent=accent) as server:
        kind = TEIReranker if accent == "tei" else OpenAIReranker
        reranker = kind(url=server.url, batch_size=2, backoff=0.001)
        technique = RerankTechnique({"weight": 1}, base=Base(**texts), reranker=reranker)
        with collect() as trace:
            documents = technique.retrieve("the capital of France", top_k=2)
        [stage] = trace.stages()
        assert (stage.name, stage.documents_in, stage.documents_out, stage.model_calls) == ("rerank", 3, 2, 2)
        assert documents[0].id == "capital"
        assert documents[0].scores[-2].kind == "cross_encoder"
        reranker.close()


@pytest.mark.parametrize("accent", ["tei", "vllm"])
def test_a_server_that_is_overloaded_leaves_the_order_of_the_base(accent: Any) -> None:
    with OpenAIServer("BAAI/bge-reranker-base", accent=accent) as server:
        server.fail_next(500, times=9)
        kind = TEIReranker if accent == "tei" else OpenAIReranker
        reranker = kind(url=server.url, attempts=2, backoff=0.001)
        with collect() as trace:
            documents = RerankTechnique({}, base=Base(**BASE), reranker=reranker).retrieve("q")
        assert ids(documents) == ["a", "b", "c"]
        assert "not reranked" in degraded_of(trace)
        reranker.close()


def test_an_entry_chooses_its_reranker_by_name(tmp_path: Path) -> None:
    with OpenAIServer("BAAI/bge-reranker-base") as server:
        configured(
            tmp_path,
            f"rerankers: {{maxsim: {{use: maxsim}}, judge: {{use: tei, url: '{server.url}', backoff: 0.001}}}}",
            "techniques: {naive: {use: naive}, best: {use: rerank, base: naive, reranker: judge, weight: 1}}",
        )
        with open_workspace(tmp_path) as workspace:
            workspace.library.create_collection("notes")
            workspace.library.ingest_text("green tea is steeped briefly", "tea.txt", "notes")
            result = workspace.search("green tea", "best")
            assert [score.kind for score in result.documents[0].scores] == ["cosine", "cross_encoder", "min_max"]
            assert len(server.asked("/rerank")) == 1


def test_several_rerankers_and_none_named_is_an_error_that_names_them(tmp_path: Path) -> None:
    configured(
        tmp_path,
        "rerankers: {one: {use: maxsim}, two: {use: maxsim}}",
        "techniques: {naive: {use: naive}, best: {use: rerank, base: naive}}",
    )
    with open_workspace(tmp_path) as workspace:
        with pytest.raises(ConfigError, match="reranker"):
            workspace.technique("best")
        assert workspace.technique("naive")


def test_an_empty_workspace_reranks_in_this_process(tmp_path: Path) -> None:
    with open_workspace(tmp_path) as workspace:
        workspace.library.create_collection("notes")
        for name, text in {"tea": "green tea is steeped briefly", "rain": "a cold front brings rain"}.items():
            workspace.library.ingest_text(text, f"{name}.txt", "notes")
        result = workspace.search("cold rain and wind", "rerank")
        assert [document.metadata["source_file"] for document in result.documents] == ["rain.txt", "tea.txt"]
        assert [score.kind for score in result.documents[0].scores][-2:] == ["maxsim", "min_max"]
        assert any(stage.name == "rerank" and stage.model_calls for stage in result.trace)
        assert result.degraded == ()


def configured(root: Path, models: str, techniques: str) -> None:
    (root / "config").mkdir()
    (root / "config" / "models.yaml").write_text(models, encoding="utf-8")
    (root / "config" / "techniques.yaml").write_text(techniques, encoding="utf-8")


def degraded_of(trace: Trace) -> str:
    return "; ".join(stage.degraded for stage in trace.stages())
