"""Other queries for a question: multi-query, step-back, decomposition, HyDE."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from ragistry.stores.local import LocalStore
from ragistry.techniques.bm25 import BM25Technique
from ragistry.techniques.decompose import DecomposeTechnique
from ragistry.techniques.hyde import HyDETechnique
from ragistry.techniques.multi_query import MultiQueryTechnique
from ragistry.techniques.naive import NaiveRAGTechnique
from ragistry.techniques.step_back import StepBackTechnique
from ragistry.trace import collect
from tests.techniques.talking import EMBEDDER, QUESTION, TEXTS, Fixed, Says, library, names


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStore]:
    with closing(library(tmp_path_factory.mktemp("library"))) as opened:
        yield opened


def queries(*texts: str) -> Says:
    return Says(lambda _: {"queries": list(texts)})


def test_multi_query_scores_by_the_ranks_of_all_queries() -> None:
    base = Fixed("tea", "magnet")
    documents = MultiQueryTechnique({}, base=base, generator=queries("one", "two")).retrieve("how hot?")
    assert base.queries == ["how hot?", "one", "two"]
    assert names(documents) == ["tea", "magnet"]
    assert [document.score for document in documents] == pytest.approx([3 / 61, 3 / 62])
    assert [score.kind for score in documents[0].scores][-1] == "rrf"


def test_multi_query_searches_no_query_twice_and_no_more_than_n() -> None:
    base = Fixed("tea")
    generator = queries("How hot??", " ", "one", "ONE ", "two", "three")
    MultiQueryTechnique({"n": 2, "fetch": 7}, base=base, generator=generator).retrieve("how hot")
    assert base.queries == ["how hot", "one", "two"]


def test_multi_query_finds_what_no_single_wording_finds(store: LocalStore) -> None:
    base = BM25Technique({}, store=store)
    question = "who led the USA in the year of Kamerlingh's finding?"
    assert "taft" not in names(base.retrieve(question))
    technique = MultiQueryTechnique({}, base=base, generator=queries("president of the United States 1909"))
    assert "taft" in names(technique.retrieve(question))


def test_step_back_searches_the_more_general_question_of_the_paper_too(store: LocalStore) -> None:
    question = "Estella Leopold went to which school between August 1954 and November 1954?"
    generator = Says(lambda _: {"question": "What degrees in botany does Estella Leopold have?"})
    technique = StepBackTechnique({}, base=BM25Technique({}, store=store), generator=generator)
    with collect() as trace:
        documents = technique.retrieve(question)
    assert names(documents)[0] == "education"
    assert documents[0].score == pytest.approx(2 / 61)
    [step] = [stage for stage in trace.stages() if stage.name == "step back"]
    assert step.detail["queries"] == ["What degrees in botany does Estella Leopold have?"]


def self_ask(prompt: str) -> Any:
    """The example of Press et al., figure 2, as a model would answer it step by step."""
    if "When was superconductivity discovered? ->" not in prompt:
        return {"answer": "", "follow_up": "When was superconductivity discovered?"}
    if "1911" in prompt and "Who was president in 1911? ->" not in prompt:
        return {"answer": "1911", "follow_up": "Who was president in 1911?"}
    return {"answer": "William Howard Taft", "follow_up": ""}


def test_decompose_asks_for_one_fact_after_the_other(store: LocalStore) -> None:
    generator = Says(self_ask)
    technique = DecomposeTechnique({}, base=BM25Technique({}, store=store), generator=generator)
    documents = technique.retrieve(QUESTION, top_k=3)
    assert len(generator.prompts) == 3
    assert "When was superconductivity discovered? -> 1911" in generator.prompts[2]
    assert TEXTS["discovery"] in generator.prompts[1]
    assert {"discovery", "taft"} <= set(names(documents))
    assert documents[0].scores[-1].kind == "rrf"


def test_decompose_leaves_a_question_of_one_step_to_the_base(store: LocalStore) -> None:
    base = BM25Technique({}, store=store)
    generator = Says(lambda _: {"answer": "", "follow_up": ""})
    assert DecomposeTechnique({}, base=base, generator=generator).retrieve("green tea") == base.retrieve("green tea")
    assert len(generator.prompts) == 1


def test_decompose_stops_after_n_steps_and_at_a_repetition() -> None:
    endless = Says(lambda prompt: {"answer": "", "follow_up": f"step {prompt.count('->')}"})
    DecomposeTechnique({"n": 2}, base=(base := Fixed("tea")), generator=endless).retrieve("why?")
    assert base.queries == ["why?", "step 0", "step 1"]
    again = Says(lambda _: {"answer": "", "follow_up": "Why"})
    DecomposeTechnique({}, base=(base := Fixed("tea")), generator=again).retrieve("why?")
    assert base.queries == ["why?"]


def test_decompose_keeps_what_it_found_before_a_failure() -> None:
    def reply(prompt: str) -> Any:
        return TimeoutError("late") if "->" in prompt else {"answer": "", "follow_up": "first step"}

    with collect() as trace:
        documents = DecomposeTechnique({}, base=(base := Fixed("tea")), generator=Says(reply)).retrieve("why?")
    assert base.queries == ["why?", "first step"]
    assert documents[0].score == pytest.approx(2 / 61)
    assert any("no answer" in stage.degraded for stage in trace.stages())


def test_hyde_searches_with_the_mean_of_the_query_and_the_passages(store: LocalStore) -> None:
    written = ["Taft was president in 1911.", "It was found in Leiden."]
    generator = Says(lambda _: {"passages": [*written, "one too many"]})
    documents = HyDETechnique({"n": 2}, store=store, embedder=EMBEDDER, generator=generator).retrieve(QUESTION, top_k=6)
    vectors = [*EMBEDDER.embed(written, role="document"), EMBEDDER.embed([QUESTION], role="query")[0]]
    mean = np.mean(vectors, axis=0)
    expected = {
        name: max(0.0, float(EMBEDDER.embed([text])[0] @ mean / np.linalg.norm(mean))) for name, text in TEXTS.items()
    }
    found = {document.metadata["source_file"]: document.score for document in documents}
    assert found == pytest.approx(expected, abs=1e-4)


def test_hyde_finds_what_is_near_to_the_imagined_answer(store: LocalStore) -> None:
    naive = NaiveRAGTechnique({}, store=store, embedder=EMBEDDER)
    question = "what did she study?"
    imagined = Says(lambda _: {"passages": ["She studied botany, with degrees from Berkeley and Yale."]})
    technique = HyDETechnique({}, store=store, embedder=EMBEDDER, generator=imagined)
    before = naive.retrieve(question, top_k=1)[0]
    after = technique.retrieve(question, top_k=1)[0]
    assert names([after]) == ["education"]
    assert after.score > before.score


def test_hyde_without_a_passage_searches_the_query(store: LocalStore) -> None:
    technique = HyDETechnique({}, store=store, embedder=EMBEDDER, generator=Says(lambda _: {"passages": [" "]}))
    assert technique.retrieve(QUESTION) == NaiveRAGTechnique({}, store=store, embedder=EMBEDDER).retrieve(QUESTION)
