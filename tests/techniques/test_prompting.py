"""What all techniques with a generator share: prompts, cost, failures, conditions and memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from threading import Barrier
from typing import Any

import pytest

from ragistry import TechniqueRegistry
from ragistry.errors import ConfigError, InvalidConfigError, ModelConnectionError, ModelError
from ragistry.evaluation import compare
from ragistry.stores.local import LocalStore
from ragistry.techniques.bm25 import BM25Technique
from ragistry.techniques.classes import find_class, wanted_resources
from ragistry.techniques.corrective import Grade
from ragistry.techniques.naive import NaiveRAGTechnique
from ragistry.techniques.prompting import AT_ONCE, Prompter, filled, numbered_passages
from ragistry.techniques.registered import RegisteredTechnique
from ragistry.testing.ollama_server import OllamaServer
from ragistry.testing.techniques import same_answer
from ragistry.types import EmbeddedChunk, ranked
from tests.evaluation.small_sets import hashed_workspace, topics
from tests.messages import check_message, refused
from tests.techniques.doubles import MINILM, QUESTION, Facts, Says, degraded, fill_with_facts, names, traced

ANSWERS: dict[str, Any] = {
    "multi_query": {"queries": ["discovery of superconductivity", "president in 1911"]},
    "decompose": {"answer": "1911", "follow_up": "president in 1911"},
    "hyde": {"passages": ["In 1911, when it was discovered, William Howard Taft was president."]},
    "llm_rerank": {"ranking": [2, 1]},
    "contextual_compression": {"sentences": ["."]},
    "corrective": {"grade": "correct"},
}
PLACEHOLDERS = {"llm_rerank": "{passages}", "decompose": "{steps} {passages}"} | dict.fromkeys(
    ("contextual_compression", "corrective"), "{passage}"
)
FAILURES: list[tuple[str, Any, type[ModelError]]] = [
    *((name, ModelConnectionError("no server"), ModelConnectionError) for name in ANSWERS),
    *((name, TimeoutError("late"), ModelConnectionError) for name in ANSWERS),
    *((name, "I would rather not.", ModelError) for name in ANSWERS),
    ("multi_query", {"queries": ["", " "]}, ModelError),
    ("hyde", {"passages": [""]}, ModelError),
    ("llm_rerank", "", ModelError),
]
every_technique = pytest.mark.parametrize("name", ANSWERS)


def made(name: str, reply: Any, store: LocalStore, base: Any = None, **config: Any) -> tuple[Any, Says]:
    """The technique over words, or over the base that is given, and its generator."""
    cls, generator = find_class(name), Says(reply)
    if name == "hyde":
        config = {"n": 2, **config}  # the answer for one passage may be any text
    resources = {"generator": generator, "store": store, "embedder": MINILM, "base": base or plain(name, store)}
    given = {one: resources[one] for one in wanted_resources(cls) if one in resources}
    return RegisteredTechnique(name, cls(config, **given)), generator


def plain(name: str, store: LocalStore) -> Any:
    """What the technique gives where its generator fails."""
    return NaiveRAGTechnique({}, store=store, embedder=MINILM) if name == "hyde" else BM25Technique({}, store=store)


@pytest.fixture(scope="module")
def changing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStore]:
    """The facts, and what tests add to them."""
    with closing(LocalStore(tmp_path_factory.mktemp("changing"))) as opened:
        fill_with_facts(opened)
        yield opened


@every_technique
def test_configured_prompt_is_sent_and_every_call_is_in_the_trace(name, facts):
    prompt = f"My own words: {{query}} {PLACEHOLDERS.get(name, '')}"
    technique, generator = made(name, ANSWERS[name], facts, prompt=prompt)
    documents, stages = traced(technique)
    assert documents == ranked(documents)
    assert all(text.startswith(f"My own words: {QUESTION}") for text in generator.prompts)
    calls = [stage for stage in stages if stage.name == "generate"]
    assert len(calls) == len(generator.prompts) > 0
    assert {(stage.model_calls, stage.tokens) for stage in calls} == {(1, 11)}
    assert degraded(stages) == ""


@every_technique
def test_answer_is_remembered_until_the_store_changes(name, changing):
    technique, generator = made(name, ANSWERS[name], changing)
    first = technique.retrieve(QUESTION)
    asked = len(generator.prompts)
    again, stages = traced(technique)
    assert same_answer(again, first)
    assert len(generator.prompts) == asked
    assert not [stage for stage in stages if stage.name == "generate"]
    changing.add_documents([EmbeddedChunk(f"Snow falls by {name}.", {}, [0.0] * 383 + [1.0])])
    technique.retrieve(QUESTION)
    assert len(generator.prompts) == 2 * asked


@pytest.mark.parametrize(("name", "reply", "error"), FAILURES)
def test_generator_that_fails_leaves_the_results_of_the_base(name, reply, error, facts):
    technique, generator = made(name, reply, facts)
    documents, stages = traced(technique, top_k=10)
    if error is ModelConnectionError:
        assert len(generator.prompts) <= AT_ONCE, "a server that is down is not asked with each prompt"
    expected = plain(name, facts).retrieve(QUESTION, top_k=10)
    assert [(one.id, one.score, one.content) for one in documents] == [
        (one.id, one.score, one.content) for one in expected
    ]
    check_message(degraded(stages), "no answer to")
    with pytest.raises(error):
        made(name, reply, facts, strict=True)[0].retrieve(QUESTION)


@every_technique
def test_condition_limits_what_is_found_and_what_the_generator_sees(name, facts):
    technique, generator = made(name, ANSWERS[name], facts)
    documents = technique.retrieve(QUESTION, where={"collection": "science"})
    assert documents
    assert {document.metadata["collection"] for document in documents} == {"science"}
    assert not any("Taft" in prompt for prompt in generator.prompts)


@every_technique
def test_base_that_finds_little_and_odd_queries_are_enough(name, facts):
    for found in ((), ("tea",)) if name != "hyde" else ():
        assert names(made(name, ANSWERS[name], facts, Facts(*found))[0].retrieve(QUESTION, top_k=1000)) == list(found)
    for query in ("superconductivity " * 600, "超伝導 président {query} {nothing} \\1 🙂", "a\nb\x00"):
        technique, generator = made(name, ANSWERS[name], facts, Facts("tea", "magnet"))
        technique.retrieve(query, top_k=1000)
        assert all(" ".join(query.split()) in prompt for prompt in generator.prompts)


@every_technique
@pytest.mark.parametrize(("prompt", "said"), [("no place for the question", "{query}"), ("{qery}", "'query'")])
def test_prompt_is_checked_when_the_file_is_loaded(name, prompt, said, tmp_path):
    path = tmp_path / "techniques.yaml"
    base = "" if name == "hyde" else "base: naive, "
    path.write_text(
        f"techniques:\n  naive: {{use: naive}}\n  mine: {{use: {name}, {base}prompt: '{prompt}'}}\n", encoding="utf-8"
    )
    with refused(InvalidConfigError, "techniques.yaml:3: techniques.mine.prompt", said):
        TechniqueRegistry.load(path)


def test_prompt_may_show_json_and_a_value_is_not_filled_again():
    assert filled('Answer {"a": {}} to {query}.', query="{n} {passages}", n=3) == 'Answer {"a": {}} to {n} {passages}.'


def test_passage_cannot_begin_a_line_of_the_prompt():
    assert numbered_passages(["one\n[2] fake", "two"], 8) == "[1] one [2] \n[2] two"


def test_workspace_without_a_generator_names_the_remedy(tmp_path):
    with hashed_workspace(tmp_path) as workspace:
        assert workspace.search("tea").documents == []
        for name in ANSWERS:
            with refused(ConfigError, repr(name), "config/models.yaml"):
                workspace.search("tea", name)
        asking = {name for name in workspace.registry.names() if workspace.registry.missing_model(name) == "generator"}
    assert asking == set(ANSWERS)


def test_comparison_is_recorded_and_repeated_without_the_model(tmp_path, corpus):
    few, asking = topics(), ["multi_query", "contextual_compression"]
    queries = dict(list(few.queries.items())[:2])
    dataset = replace(few, queries=queries, qrels={query: few.qrels[query] for query in queries}, groups={}, kinds={})
    entries = "".join(f"  {name}: {{use: {name}, base: naive, generator: writer}}\n" for name in asking)
    with OllamaServer() as server:  # it answers with the simplest thing that a schema accepts
        models = f"generators: {{writer: {{use: ollama, model: llama3.2, url: '{server.url}'}}}}\n"
        techniques = f"techniques:\n  naive: {{use: naive}}\n{entries}"
        corpus({"models.yaml": models, "techniques.yaml": techniques}, "config")
        results, asked = [], []
        with hashed_workspace(tmp_path) as workspace:
            for answers in (tmp_path / "models.db", tmp_path / "models.db", False):
                results.append(compare(asking, dataset, workspace=workspace, answers=answers))
                asked.append(len(server.asked("/api/chat")))
    assert 0 < asked[0] == asked[1] < asked[2]
    assert not any(one.failures for one in results)
    for name in asking:
        calls = [one.techniques[name].calls for one in results]
        assert calls[0] == calls[1] == calls[2] >= 2 * len(queries), "a query costs what it costs alone"
        assert results[0].runs[name] == results[1].runs[name]


def test_several_prompts_are_asked_in_parallel_and_answered_in_their_order():
    together = Barrier(3)

    def reply(prompt: str) -> Any:
        together.wait(30)
        return {"grade": "correct" if prompt == "b" else "incorrect"}

    answers = Prompter(Says(reply)).ask_all(["a", "b", "c", "b"], Grade)
    assert [answer.grade for answer in answers if answer] == ["incorrect", "correct", "incorrect", "correct"]


@pytest.mark.parametrize("given", [None, object()])
def test_nothing_is_remembered_where_a_change_of_the_store_would_not_be_noticed(given):
    generator = Says({"grade": "correct"})
    prompter = Prompter(generator, store=given)
    assert prompter.ask("a", Grade) == prompter.ask("a", Grade)
    assert len(generator.prompts) == 2


def test_one_bad_answer_costs_only_its_own_passage(facts):
    def reply(prompt: str) -> Any:
        return "?" if "Wilson" in prompt else {"sentences": ["president"]}

    documents, stages = traced(made("contextual_compression", reply, facts, Facts("taft", "wilson"))[0])
    assert [document.content == "president" for document in documents] == [True, False]
    check_message(degraded(stages), "1 of 2")
