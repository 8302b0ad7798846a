"""A run: where it goes, what it gives, what it holds to, and what it says when it cannot."""

from concurrent.futures import ThreadPoolExecutor

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
from ragistry.protocols import Technique
from ragistry.trace import collect, stage
from tests.pipelines.parts import SHELF, Blind, Failing, Rewrite, Set, Visits, Words, texts

ROCKS = {"collection": "rocks"}


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


def test_a_pipeline_of_one_technique_gives_what_the_technique_gives():
    pipeline = one(Words())
    assert isinstance(pipeline, Technique)
    for options in ({}, {"top_k": 1}, {"where": ROCKS}, {"top_k": 2, "where": {"page": {"$gte": 2}}}):
        assert pipeline.retrieve("granite beech", **options) == Words().retrieve("granite beech", **options)
    assert pipeline.retrieve("nothing of this") == []


def test_the_action_decides_which_step_runs_next():
    pipeline = rewriting()
    assert [stage.name for stage in pipeline.run("basalt").trace] == ["search"]
    assert [stage.name for stage in pipeline.run("stone").trace] == ["search", "rewrite", "wide"]


def test_the_first_query_stays_in_the_result_and_in_the_shared_mapping():
    result = rewriting().run("stone", where=ROCKS)
    assert (texts(result.documents), result.query, result.total_results) == (["granite and basalt"], "stone", 1)
    shared = {"query": "stone"}
    assert rewriting().flow.run(shared) == "found"
    assert (shared["original_query"], shared["query"]) == ("stone", "granite")
    assert len(shared["documents"]) == 2


def test_the_trace_has_a_stage_for_each_step_with_its_own_stages_below():
    class Staged(Words):
        def retrieve(self, query, **options):
            with stage("words"):
                return super().retrieve(query, **options)

    trace = PipelineBuilder("p").step("a", Rewrite("x", "oak"), on="b").step("b", Staged()).build().run("x").trace
    assert [(stage.name, stage.depth) for stage in trace] == [("a", 0), ("b", 0), ("words", 1)]
    assert trace[0].detail == {"pipeline": "p", "action": "default", "query": "oak"}
    assert trace[1].detail == {"pipeline": "p", "action": "found"}
    assert [stage.documents_out for stage in trace[:2]] == [0, 1]


def test_a_retrieve_inside_a_search_reports_to_that_search():
    with collect() as trace:
        rewriting().retrieve("stone")
    assert [stage.name for stage in trace.stages()] == ["search", "rewrite", "wide"]


def test_a_steps_top_k_is_asked_of_its_technique_and_the_runs_limits_what_comes_out():
    pipeline = one(Words({"top_k": 1}), top_k=3)
    assert len(pipeline.retrieve("granite beech basalt")) == 3
    assert len(pipeline.retrieve("granite beech basalt", top_k=2)) == 2
    assert len(pipeline.retrieve("granite beech basalt", top_k=4)) == 3


def test_a_steps_where_holds_together_with_the_runs():
    pipeline = one(Words(), where={"page": 2})
    assert texts(pipeline.retrieve("granite basalt")) == ["basalt and olivine", "beech and granite"]
    assert texts(pipeline.retrieve("granite basalt", where=ROCKS)) == ["basalt and olivine"]
    assert pipeline.retrieve("granite basalt", where={"page": 1}) == []


def test_a_pipeline_is_a_step_of_another():
    outer = PipelineBuilder("outer").step("inner", rewriting(), on={"found": "more", "empty": END})
    result = outer.step("more", Words(), top_k=1).build().run("stone oak")
    assert [(stage.name, stage.depth) for stage in result.trace] == [("inner", 0), ("search", 1), ("more", 0)]
    assert texts(result.documents) == ["oak and beech"]


def test_a_loop_runs_until_a_step_leads_out_of_it():
    pipeline = (
        PipelineBuilder()
        .step("count", Visits(3), on={"again": "count", "done": "search"})
        .step("search", Words())
        .build(max_steps=4)
    )
    assert [stage.name for stage in pipeline.run("oak").trace] == ["count", "count", "count", "search"]


