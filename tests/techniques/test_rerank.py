"""Reranking over any base: mixed scores, failures, and rerankers at servers and in this process."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest

from ragistry import open_workspace
from ragistry.errors import ConfigError, ModelError
from ragistry.techniques.rerank import RerankTechnique
from ragistry.testing.openai_server import OpenAIServer
from ragistry.types import TOP_K_LIMIT, Document, StageScore
from tests.messages import check_message, refused
from tests.techniques.doubles import Ready, degraded, ids, scored, traced


class Judge:
    """Scores a text by its last word, or fails: raises an error, or returns another list."""

    def __init__(self, failure: Any = None, **scores: float) -> None:
        self.failure, self.scores = failure, scores
        self.texts: list[str] = []

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        self.texts += texts
        if isinstance(self.failure, Exception):
            raise self.failure
        return [self.scores[text.split()[-1]] for text in texts] if self.failure is None else self.failure


BASE = {"a": 12.0, "b": 8.0, "c": 4.0}
JUDGED = {"a": -3.0, "b": 1.0, "c": 0.0}


BAD = {"error": ModelError("no answer"), "few": [1.0, 2.0], "nan": [1.0, 2.0, float("nan")], "empty": []}
every_failure = pytest.mark.parametrize("answer", BAD.values(), ids=BAD)


def rerank(reranker: Any, base: Ready | None = None, **config: Any) -> RerankTechnique:
    return RerankTechnique(config, base=base or Ready(scored("bm25", **BASE)), reranker=reranker)


def test_scores_are_the_weighted_mean_of_both_scaled():
    documents = rerank(Judge(**JUDGED), weight=0.75).retrieve("q")
    # scaled: base 1, .5, 0; reranker 0, 1, .75
    assert [(document.id, document.score) for document in documents] == [("b", 0.875), ("c", 0.5625), ("a", 0.25)]


def test_reranker_alone_decides_with_weight_1_and_every_score_is_kept():
    documents = rerank(Judge(**JUDGED), weight=1).retrieve("q", top_k=2)
    assert ids(documents) == ["b", "c"]
    assert documents[0].scores == (
        StageScore("base", "bm25", 8.0),
        StageScore("reranker", "cross_encoder", 1.0),
        StageScore("rerank", "min_max", 1.0),
    )


def test_equal_scores_are_ordered_by_id_and_one_result_has_the_highest_score():
    technique = rerank(Judge(a=0, b=0, c=0), Ready(scored(c=1, a=1, b=1)))
    assert [(document.id, document.score) for document in technique.retrieve("q")] == [("a", 1), ("b", 1), ("c", 1)]
    assert [document.score for document in rerank(Judge(a=0.01), Ready(scored(a=-7))).retrieve("q")] == [1]
    assert rerank(Judge(ModelError("asked")), Ready(), strict=True).retrieve("q") == []


@pytest.mark.parametrize(("top_k", "fetched"), [(None, 20), (3, 20), (80, 80), (TOP_K_LIMIT, TOP_K_LIMIT)])
def test_base_is_asked_for_fetch_candidates_or_more(top_k, fetched):
    technique = rerank(Judge(**JUDGED))
    technique.retrieve("q", top_k=top_k, where={"page": 3})
    assert technique.base.asked == [{"query": "q", "top_k": fetched, "where": {"page": 3}}]


def test_title_and_headings_are_read_with_the_text():
    judge = Judge(a=1)
    rerank(judge, Ready([Document("text of a", {"breadcrumb": "Guide > Install"}, 1.0, "a")])).retrieve("q")
    assert judge.texts == ["Guide > Install\ntext of a"]


@every_failure
def test_failing_reranker_leaves_the_order_of_the_base(answer, caplog):
    with caplog.at_level(logging.WARNING):
        documents, stages = traced(rerank(Judge(answer)), "q", top_k=2)
    assert documents == scored("bm25", a=12.0, b=8.0)
    check_message(degraded(stages))
    check_message(caplog.messages[0])
    with pytest.raises(ModelError):
        rerank(Judge(answer), strict=True).retrieve("q")


def test_entry_chooses_its_reranker_by_name(tmp_path, corpus):
    with OpenAIServer("BAAI/bge-reranker-base") as server:
        models = f"rerankers: {{maxsim: {{use: maxsim}}, judge: {{use: tei, url: '{server.url}'}}}}"
        techniques = """techniques:
  naive: {use: naive}
  best: {use: rerank, base: naive, reranker: judge, weight: 1}
  here: {use: rerank, base: naive, reranker: maxsim}
  unnamed: {use: rerank, base: naive}
"""
        corpus({"models.yaml": models, "techniques.yaml": techniques}, "config")
        with open_workspace(tmp_path) as workspace:
            workspace.library.create_collection("notes")
            for name, text in {"tea": "green tea is steeped briefly", "rain": "a cold front brings rain"}.items():
                workspace.library.ingest_text(text, f"{name}.txt", "notes")
            result = workspace.search("green tea", "best")
            assert [score.kind for score in result.documents[0].scores] == ["cosine", "cross_encoder", "min_max"]
            assert len(server.asked("/rerank")) == 1
            result = workspace.search("cold rain and wind", "here")
            assert [document.metadata["source_file"] for document in result.documents] == ["rain.txt", "tea.txt"]
            assert [score.kind for score in result.documents[0].scores][-2:] == ["maxsim", "min_max"]
            assert any(stage.name == "rerank" and stage.model_calls for stage in result.trace)
            assert result.degraded == ()
            with refused(ConfigError, "'maxsim'", "'judge'"):
                workspace.technique("unnamed")
