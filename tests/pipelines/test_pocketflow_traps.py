"""Each trap of PocketFlow 0.0.3: that it is there, and that a pipeline does not fall into it."""

import asyncio
import time

import pocketflow
import pytest

from ragistry.errors import PipelineError
from ragistry.pipelines import END, PipelineBuilder
from tests.pipelines.parts import Rewrite, Set, Visits, Words


def test_an_action_without_a_successor_ends_a_flow_with_a_warning_at_most():
    first = Set("agian")
    first.next(Set(reached=True), "again")
    shared = {}
    with pytest.warns(UserWarning, match="Flow ends: 'agian' not found"):
        pocketflow.Flow(first).run(shared)
    assert "reached" not in shared


def test_an_action_that_leads_nowhere_is_refused_when_a_pipeline_is_built():
    builder = PipelineBuilder().step("set", Set(), on={"default": "search"}).step("search", Words())
    with pytest.raises(PipelineError, match="step 'set' leads nowhere on 'again'; give a step's name or 'END'"):
        builder.build()


@pytest.mark.parametrize("action", ["agian", "", 3, ["again"]])
def test_an_action_that_is_not_declared_stops_a_run_with_the_step_and_the_node(action):
    pipeline = PipelineBuilder("p").step("set", Set(action), on="search").step("search", Words()).build()
    with pytest.raises(
        PipelineError, match=r"step 'set' of pipeline 'p' returned .* Set declares .*'again', 'default'"
    ):
        pipeline.retrieve("oak")


def test_the_last_step_must_keep_to_its_actions_too():
    with pytest.raises(PipelineError, match="returned 'agian'.*did you mean 'again'"):
        PipelineBuilder().step("set", Set("agian")).build().retrieve("oak")


def test_no_retries_means_that_a_node_never_runs():
    shared = {"query": "stone"}
    Rewrite("stone", "granite", max_retries=0).run(shared)
    assert shared["query"] is None


@pytest.mark.parametrize("retries", [0, -1, None, "3"])
def test_a_node_that_would_never_run_is_refused(retries):
    with pytest.raises(PipelineError, match=f"Rewrite has max_retries={retries!r}, .* 1 is one attempt"):
        PipelineBuilder().step("rewrite", Rewrite(max_retries=retries)).build()


class ByParams(Set):
    def prep(self, shared):
        shared["query"] = self.params.get("word", "nothing")


def test_a_flow_wipes_the_params_of_its_nodes():
    node, shared = ByParams(), {}
    node.set_params({"word": "oak"})
    pocketflow.Flow(node).run(shared)
    assert shared["query"] == "nothing"


def test_a_pipeline_keeps_the_params_of_its_nodes_below_those_of_the_flow():
    node, shared = ByParams(), {"query": "x"}
    node.set_params({"word": "oak"})
    flow = PipelineBuilder().step("params", node).build().flow
    flow.run(shared)
    assert shared["query"] == "oak"
    flow.set_params({"word": "beech"})
    flow.run(shared)
    assert shared["query"] == "beech"


class Remembering(pocketflow.Node):
    """Counts its visits on itself, where a copy forgets them, and in the shared mapping, which lasts."""

    actions = frozenset({"again", "done"})
    seen = 0

    def post(self, shared, _prepared, _done):
        self.seen += 1
        shared["seen"] = shared.get("seen", 0) + 1
        shared["on_node"] = self.seen
        return "done" if shared["seen"] >= 3 else "again"


def test_a_flow_forgets_what_a_node_sets_on_itself():
    node, shared = Remembering(), {}
    node.next(node, "again")
    with pytest.warns(UserWarning, match="Flow ends: 'done' not found"):
        pocketflow.Flow(node).run(shared)
    assert (shared["seen"], shared["on_node"], node.seen) == (3, 1, 0)


