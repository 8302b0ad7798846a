"""What all techniques with a generator share: prompts, cost, failures, conditions and memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ragistry import TechniqueRegistry, open_workspace
from ragistry.config.settings import DEFAULTS
from ragistry.errors import ConfigError, InvalidConfigError, ModelConnectionError, ModelError
from ragistry.evaluation import compare
from ragistry.pipelines.corrective import Grade
from ragistry.stores.local import LocalStore
from ragistry.techniques.bm25 import BM25Technique
from ragistry.techniques.classes import find_class, wanted_resources
from ragistry.techniques.naive import NaiveRAGTechnique
from ragistry.techniques.prompting import AT_ONCE, Prompter, filled, numbered
from ragistry.techniques.registry import RegisteredTechnique
from ragistry.testing.openai_server import OpenAIServer
from ragistry.trace import collect
from ragistry.types import Document, EmbeddedChunk, RetrievalResult, Stage, ranked
from tests.evaluation.small_sets import topics
from tests.techniques.talking import (
    EMBEDDER,
    MODEL,
    PATHS,
    QUESTION,
    Fixed,
    Says,
    library,
    model,
    names,
    prompts,
    talking,
)

ANSWERS: dict[str, Any] = {
    "multi_query": {"queries": ["discovery of superconductivity", "president in 1911"]},
    "step_back": {"question": "history of the United States"},
    "decompose": {"answer": "1911", "follow_up": "president in 1911"},
    "hyde": {"passages": ["In 1911, when it was discovered, William Howard Taft was president."]},
    "llm_rerank": {"ranking": [2, 1]},
    "contextual_compression": {"sentences": ["."]},
    "self_rag": {"answer": "Taft", "relevance": "relevant", "support": "full", "usefulness": 5},
    "corrective": {"grade": "correct"},
}
PLACEHOLDERS = {"llm_rerank": "{passages}", "decompose": "{steps} {passages}"} | dict.fromkeys(
    ("contextual_compression", "self_rag", "corrective"), "{passage}"
)
every_technique = pytest.mark.parametrize("name", ANSWERS)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStore]:
    with closing(library(tmp_path_factory.mktemp("library"))) as opened:
        yield opened


def made(name: str, generator: Any, store: LocalStore, base: Any = None, **config: Any) -> RegisteredTechnique:
    """The technique over words, or over the base that is given."""
    cls = find_class(name)
    resources = {"generator": generator, "store": store, "embedder": EMBEDDER, "base": base or plain(name, store)}
    return RegisteredTechnique(
        name, cls(config, **{one: resources[one] for one in wanted_resources(cls) if one in resources})
    )


def plain(name: str, store: LocalStore) -> Any:
    """What the technique gives where its generator fails."""
    return NaiveRAGTechnique({}, store=store, embedder=EMBEDDER) if name == "hyde" else BM25Technique({}, store=store)


def traced(technique: Any, query: str = QUESTION, **options: Any) -> tuple[list[Document], tuple[Stage, ...]]:
    with collect() as trace:
        documents = technique.retrieve(query, **options)
    return documents, trace.stages()


def calls(stages: tuple[Stage, ...]) -> int:
    return sum(stage.model_calls for stage in stages if stage.name != "embed")


def degraded(stages: tuple[Stage, ...]) -> str:
    return "; ".join(RetrievalResult("", [], 0, 0.0, stages).degraded)


@every_technique
@pytest.mark.parametrize("kind", PATHS)
def test_the_prompt_of_the_configuration_is_sent_and_every_call_is_in_the_trace(
    name: str, kind: str, store: LocalStore
) -> None:
    with model(kind, lambda _: ANSWERS[name]) as (server, generator):
        prompt = f"My own words: {{query}} {PLACEHOLDERS.get(name, '')}"
        documents, stages = traced(made(name, generator, store, prompt=prompt))
        sent = prompts(server)
    assert documents == ranked(documents)
    assert all(text.startswith(f"My own words: {QUESTION}") for text in sent)
    assert calls(stages) == len(sent) > 0
    assert sum(stage.tokens for stage in stages if stage.name == "generate") > 10 * len(sent)
    assert degraded(stages) == ""


@every_technique
def test_an_answer_is_remembered_until_the_store_changes(name: str, store: LocalStore) -> None:
    generator = Says(lambda _: ANSWERS[name])
    technique = made(name, generator, store)
    first = technique.retrieve(QUESTION)
    asked = len(generator.prompts)
    again, stages = traced(technique)
    assert again == first
    assert len(generator.prompts) == asked
    assert not [stage for stage in stages if stage.name == "generate"]
    store.add_documents([EmbeddedChunk("Snow falls.", {}, EMBEDDER.embed(["Snow falls."])[0])])
    technique.retrieve(QUESTION)
    assert len(generator.prompts) == 2 * asked


@every_technique
@pytest.mark.parametrize("failure", ["down", "garbage", "slow"])
def test_a_generator_that_fails_leaves_the_results_of_the_base(name: str, failure: str, store: LocalStore) -> None:
    reply = (lambda _: "I would rather not.") if failure == "garbage" else (lambda _: ANSWERS[name])
    with model("ollama", reply, timeout=0.3 if failure == "slow" else 10) as (server, generator):
        if failure == "slow":
            server.fail_next("hang", times=100)
        if failure == "down":
            generator = type(generator)(MODEL, url="http://127.0.0.1:9", attempts=1)
        documents, stages = traced(made(name, generator, store), top_k=10)
        if failure == "slow":
            assert len(prompts(server)) <= AT_ONCE, "one that is late is not waited for with each prompt"
        expected = plain(name, store).retrieve(QUESTION, top_k=10)
        assert [(one.id, one.score, one.content) for one in documents] == [
            (one.id, one.score, one.content) for one in expected
        ]
        assert "no answer to" in degraded(stages)
        wanted = ModelError if failure == "garbage" else ModelConnectionError
        with pytest.raises(wanted):
            made(name, generator, store, strict=True).retrieve(QUESTION)
        generator.close()


@every_technique
def test_a_condition_limits_what_is_found_and_what_the_generator_sees(name: str, store: LocalStore) -> None:
    generator = Says(lambda _: ANSWERS[name])
    documents = made(name, generator, store).retrieve(QUESTION, where={"collection": "science"})
    assert documents
    assert {document.metadata["collection"] for document in documents} == {"science"}
    assert not any("Taft" in prompt for prompt in generator.prompts)


@every_technique
@pytest.mark.parametrize("found", [(), ("tea",)])
def test_a_base_that_finds_little_is_enough(name: str, found: tuple[str, ...], store: LocalStore) -> None:
    technique = made(name, Says(lambda _: ANSWERS[name]), store, Fixed(*found))
    if name != "hyde":
        assert names(technique.retrieve(QUESTION, top_k=1000)) == list(found)


@every_technique
@pytest.mark.parametrize("query", ["superconductivity " * 600, "超伝導 président {query} {nothing} \\1 🙂", "a\nb\x00"])
def test_odd_queries_are_asked_as_they_are(name: str, query: str, store: LocalStore) -> None:
    generator = Says(lambda _: ANSWERS[name])
    made(name, generator, store, Fixed("tea", "magnet")).retrieve(query, top_k=1000)
    assert all(" ".join(query.split()) in prompt for prompt in generator.prompts)


@every_technique
@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("no place for the question", "must contain {query}"),
        ("{qery}", "unknown placeholder {qery}; did you mean 'query'?"),
    ],
)
def test_a_prompt_is_checked_when_the_file_is_loaded(name: str, prompt: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "techniques.yaml"
    base = "" if name == "hyde" else "base: naive, "
    path.write_text(
        f"techniques:\n  naive: {{use: naive}}\n  mine: {{use: {name}, {base}prompt: '{prompt}'}}\n", encoding="utf-8"
    )
    with pytest.raises(InvalidConfigError) as caught:
        TechniqueRegistry.load(path)
    assert said in str(caught.value)
    assert "techniques.yaml:3: techniques.mine.prompt" in str(caught.value)


def test_a_prompt_may_show_json_and_a_value_is_not_filled_again() -> None:
    assert filled('Answer {"a": {}} to {query}.', query="{n} {passages}", n=3) == 'Answer {"a": {}} to {n} {passages}.'


def test_a_passage_cannot_begin_a_line_of_the_prompt() -> None:
    assert numbered(["one\n[2] fake", "two"], 8) == "[1] one [2] \n[2] two"


def test_a_workspace_without_a_generator_works_until_the_technique_is_asked_for(tmp_path: Path) -> None:
    with open_workspace(tmp_path) as workspace:
        workspace.library.create_collection("notes")
        workspace.library.ingest_text("Green tea.", "tea.txt", "notes")
        assert workspace.search("tea").documents
        for name in ANSWERS:
            with pytest.raises(ConfigError, match=f"{name!r} needs a generator, .*add one to config/models.yaml"):
                workspace.search("tea", name)


def test_an_entry_chooses_its_generator_by_name(tmp_path: Path) -> None:
    server = talking(OpenAIServer)(MODEL, accent="vllm")
    server.reply = lambda _: ANSWERS["multi_query"]
    (tmp_path / "config").mkdir()
    with server:
        (tmp_path / "config" / "models.yaml").write_text(
            "generators:\n  broken: {use: openai, url: 'http://127.0.0.1:9', model: none}\n"
            f"  writer: {{use: openai, url: '{server.url}', model: '{MODEL}'}}\n",
            encoding="utf-8",
        )
        (tmp_path / "config" / "techniques.yaml").write_text(
            "techniques:\n  naive: {use: naive}\n  mine: {use: multi_query, base: naive, generator: writer}\n",
            encoding="utf-8",
        )
        with open_workspace(tmp_path) as workspace:
            workspace.library.create_collection("notes")
            workspace.library.ingest_text("Green tea.", "tea.txt", "notes")
            result = workspace.search("tea", "mine")
    assert result.degraded == ()
    assert [stage.name for stage in result.trace][:3] == ["mine", "rewrite", "generate"]


@pytest.mark.parametrize("name", ["multi_query", "self_rag"])
def test_a_comparison_is_recorded_and_repeated_without_the_model(name: str, tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    server = talking(OpenAIServer)(MODEL, accent="vllm")
    server.reply = lambda _: ANSWERS[name]
    dataset, record = topics(), tmp_path / "models.db"
    with server:
        (tmp_path / "config" / "models.yaml").write_text(
            f"generators: {{writer: {{use: openai, url: '{server.url}', model: '{MODEL}'}}}}", encoding="utf-8"
        )
        with open_workspace(tmp_path) as workspace:
            live = compare(["naive", name], dataset, workspace=workspace, record=record, runs=tmp_path / "live")
            asked = len(prompts(server))
            assert asked > 0
            assert not live.failures
            again = compare(["naive", name], dataset, workspace=workspace, replay=record, runs=tmp_path / "again")
            assert not again.failures
            assert len(prompts(server)) == asked
            plainly = compare([name], dataset, workspace=workspace)
    calls = [one.techniques[name].calls for one in (live, again, plainly)]
    assert calls[0] == calls[1] == calls[2] >= 2 * len(dataset.queries), "a query costs what it costs alone"
    runs = [(tmp_path / folder / f"{name}.run").read_bytes() for folder in ("live", "again")]
    assert runs[0] == runs[1]


def test_several_prompts_are_asked_side_by_side_in_their_order() -> None:
    def late(prompt: str) -> Any:
        time.sleep(0.2)
        return {"grade": "correct" if prompt == "b" else "incorrect"}

    start = time.perf_counter()
    answers = Prompter(Says(late)).ask_all(["a", "b", "c", "b"], Grade)
    assert time.perf_counter() - start < 0.5
    assert [answer.grade for answer in answers if answer] == ["incorrect", "correct", "incorrect", "correct"]


@pytest.mark.parametrize("given", [None, object()])
def test_nothing_is_remembered_where_a_change_of_the_store_would_not_be_noticed(given: object) -> None:
    generator = Says(lambda _: {"grade": "correct"})
    prompter = Prompter(generator, store=given)
    assert prompter.ask("a", Grade) == prompter.ask("a", Grade)
    assert len(generator.prompts) == 2


def test_one_bad_answer_costs_only_its_own_passage(store: LocalStore) -> None:
    generator = Says(lambda prompt: "?" if "Wilson" in prompt else {"sentences": ["president"]})
    technique = made("contextual_compression", generator, store, Fixed("taft", "wilson"))
    documents, stages = traced(technique)
    assert [document.content == "president" for document in documents] == [True, False]
    assert "no answer to 1 of 2 prompts" in degraded(stages)


def test_the_packaged_entries_say_which_of_them_ask_a_model() -> None:
    registry = TechniqueRegistry.load(DEFAULTS / "techniques.yaml")
    asking = [one for one in registry.names() if wanted_resources(registry.technique_class(one)).get("generator")]
    assert set(asking) == set(ANSWERS)
