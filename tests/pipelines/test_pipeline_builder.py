"""What `PipelineBuilder` takes, what it refuses, and that it says all of it at once."""

import copy
from typing import Any

import pocketflow
import pytest

from ragistry.errors import PipelineError
from ragistry.pipelines import END, PipelineBuilder, TechniqueNode
from tests.messages import refused
from tests.pipelines.parts import Rewrite, Set, Visits, Words, texts


def build(*steps: tuple[Any, ...], **options: Any) -> Any:
    """Build a pipeline of steps: name, part, and what follows it."""
    builder = PipelineBuilder()
    for name, part, *on in steps:
        builder.step(name, part, on=on[0] if on else None)
    return builder.build(**options)


def test_run_starts_at_the_first_step_or_at_the_named_one():
    pipeline = build(("last", Words()), ("first", Rewrite("x", "oak"), "last"), start="first")
    assert texts(pipeline.retrieve("x")) == ["oak and beech"]
    assert "start --> s1" in pipeline.mermaid()


def test_technique_node_with_its_own_settings_is_a_step():
    pipeline = build(("search", TechniqueNode(Words(), top_k=1, where={"page": 2})))
    assert texts(pipeline.retrieve("granite basalt")) == ["basalt and olivine"]


def test_one_technique_serves_several_steps():
    words = Words()
    builder = PipelineBuilder().step("narrow", words, on={"found": END, "empty": "wide"}, where={"page": 1})
    assert texts(builder.step("wide", words).build().retrieve("olivine")) == ["basalt and olivine"]


def test_building_leaves_the_callers_nodes_and_earlier_pipelines_as_they_are():
    rewrite, search = Rewrite("x", "oak"), TechniqueNode(Words())
    before = copy.deepcopy([vars(rewrite) | {"technique": None}, vars(search) | {"technique": None}])
    builder = PipelineBuilder().step("rewrite", rewrite, on="search").step("search", search)
    one, two = builder.build(), builder.build(max_steps=1)
    assert [vars(rewrite) | {"technique": None}, vars(search) | {"technique": None}] == before
    with refused(PipelineError, 1):
        two.retrieve("x")
    with refused(PipelineError, "'third'"):
        builder.step("third", Words()).build()
    assert len(one.retrieve("x")) == 1


def test_wiring_is_pocketflows_own():
    steps = build(("a", Words(), {"found": END, "empty": "b"}), ("b", Words())).flow.steps
    assert steps["a"].node.successors == {"empty": steps["b"].node}
    assert steps["b"].node.successors == {}


def test_actions_may_be_those_of_one_node():
    class Branch(pocketflow.Node):
        def __init__(self, *labels):
            super().__init__()
            self.actions = frozenset(labels)

        def post(self, shared, _prepared, _done):
            return shared["query"]

    pipeline = build(("branch", Branch("oak", "beech"), {"oak": "search", "beech": END}), ("search", Words()))
    assert (len(pipeline.retrieve("oak")), len(pipeline.retrieve("beech"))) == (1, 0)


class Bare(pocketflow.Node):
    actions = frozenset({"default"})

    def __init__(self):
        pass


def odd(actions: Any) -> pocketflow.Node:
    return type("Odd", (pocketflow.Node,), {"actions": actions})()


NODE, WIRED = Rewrite(), Rewrite()
WIRED.next(Rewrite(), "more")
MISTAKES: dict[str, list[tuple[Any, ...]]] = {
    "misspelled target": [("search", Words(), {"found": "wide", "empty": "wid"}), ("wide", Words())],
    "misspelled end": [("search", Words(), {"found": "wide", "empty": "end"}), ("wide", Words())],
    "unknown target": [("search", Words(), {"found": "wide", "empty": "zzz"}), ("wide", Words())],
    "unknown target of every action": [("a", Words(), "b")],
    "misspelled action": [("search", Words(), {"found": END, "emtpy": END})],
    "unknown action": [("set", Set(), {"default": END, "again": END, "xyz": END})],
    "steps out of reach": [("a", Words()), ("b", Words(), "c"), ("c", Words())],
    "loop": [("a", Words(), {"found": END, "empty": "b"}), ("b", Words(), "c"), ("c", Words(), "a")],
    "names": [("a", Words()), ("a", Words()), (END, Words()), ("", Words())],
    "one node in two steps": [("a", NODE, "b"), ("b", NODE)],
    "node with transitions": [("a", WIRED)],
    "node without its constructor": [("a", Bare())],
    "whole flow": [("a", build(("a", Words())).flow)],
    "node without actions": [("x", pocketflow.Node())],
    **{f"attempts {retries!r}": [("x", Rewrite(max_retries=retries))] for retries in (0, -1, None, "3")},
    **{
        f"asynchronous {kind.__name__}": [("x", type("Slow", (kind,), {"actions": frozenset({"default"})})())]
        for kind in (pocketflow.AsyncNode, pocketflow.AsyncBatchNode, pocketflow.AsyncParallelBatchNode)
    },
    **{f"no part {part!r}": [("x", part)] for part in (None, 3, "naive", Words, Rewrite)},
    **{f"actions {value!r}": [("x", odd(value))] for value in ("default", frozenset(), ["default"], {1, 2}, None)},
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_in_a_graph_is_named_with_its_steps(mistake):
    with refused(PipelineError) as caught:
        build(*MISTAKES[mistake])
    assert len(set(str(caught.value).splitlines())) == len(str(caught.value).splitlines())


@pytest.mark.parametrize(
    "options",
    [
        *({"max_steps": value} for value in (0, -1, 2.5, True, "3")),
        *({"max_seconds": value} for value in (0, -1.0, float("inf"), float("nan"), "3")),
    ],
)
def test_budgets_of_steps_and_time_are_checked(options):
    with refused(PipelineError, *options, *map(repr, options.values())):
        build(("a", Words()), **options)


def test_steps_that_never_end_are_refused_even_with_a_budget():
    with refused(PipelineError, "'b', 'c'"):
        build(("a", Words(), {"found": END, "empty": "b"}), ("b", Words(), "c"), ("c", Words(), "b"), max_steps=9)


def test_settings_of_a_step_are_checked():
    with refused(PipelineError, "'a'", "'b'", "Visits"):
        PipelineBuilder().step("a", Words(), top_k=0, where={}).step("b", Visits(), top_k=3).build()


def test_everything_is_reported_at_once_one_problem_a_line():
    builder = PipelineBuilder("bad").step("a", Words(), on={"found": "x"}).step("b", 3).step("b", Words(), top_k=0)
    with refused(PipelineError, "'bad'") as caught:
        builder.build(start="q", max_seconds=0)
    assert len(set(str(caught.value).splitlines())) == len(str(caught.value).splitlines()) == 8
