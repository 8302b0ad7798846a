"""Self-RAG: passages are ranked by a critique of the answer that is drafted from each."""

from __future__ import annotations

from typing import Any

import pytest

from ragistry.techniques.self_rag import SelfRAGTechnique
from tests.messages import check_message
from tests.techniques.doubles import FACTS, Facts, Says, degraded, names, traced

CRITIQUES = {
    "wilson": {"answer": "Wilson", "relevance": "relevant", "support": "none", "usefulness": 2},
    "taft": {"answer": "Taft", "relevance": "relevant", "support": "full", "usefulness": 5},
    "tea": {"answer": "?", "relevance": "irrelevant", "support": "none", "usefulness": 1},
    "magnet": {"answer": "?", "relevance": "irrelevant", "support": "none", "usefulness": 1},
}


def critique(prompt: str) -> Any:
    return CRITIQUES[next(name for name in CRITIQUES if FACTS[name] in prompt)]


def test_the_score_is_that_of_the_paper_with_the_base_in_place_of_the_probability():
    base = Facts("wilson", "tea", "taft")  # scores 1, 1/2, 1/3: scaled 1, 1/4, 0
    documents = SelfRAGTechnique({}, base=base, generator=Says(critique)).retrieve("who?")
    assert names(documents) == ["taft", "wilson", "tea"]
    assert [document.score for document in documents] == pytest.approx([0 + 1 + 1 + 0.5, 1 + 1 + 0 - 0.25, 0.25 - 0.5])
    given = {score.stage: score.value for score in documents[0].scores[1:]}
    assert given == {"relevance": 1, "support": 1, "usefulness": 1, "self_rag": 2.5}
    assert {score.kind for score in documents[0].scores[1:]} == {"grade"}


def test_weights_decide_which_judgement_counts():
    config = {"support": 0, "relevance": 0, "usefulness": 0}
    documents = SelfRAGTechnique(config, base=Facts("wilson", "taft"), generator=Says(critique)).retrieve("who?")
    assert names(documents) == ["wilson", "taft"]


def test_equal_critiques_keep_the_order_of_the_base():
    documents = SelfRAGTechnique({}, base=Facts("tea", "magnet"), generator=Says(critique)).retrieve("who?")
    assert names(documents) == ["tea", "magnet"]


@pytest.mark.parametrize("needed", [True, False])
def test_a_question_that_needs_no_documents_finds_none_if_configured(needed):
    def reply(prompt: str) -> Any:
        return {"retrieve": needed} if prompt.startswith("Greet: ") else critique(prompt)

    config = {"on_demand": True, "demand_prompt": "Greet: {query}"}
    technique = SelfRAGTechnique(config, base=(base := Facts("taft")), generator=Says(reply))
    documents, stages = traced(technique, "hello!")
    assert names(documents) == (["taft"] if needed else [])
    assert base.queries == (["hello!"] if needed else [])
    assert stages[0].detail["retrieve"] is needed


def test_documents_are_searched_where_the_demand_is_not_known():
    base = Facts("taft")
    technique = SelfRAGTechnique({"on_demand": True}, base=base, generator=Says(TimeoutError("late")))
    assert names(technique.retrieve("hello!")) == ["taft"]


def test_a_passage_without_a_critique_counts_with_the_score_of_the_base():
    def reply(prompt: str) -> Any:
        return "?" if FACTS["wilson"] in prompt else critique(prompt)

    documents, stages = traced(SelfRAGTechnique({}, base=Facts("wilson", "taft"), generator=Says(reply)), "who?")
    assert names(documents) == ["taft", "wilson"]
    assert documents[1].score == 1
    check_message(degraded(stages), "1 of 2")


def test_only_n_documents_are_judged_and_returned():
    generator = Says(critique)
    documents = SelfRAGTechnique({"n": 1}, base=Facts("tea", "taft"), generator=generator).retrieve("who?", top_k=5)
    assert names(documents) == ["tea"]
    assert len(generator.prompts) == 1
