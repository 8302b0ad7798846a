"""Other queries for a question: multi-query, step-back, decomposition, HyDE."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ragistry.techniques.bm25 import BM25Technique
from ragistry.techniques.decompose import DecomposeTechnique
from ragistry.techniques.hyde import HyDETechnique
from ragistry.techniques.multi_query import MultiQueryTechnique
from ragistry.techniques.naive import NaiveRAGTechnique
from ragistry.testing.techniques import same_answer
from tests.messages import check_message
from tests.techniques.doubles import FACTS, MINILM, QUESTION, Facts, Says, degraded, names, traced


def queries(*texts: str) -> Says:
    return Says({"queries": list(texts)})


def test_multi_query_scores_by_the_ranks_of_all_queries():
    base = Facts("tea", "magnet")
    documents = MultiQueryTechnique({}, base=base, generator=queries("one", "two")).retrieve("how hot?")
    assert base.queries == ["how hot?", "one", "two"]
    assert names(documents) == ["tea", "magnet"]
    assert [document.score for document in documents] == pytest.approx([3 / 61, 3 / 62])
    assert [score.kind for score in documents[0].scores][-1] == "rrf"


def test_multi_query_searches_no_query_twice_and_no_more_than_n():
    base = Facts("tea")
    generator = queries("How hot??", " ", "one", "ONE ", "two", "three")
    MultiQueryTechnique({"n": 2, "fetch": 7}, base=base, generator=generator).retrieve("how hot")
    assert base.queries == ["how hot", "one", "two"]


def self_ask(prompt: str) -> Any:
    """The example of Press et al., figure 2, as a model would answer it step by step."""
    if "When was superconductivity discovered? ->" not in prompt:
        return {"answer": "", "follow_up": "When was superconductivity discovered?"}
    if "1911" in prompt and "Who was president in 1911? ->" not in prompt:
        return {"answer": "1911", "follow_up": "Who was president in 1911?"}
    return {"answer": "William Howard Taft", "follow_up": ""}


def test_decompose_asks_for_one_fact_after_the_other(facts):
    generator = Says(self_ask)
    technique = DecomposeTechnique({}, base=BM25Technique({}, store=facts), generator=generator)
    documents = technique.retrieve(QUESTION, top_k=3)
    assert len(generator.prompts) == 3
    assert "When was superconductivity discovered? -> 1911" in generator.prompts[2]
    assert FACTS["discovery"] in generator.prompts[1]
    assert {"discovery", "taft"} <= set(names(documents))
    assert documents[0].scores[-1].kind == "rrf"


def test_decompose_leaves_a_question_of_one_step_to_the_base(facts):
    base = BM25Technique({}, store=facts)
    generator = Says({"answer": "", "follow_up": ""})
    assert DecomposeTechnique({}, base=base, generator=generator).retrieve("green tea") == base.retrieve("green tea")
    assert len(generator.prompts) == 1


def test_decompose_stops_after_n_steps_and_at_a_repetition():
    endless = Says(lambda prompt: {"answer": "", "follow_up": f"step {prompt.count('->')}"})
    DecomposeTechnique({"n": 2}, base=(base := Facts("tea")), generator=endless).retrieve("why?")
    assert base.queries == ["why?", "step 0", "step 1"]
    again = Says({"answer": "", "follow_up": "Why"})
    DecomposeTechnique({}, base=(base := Facts("tea")), generator=again).retrieve("why?")
    assert base.queries == ["why?"]


def test_decompose_keeps_what_it_found_before_a_failure():
    def reply(prompt: str) -> Any:
        return TimeoutError("late") if "->" in prompt else {"answer": "", "follow_up": "first step"}

    documents, stages = traced(DecomposeTechnique({}, base=(base := Facts("tea")), generator=Says(reply)), "why?")
    assert base.queries == ["why?", "first step"]
    assert documents[0].score == pytest.approx(2 / 61)
    check_message(degraded(stages), "no answer")


def test_hyde_searches_with_the_mean_of_the_query_and_the_passages(facts):
    written = ["Taft was president in 1911.", "It was found in Leiden."]
    generator = Says({"passages": [*written, "one too many"]})
    documents = HyDETechnique({"n": 2}, store=facts, embedder=MINILM, generator=generator).retrieve(QUESTION, top_k=6)
    vectors = [*MINILM.embed(written, role="document"), MINILM.embed([QUESTION], role="query")[0]]
    mean = np.mean(vectors, axis=0)
    expected = {
        name: max(0.0, float(MINILM.embed([text])[0] @ mean / np.linalg.norm(mean))) for name, text in FACTS.items()
    }
    found = {document.metadata["source_file"]: document.score for document in documents}
    assert found == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    "answer",
    [
        "Taft was president in 1911.",
        "  <think>1911, so Taft.</think>\n\nTaft was president in 1911.\n",
        '**Passage**\n\nTaft was president in 1911: {"passages": []} is no answer.',
    ],
)
def test_hyde_takes_the_text_of_a_chat_model_as_its_passage(facts, answer):
    schemas = []

    class Chat:
        def generate(self, prompt, *, schema=None):
            schemas.append(schema)
            assert "JSON" not in prompt
            return answer

    passage = answer.rpartition("</think>")[2].strip()
    by_text = HyDETechnique({"strict": True}, store=facts, embedder=MINILM, generator=Chat())
    by_json = HyDETechnique({"n": 2}, store=facts, embedder=MINILM, generator=Says({"passages": [passage]}))
    documents, stages = traced(by_text)
    assert schemas == [None]
    assert stages[0].detail["passages"] == [passage]
    assert same_answer(documents, by_json.retrieve(QUESTION))


def test_hyde_says_how_many_passages_it_wants_if_the_prompt_does_not(facts):
    said = {"passages": ["Taft."]}
    for config, expected in (({"n": 3}, "Write 3 such"), ({"n": 3, "prompt": "{n}: {query}"}, "3: ")):
        generator = Says(said)
        HyDETechnique(config, store=facts, embedder=MINILM, generator=generator).retrieve(QUESTION)
        assert expected in generator.prompts[0]
        assert generator.prompts[0].count("3") == 1


@pytest.mark.parametrize(
    ("config", "reply"),
    [
        ({}, " \n"), ({}, "<think>Who was president?</think>"), ({}, TimeoutError("late")),
        ({"n": 2}, {"passages": [" "]}), ({"n": 2}, "Taft was president in 1911."),
    ],
)  # fmt: skip
def test_hyde_without_a_passage_searches_the_query(facts, config, reply):
    technique = HyDETechnique(config, store=facts, embedder=MINILM, generator=Says(reply))
    documents, stages = traced(technique)
    assert documents == NaiveRAGTechnique({}, store=facts, embedder=MINILM).retrieve(QUESTION)
    check_message(degraded(stages))
