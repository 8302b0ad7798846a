"""What plain PocketFlow 0.0.3 does in silence, a pipeline refuses or does right."""

import asyncio
import time

import pocketflow
import pytest

from ragistry.errors import PipelineError
from ragistry.pipelines import END, PipelineBuilder
from tests.pipelines.parts import Rewrite, Set, Visits, Words


@pytest.mark.parametrize("action", ["agian", "", 3, ["again"]])
def test_undeclared_action_stops_the_run_and_names_step_and_node(action):
    pipeline = PipelineBuilder("p").step("set", Set(action), on="search").step("search", Words()).build()
    with pytest.raises(
        PipelineError, match=r"step 'set' of pipeline 'p' returned .* Set declares .*'again', 'default'"
    ):
        pipeline.retrieve("oak")


@pytest.mark.parametrize("retries", [0, -1, None, "3"])
def test_node_without_attempts_is_refused(retries):
    with pytest.raises(PipelineError, match=f"Rewrite has max_retries={retries!r}, .* 1 is one attempt"):
        PipelineBuilder().step("rewrite", Rewrite(max_retries=retries)).build()


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


class Remembering(pocketflow.Node):
    """Counts its visits on itself, where a copy forgets them, and in the shared mapping, which lasts."""

    actions = frozenset({"again", "done"})
    seen = 0

    def post(self, shared, _prepared, _done):
        self.seen += 1
        shared["seen"] = shared.get("seen", 0) + 1
        shared["on_node"] = self.seen
        return "done" if shared["seen"] >= 3 else "again"


def test_run_leaves_nothing_on_a_node():
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


@pytest.mark.parametrize("kind", [pocketflow.AsyncNode, pocketflow.AsyncBatchNode, pocketflow.AsyncParallelBatchNode])
def test_asynchronous_nodes_are_refused_when_a_pipeline_is_built(kind):
    node = type("Slow", (kind,), {"actions": frozenset({"default"})})()
    with pytest.raises(PipelineError, match="step 'slow': Slow is asynchronous"):
        PipelineBuilder().step("slow", node).build()


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
    with pytest.raises(PipelineError, match=r"'late' did not end within max_seconds 0.01 \(slow\); increase"):
        late.build(max_seconds=0.01).retrieve("oak")
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