def test_a_run_that_uses_up_its_steps_names_the_way_it_went():
    builder = PipelineBuilder("dizzy").step("a", Visits(100), on={"again": "b", "done": END})
    pipeline = builder.step("b", Words(), on="a").build(max_steps=5)
    with pytest.raises(PipelineError, match=r"'dizzy' did not end within max_steps 5 \(a → b → a → b → a\); increase"):
        pipeline.retrieve("oak")


def test_a_document_that_the_caller_may_not_see_never_gets_out():
    pipeline = PipelineBuilder("leaky").step("blind", Blind()).build()
    assert len(pipeline.retrieve("granite")) == 2
    with pytest.raises(
        PipelineError, match=r"step 'blind' of pipeline 'leaky' gave document '3', .* where .*'rocks'.* must hold to"
    ):
        pipeline.retrieve("granite", where=ROCKS)


@pytest.mark.parametrize("own", [None, {"page": 1}, {"collection": "trees"}, {"$or": [ROCKS, {"page": 2}]}])
def test_a_node_can_narrow_the_condition_but_never_lose_the_callers(own):
    pipeline = PipelineBuilder().step("set", Set(where=own), on="search").step("search", Words()).build()
    documents = pipeline.retrieve("granite beech basalt", where=ROCKS)
    both = ROCKS if own is None else {"$and": [ROCKS, own]}
    assert documents == Words().retrieve("granite beech basalt", where=both)


def test_a_node_that_changes_the_condition_in_place_lets_nothing_out_and_leaves_the_callers_alone():
    class Widen(Set):
        def post(self, shared, *_):
            shared["where"].clear()
            shared["where"]["page"] = {"$gt": 0}

    where = {"collection": "rocks"}
    pipeline = PipelineBuilder().step("widen", Widen(), on="search").step("search", Words()).build()
    with pytest.raises(PipelineError, match="step 'search' of pipeline 'pipeline' gave document '3'"):
        pipeline.retrieve("granite", where=where)
    assert where == {"collection": "rocks"}


@pytest.mark.parametrize("where", [None, {"collection": "rocks"}])
@pytest.mark.parametrize(("left", "kind"), [(["text"], "str"), ([None], "NoneType")])
def test_a_list_of_something_else_is_refused_with_the_step(left, kind, where):
    pipeline = PipelineBuilder("odd").step("set", Set(documents=left)).build()
    with pytest.raises(PipelineError, match=f"step 'set' of pipeline 'odd' left a 'list with a {kind}' as shared 'doc"):
        pipeline.retrieve("granite", where=where)


def test_documents_that_are_no_list_are_refused_with_the_step():
    pipeline = PipelineBuilder("odd").step("set", Set(documents=None)).build()
    with pytest.raises(PipelineError, match="step 'set' of pipeline 'odd' left a 'NoneType' as shared 'documents'"):
        pipeline.retrieve("oak")


def test_the_list_that_a_technique_keeps_is_not_handed_out():
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
    ("query", "options", "error"),
    [
        ("", {}, EmptyQueryError),
        (" \n", {}, EmptyQueryError),
        (None, {}, EmptyQueryError),
        ("oak", {"top_k": 0}, InvalidLimitError),
        ("oak", {"top_k": 10_000}, InvalidLimitError),
        ("oak", {"where": {}}, InvalidFilterError),
        ("oak", {"where": {"page": {"$near": 3}}}, InvalidFilterError),
    ],
)
def test_what_cannot_be_answered_is_refused_before_a_step_runs(query, options, error):
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
        assert all(pool.map(ask, range(400)))


def test_the_flow_is_a_node_of_any_pocketflow_flow():
    class Ask(pocketflow.Node):
        def post(self, shared, _prepared, _done):
            shared["query"] = "oak"

    ask, flow = Ask(), rewriting().flow
    assert isinstance(flow, pocketflow.Flow)
    ask >> flow
    shared = {}
    pocketflow.Flow(ask).run(shared)
    assert texts(shared["documents"]) == [SHELF[2][0]]
