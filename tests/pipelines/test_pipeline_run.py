"""A run: where it goes, what it gives, what it holds to, and what it says when it cannot."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pocketflow
import pytest

from ragistry.errors import (
    EmptyQueryError,
    InvalidFilterError,
    InvalidLimitError,
    ModelConnectionError,
    PipelineError,
)
from ragistry.pipelines import END, PipelineBuilder
from ragistry.presentation.hits import collection_of
from ragistry.protocols import Technique
from ragistry.techniques.registered import RegisteredTechnique
from ragistry.trace import stage
from ragistry.types import Document, is_outside
from tests.messages import refused
from tests.pipelines import parts
from tests.pipelines.parts import SHELF, Blind, Failing, Rewrite, Set, Visits, Words, texts

ROCKS = {"collection": "rocks"}
PARTS = parts.__file__


def one(technique, **settings):
    return PipelineBuilder("one").step("search", technique, **settings).build()


def rewriting():
    return (
        PipelineBuilder("careful")
        .step("search", Words(), on={"found": END, "empty": "rewrite"})
        .step("rewrite", Rewrite("stone", "granite"), on="wide")
        .step("wide", Words(), top_k=50)
        .build()
    )


def test_pipeline_of_one_technique_gives_what_the_technique_gives():
    pipeline = one(Words())
    assert isinstance(pipeline, Technique)
    for options in ({}, {"top_k": 1}, {"where": ROCKS}, {"top_k": 2, "where": {"page": {"$gte": 2}}}):
        assert pipeline.retrieve("granite beech", **options) == Words().retrieve("granite beech", **options)
    assert pipeline.retrieve("nothing of this") == []


def test_first_query_stays_in_the_result_and_in_the_shared_mapping():
    result = rewriting().run("stone", where=ROCKS)
    assert (texts(result.documents), result.query, result.total_results) == (["granite and basalt"], "stone", 1)
    shared = {"query": "stone"}
    assert rewriting().flow.run(shared) == "found"
    assert (shared["original_query"], shared["query"]) == ("stone", "granite")
    assert len(shared["documents"]) == 2


def test_trace_has_a_stage_for_each_step_with_its_own_stages_below():
    class Staged(Words):
        def retrieve(self, query, **options):
            with stage("words"):
                return super().retrieve(query, **options)

    trace = PipelineBuilder("p").step("a", Rewrite("x", "oak"), on="b").step("b", Staged()).build().run("x").trace
    assert [(stage.name, stage.depth) for stage in trace] == [("a", 0), ("b", 0), ("words", 1)]
    assert trace[0].detail == {"pipeline": "p", "action": "default", "query": "oak"}
    assert trace[1].detail == {"pipeline": "p", "action": "found"}
    assert [stage.documents_out for stage in trace[:2]] == [0, 1]


def test_steps_top_k_is_asked_of_its_technique_and_the_runs_limits_what_comes_out():
    pipeline = one(Words({"top_k": 1}), top_k=3)
    assert len(pipeline.retrieve("granite beech basalt")) == 3
    assert len(pipeline.retrieve("granite beech basalt", top_k=2)) == 2
    assert len(pipeline.retrieve("granite beech basalt", top_k=4)) == 3


def test_steps_where_holds_together_with_the_runs():
    pipeline = one(Words(), where={"page": 2})
    assert texts(pipeline.retrieve("granite basalt")) == ["basalt and olivine", "beech and granite"]
    assert texts(pipeline.retrieve("granite basalt", where=ROCKS)) == ["basalt and olivine"]
    assert pipeline.retrieve("granite basalt", where={"page": 1}) == []


def test_pipeline_is_a_step_of_another():
    outer = PipelineBuilder("outer").step("inner", rewriting(), on={"found": "more", "empty": END})
    result = outer.step("more", Words(), top_k=1).build().run("stone oak")
    assert [(stage.name, stage.depth) for stage in result.trace] == [("inner", 0), ("search", 1), ("more", 0)]
    assert texts(result.documents) == ["oak and beech"]


def test_run_that_uses_up_its_steps_names_the_way_it_went():
    builder = PipelineBuilder("dizzy").step("a", Visits(100), on={"again": "b", "done": END})
    pipeline = builder.step("b", Words(), on="a").build(max_steps=5)
    with refused(PipelineError, "'dizzy'", 5):
        pipeline.retrieve("oak")


def test_document_that_the_caller_may_not_see_never_gets_out():
    pipeline = PipelineBuilder("leaky").step("blind", Blind()).build()
    assert len(pipeline.retrieve("granite")) == 2
    with refused(PipelineError):
        pipeline.retrieve("granite", where=ROCKS)


WEB = Document("granite of the web", {"url": "https://rocks.example.org"}, 0.1, "web-1")


@pytest.mark.parametrize("where", [None, ROCKS, {"page": {"$gte": 1}}, {"$or": [ROCKS, {"collection": "trees"}]}])
def test_document_that_a_node_made_itself_is_marked_and_let_through(where):
    class Web(Set):
        def post(self, shared, *_):
            shared["documents"] = [*shared["documents"], WEB]

    pipeline = PipelineBuilder().step("search", Words(), on="web").step("web", Web()).build()
    *own, outside = RegisteredTechnique("p", pipeline).retrieve("granite", where=where)
    assert [document.metadata for document in own] == [
        document.metadata for document in Words().retrieve("granite", where=where)
    ]
    assert is_outside(outside)
    assert (outside.id, outside.metadata["url"]) == (WEB.id, WEB.metadata["url"])
    assert collection_of(outside) == "outside the library"
    assert not is_outside(WEB), "the node's own document is left as it was"


@pytest.mark.parametrize(
    "document",
    [
        Words().retrieve("oak")[0],
        replace(Words().retrieve("oak")[0], metadata={"collection": "trees", "outside": True}),
        Document("leaked", {"source_file": "secret.txt", "chunk_index": 0}, 1.0, "leaked"),
        Document("stripped", {}, 1.0, id="0"),  # a technique of this run returned this id
    ],
)
def test_document_of_a_store_is_never_one_from_outside(document):
    pipeline = PipelineBuilder("leaky").step("search", Words(), on="set").step("set", Set(documents=[document])).build()
    with refused(PipelineError, document.id, f"{PARTS}:"):
        pipeline.retrieve("granite", where=ROCKS)


@pytest.mark.parametrize("own", [None, {"page": 1}, {"collection": "trees"}, {"$or": [ROCKS, {"page": 2}]}])
def test_node_can_narrow_the_condition_but_never_lose_the_callers(own):
    pipeline = PipelineBuilder().step("set", Set(where=own), on="search").step("search", Words()).build()
    documents = pipeline.retrieve("granite beech basalt", where=ROCKS)
    both = ROCKS if own is None else {"$and": [ROCKS, own]}
    assert documents == Words().retrieve("granite beech basalt", where=both)


def test_node_that_changes_the_condition_in_place_lets_nothing_out_and_leaves_the_callers_alone():
    class Widen(Set):
        def post(self, shared, *_):
            shared["where"].clear()
            shared["where"]["page"] = {"$gt": 0}

    where = {"collection": "rocks"}
    pipeline = PipelineBuilder().step("widen", Widen(), on="search").step("search", Words()).build()
    with refused(PipelineError):
        pipeline.retrieve("granite", where=where)
    assert where == {"collection": "rocks"}


@pytest.mark.parametrize("left", [["text"], [None], None])
def test_documents_that_are_not_a_list_of_documents_are_refused_with_the_step(left):
    pipeline = PipelineBuilder("odd").step("set", Set(documents=left)).build()
    for where in (None, ROCKS):
        with refused(PipelineError, "'set'", "'odd'"):
            pipeline.retrieve("granite", where=where)


def test_list_that_a_technique_keeps_is_not_handed_out():
    class Kept:
        documents = Words().retrieve("oak")

        def retrieve(self, query, *, top_k=None, where=None):
            return self.documents

    one(Kept()).retrieve("oak").clear()
    assert len(Kept.documents) == 1


@pytest.mark.parametrize("error", [ModelConnectionError("Ollama is not running"), KeyError("page"), ValueError("no")])
def test_what_a_step_raises_comes_through_with_a_note_that_says_where(error):
    builder = PipelineBuilder("careful").step("first", Words(), on={"found": "second", "empty": "second"})
    with pytest.raises(type(error)) as caught:
        builder.step("second", Failing(error)).build().retrieve("oak")
    assert caught.value is error
    assert error.__notes__ == ["in step 'second' of pipeline 'careful' (first → second)"]


@pytest.mark.parametrize(
    ("error", "query", "options"),
    [
        *((EmptyQueryError, query, {}) for query in ("", " \n", None)),
        *((InvalidLimitError, "oak", {"top_k": top_k}) for top_k in (0, 10_000)),
        *((InvalidFilterError, "oak", {"where": where}) for where in ({}, {"page": {"$near": 3}})),
    ],
)
def test_what_cannot_be_answered_is_refused_before_a_step_runs(error, query, options):
    pipeline = one(Failing(AssertionError("ran")))
    for ask in (pipeline.retrieve, pipeline.run):
        with pytest.raises(error):
            ask(query, **options)


def test_many_threads_run_one_pipeline_and_none_sees_anothers_run():
    pipeline = (
        PipelineBuilder("shared")
        .step("count", Visits(3), on={"again": "count", "done": "rewrite"})
        .step("rewrite", Rewrite("one ", ""), on="search")
        .step("search", Words())
        .build(max_steps=5)
    )
    words = ["granite", "basalt", "oak", "beech", "olivine"]

    def ask(number):
        word, where = words[number % 5], {"page": number % 2 + 1}
        result = pipeline.run(f"one {word}", where=where)
        assert [stage.name for stage in result.trace] == ["count", "count", "count", "rewrite", "search"]
        return result.documents == Words().retrieve(word, where=where)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(100)))


def test_flow_is_a_node_of_any_pocketflow_flow():
    class Ask(pocketflow.Node):
        def post(self, shared, _prepared, _done):
            shared["query"] = "oak"

    ask, flow = Ask(), rewriting().flow
    assert isinstance(flow, pocketflow.Flow)
    ask >> flow
    shared = {}
    pocketflow.Flow(ask).run(shared)
    assert texts(shared["documents"]) == [SHELF[2][0]]


# What plain PocketFlow 0.0.3 does in silence, a pipeline refuses or does right


@pytest.mark.parametrize("action", ["agian", "", 3, ["again"]])
def test_undeclared_action_stops_the_run_and_names_step_and_node(action):
    pipeline = PipelineBuilder("p").step("set", Set(action), on="search").step("search", Words()).build()
    with refused(PipelineError, "'set'", repr(action)):
        pipeline.retrieve("oak")


class ByParams(Set):
    def prep(self, shared):
        shared["query"] = self.params.get("word", "nothing")


def test_params_of_nodes_are_kept_below_those_of_the_flow():
    node, shared = ByParams(), {"query": "x"}
    node.set_params({"word": "oak"})
    flow = PipelineBuilder().step("params", node).build().flow
    flow.run(shared)
    assert shared["query"] == "oak"
    flow.set_params({"word": "beech"})
    flow.run(shared)
    assert shared["query"] == "beech"


def test_run_leaves_nothing_on_a_node_or_the_flow():
    class Remembering(Visits):
        seen = 0

        def post(self, shared, *_):
            self.seen += 1
            return super().post(shared, *_)

    node = Remembering()
    pipeline = PipelineBuilder().step("count", node, on={"again": "count", "done": "search"}).step("search", Words())
    flow = pipeline.build(max_steps=4).flow
    before, own = {name: dict(vars(step.node)) for name, step in flow.steps.items()}, dict(vars(flow))
    for _ in range(2):
        shared = {"query": "oak"}
        flow.run(shared)
        assert shared["visits"] == 3
    assert {name: vars(step.node) for name, step in flow.steps.items()} == before
    assert vars(flow) == own


def test_each_item_of_a_batch_has_its_own_retries():
    class Batch(pocketflow.BatchNode):
        actions = frozenset({"default"})

        def prep(self, shared):
            shared["tries"] = dict.fromkeys("abc", 0)
            return [(shared["tries"], item) for item in "abc"]

        def exec(self, pair):
            tries, item = pair
            tries[item] += 1
            if tries[item] < 3:
                raise OSError(item)

    shared = {"query": "oak"}
    PipelineBuilder().step("batch", Batch(max_retries=3)).build().flow.run(shared)
    assert shared["tries"] == {"a": 3, "b": 3, "c": 3}


def test_run_over_its_time_stops_before_the_next_step(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("ragistry.pipelines.flow.monotonic", lambda: now[0])

    class Slow(Set):
        def exec(self, _prepared):
            now[0] += 20

    late = PipelineBuilder("late").step("slow", Slow(), on="search").step("search", Words())
    with refused(PipelineError, "'late'"):
        late.build(max_seconds=19).retrieve("oak")
    assert late.build(max_seconds=30).retrieve("oak")


def test_pipeline_runs_inside_a_running_event_loop():
    async def ask():
        return PipelineBuilder().step("search", Words()).build().retrieve("oak")

    assert len(asyncio.run(ask())) == 1


def test_node_with_length_zero_runs():
    class Sized(Set):
        def __len__(self):
            return 0

    shared = {"query": "oak"}
    PipelineBuilder().step("first", Set(), on="sized").step("sized", Sized(reached=True)).build().flow.run(shared)
    assert shared["reached"]