def test_what_must_last_is_in_the_shared_mapping_and_no_run_leaves_anything_on_a_node():
    node = Remembering()
    pipeline = PipelineBuilder().step("count", node, on={"again": "count", "done": "search"}).step("search", Words())
    flow = pipeline.build(max_steps=4).flow
    before = {name: dict(vars(step.node)) for name, step in flow.steps.items()}
    for _ in range(2):
        shared = {"query": "oak"}
        flow.run(shared)
        assert shared["seen"] == 3
    assert {name: vars(step.node) for name, step in flow.steps.items()} == before


def test_a_run_sets_no_attribute_on_the_flow():
    flow = PipelineBuilder().step("search", Words()).build().flow
    before = dict(vars(flow))
    flow.run({"query": "oak", "where": {"page": 1}})
    assert vars(flow) == before


def test_a_flow_refuses_an_asynchronous_node_only_when_it_comes_to_it():
    first, second = Set(reached=True), pocketflow.AsyncNode()
    first.next(second)
    shared = {}
    with pytest.raises(RuntimeError, match="Use run_async"):
        pocketflow.Flow(first).run(shared)
    assert shared["reached"]


@pytest.mark.parametrize("kind", [pocketflow.AsyncNode, pocketflow.AsyncBatchNode, pocketflow.AsyncParallelBatchNode])
def test_asynchronous_nodes_are_refused_when_a_pipeline_is_built(kind):
    node = type("Slow", (kind,), {"actions": frozenset({"default"})})()
    with pytest.raises(PipelineError, match="step 'slow': Slow is asynchronous"):
        PipelineBuilder().step("slow", node).build()


def test_items_of_a_batch_are_tried_again_each_on_its_own_account():
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


def test_a_flow_runs_a_loop_for_ever():
    class Loop(Set):
        def post(self, shared, *_):
            shared["visits"] += 1
            if shared["visits"] == 2000:
                raise StopIteration("nothing else ends it")

    node, shared = Loop(), {"visits": 0}
    node.next(node)
    with pytest.raises(StopIteration):
        pocketflow.Flow(node).run(shared)


def test_a_loop_without_a_budget_is_refused_and_one_with_a_budget_ends():
    builder = PipelineBuilder("round").step("count", Visits(2000), on={"again": "count", "done": END})
    with pytest.raises(PipelineError, match="steps count → count form a loop; say how many steps"):
        builder.build()
    with pytest.raises(PipelineError, match="did not end within max_steps 7"):
        builder.build(max_steps=7).retrieve("oak")


def test_a_run_over_its_time_stops_before_the_next_step():
    class Slow(Set):
        def exec(self, _prepared):
            time.sleep(0.03)

    late = PipelineBuilder("late").step("slow", Slow(), on="search").step("search", Words())
    with pytest.raises(PipelineError, match=r"'late' did not end within max_seconds 0.01 \(slow\); raise"):
        late.build(max_seconds=0.01).retrieve("oak")
    assert late.build(max_seconds=30).retrieve("oak")


def test_the_answer_of_a_last_step_is_given_even_if_it_came_late():
    class Late(Words):
        def retrieve(self, query, **options):
            time.sleep(0.03)
            return super().retrieve(query, **options)

    assert PipelineBuilder().step("late", Late()).build(max_seconds=0.01).retrieve("oak")


def test_a_node_that_counts_as_false_ends_a_flow_in_silence_and_no_pipeline():
    class Sized(Set):
        def __len__(self):
            return 0

    first, shared = Set(), {"query": "oak"}
    first.next(Sized(reached=True))
    with pytest.warns(UserWarning, match="Flow ends"):
        pocketflow.Flow(first).run(shared)
    assert "reached" not in shared
    PipelineBuilder().step("first", Set(), on="sized").step("sized", Sized(reached=True)).build().flow.run(shared)
    assert shared["reached"]


def test_a_typed_node_fails_when_it_is_defined():
    with pytest.raises(TypeError, match="not subscriptable"):
        pocketflow.Node[str, str, str]


def test_asyncio_is_not_needed_to_run_a_pipeline_inside_a_running_loop():
    async def ask():
        return PipelineBuilder().step("search", Words()).build().retrieve("oak")

    assert len(asyncio.run(ask())) == 1
