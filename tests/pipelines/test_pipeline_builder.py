"""What `PipelineBuilder` takes, what it refuses, and that it says all of it at once."""

import copy

import pocketflow
import pytest

from ragistry.errors import PipelineError
from ragistry.pipelines import END, PipelineBuilder, TechniqueNode
from tests.pipelines.parts import Rewrite, Set, Visits, Words, texts


def refused(builder, **options):
    with pytest.raises(PipelineError) as caught:
        builder.build(**options)
    return str(caught.value)


def test_one_name_stands_for_every_action():
    builder = PipelineBuilder().step("first", Words(), on="second").step("second", Words(), top_k=1)
    pipeline = builder.build()
    for query in ("oak", "nothing"):
        assert [stage.name for stage in pipeline.run(query).trace] == ["first", "second"]


def test_a_run_starts_at_the_first_step_or_where_it_is_told():
    builder = PipelineBuilder().step("last", Words()).step("first", Rewrite("x", "oak"), on="last")
    assert texts(builder.build(start="first").retrieve("x")) == ["oak and beech"]


def test_a_technique_node_with_its_own_settings_is_a_step():
    pipeline = PipelineBuilder().step("search", TechniqueNode(Words(), top_k=1, where={"page": 2})).build()
    assert texts(pipeline.retrieve("granite basalt")) == ["basalt and olivine"]


def test_one_technique_serves_several_steps():
    words = Words()
    builder = PipelineBuilder().step("narrow", words, on={"found": END, "empty": "wide"}, where={"page": 1})
    pipeline = builder.step("wide", words).build()
    assert texts(pipeline.retrieve("olivine")) == ["basalt and olivine"]


def test_building_leaves_the_callers_nodes_as_they_are():
    rewrite, search = Rewrite("x", "oak"), TechniqueNode(Words())
    before = copy.deepcopy([vars(rewrite) | {"technique": None}, vars(search) | {"technique": None}])
    builder = PipelineBuilder().step("rewrite", rewrite, on="search").step("search", search)
    one, two = builder.build(), builder.build(max_steps=1)
    assert [vars(rewrite) | {"technique": None}, vars(search) | {"technique": None}] == before
    assert len(one.retrieve("x")) == 1
    with pytest.raises(PipelineError, match="max_steps 1"):
        two.retrieve("x")


def test_a_builder_that_goes_on_leaves_what_it_has_built_as_it_is():
    builder = PipelineBuilder().step("first", Words(), on="second").step("second", Words())
    pipeline = builder.build()
    assert "third" in refused(builder.step("third", Words()))
    assert len(pipeline.retrieve("oak")) == 1


def test_the_wiring_is_pocketflows_own():
    steps = PipelineBuilder().step("a", Words(), on={"found": END, "empty": "b"}).step("b", Words()).build().flow.steps
    assert steps["a"].node.successors == {"empty": steps["b"].node}
    assert steps["b"].node.successors == {}


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("wid", "step 'search' leads to 'wid' on 'empty', which is not a step; did you mean 'wide'?"),
        ("end", "step 'search' leads to 'end' on 'empty', which is not a step; did you mean 'END'?"),
        ("zzz", "step 'search' leads to 'zzz' on 'empty', which is not a step; there are 'END', 'search', 'wide'"),
    ],
)
def test_a_transition_to_an_unknown_step(target, said):
    builder = PipelineBuilder().step("search", Words(), on={"found": "wide", "empty": target}).step("wide", Words())
    assert said in refused(builder).splitlines()[1]


def test_one_name_for_every_action_that_is_unknown_is_told_once():
    assert refused(PipelineBuilder().step("a", Words(), on="b")).splitlines()[1:] == [
        "  step 'a' leads to 'b', which is not a step; there are 'END', 'a'"
    ]


def test_an_action_that_is_never_returned():
    message = refused(PipelineBuilder().step("search", Words(), on={"found": END, "emtpy": END}))
    assert "step 'search' never returns 'emtpy'; did you mean 'empty'?" in message
    assert "step 'search' leads nowhere on 'empty'; give a step's name or 'END'" in message
    message = refused(PipelineBuilder().step("set", Set(), on={"default": END, "again": END, "xyz": END}))
    assert "step 'set' never returns 'xyz'; it returns 'again', 'default'" in message


def test_a_step_that_nothing_leads_to():
    message = refused(PipelineBuilder().step("a", Words()).step("b", Words(), on="c").step("c", Words()))
    assert message.splitlines()[1:] == [
        "  step 'b' can never be reached from 'a'",
        "  step 'c' can never be reached from 'a'",
    ]


def test_a_loop_names_its_steps_in_the_order_of_the_run():
    builder = PipelineBuilder().step("a", Words(), on={"found": END, "empty": "b"}).step("b", Words(), on="c")
    assert refused(builder.step("c", Words(), on="a")).splitlines()[1:] == [
        "  steps a → b → c → a form a loop; say how many steps a run may take: build(max_steps=…), in YAML max_steps: …"
    ]


def test_steps_that_never_come_to_an_end_even_with_a_budget():
    builder = PipelineBuilder().step("a", Words(), on={"found": END, "empty": "b"})
    message = refused(builder.step("b", Words(), on="c").step("c", Words(), on="b"), max_steps=9)
    assert message.splitlines()[1:] == ["  no way leads to 'END' from 'b', 'c'"]


def test_two_steps_of_one_name_and_a_name_that_is_taken():
    message = refused(PipelineBuilder().step("a", Words()).step("a", Words()).step(END, Words()).step("", Words()))
    assert "two steps are called 'a'; give each its own name" in message
    assert "a step cannot be called 'END'" in message
    assert "a step cannot be called ''" in message


@pytest.mark.parametrize("part", [None, 3, "naive", Words, Rewrite, print])
def test_what_is_neither_a_technique_nor_a_node(part):
    message = refused(PipelineBuilder().step("x", part))
    assert f"step 'x': {part!r} is neither a technique nor a PocketFlow node" in message


def test_a_node_that_does_not_say_what_it_returns():
    said = "Node does not say what it returns; write in its class: actions = frozenset({'default'})"
    assert said in refused(PipelineBuilder().step("x", pocketflow.Node()))


@pytest.mark.parametrize("actions", ["default", frozenset(), ["default"], {1, 2}, None])
def test_actions_that_are_no_set_of_names(actions):
    node = type("Odd", (pocketflow.Node,), {"actions": actions})()
    assert "Odd does not say what it returns" in refused(PipelineBuilder().step("x", node))


def test_actions_may_be_those_of_one_node():
    class Branch(pocketflow.Node):
        def __init__(self, *labels):
            super().__init__()
            self.actions = frozenset(labels)

        def post(self, shared, _prepared, _done):
            return shared["query"]

    builder = PipelineBuilder().step("branch", Branch("oak", "beech"), on={"oak": "search", "beech": END})
    pipeline = builder.step("search", Words()).build()
    assert (len(pipeline.retrieve("oak")), len(pipeline.retrieve("beech"))) == (1, 0)


def test_one_node_in_two_steps():
    node = Rewrite()
    message = refused(PipelineBuilder().step("a", node, on="b").step("b", node))
    assert "steps 'a' and 'b' share one node; make one for each" in message


def test_a_node_that_is_wired_already():
    node = Rewrite()
    node.next(Rewrite(), "more")
    assert "Rewrite has transitions of its own, on 'more'; say them with on=" in refused(
        PipelineBuilder().step("a", node)
    )


def test_a_node_whose_constructor_leaves_out_pocketflows():
    class Bare(pocketflow.Node):
        actions = frozenset({"default"})

        def __init__(self):
            pass

    assert "Bare.__init__ does not call super().__init__()" in refused(PipelineBuilder().step("a", Bare()))


def test_a_whole_flow_is_refused_and_told_what_to_be():
    flow = PipelineBuilder().step("a", Words()).build().flow
    assert "PipelineFlow is a whole flow" in refused(PipelineBuilder().step("inner", flow))


def test_settings_of_a_step():
    message = refused(PipelineBuilder().step("a", Words(), top_k=0, where={}).step("b", Visits(), top_k=3))
    assert "step 'a': top_k must be a whole number from 1 to 1,000, got 0" in message
    assert "step 'a': where is empty" in message
    assert "step 'b': top_k and where are for techniques; give them to Visits itself" in message


@pytest.mark.parametrize("budget", [{"max_steps": value} for value in (0, -1, 2.5, True, "3")])
def test_budgets_of_steps(budget):
    message = refused(PipelineBuilder().step("a", Words()), **budget)
    assert f"max_steps must be a whole number from 1, got {budget['max_steps']!r}" in message


@pytest.mark.parametrize("seconds", [0, -1.0, float("inf"), float("nan"), "3"])
def test_budgets_of_time(seconds):
    message = refused(PipelineBuilder().step("a", Words()), max_seconds=seconds)
    assert f"max_seconds must be a number above 0, got {seconds!r}" in message


def test_everything_is_told_at_once_one_problem_a_line():
    builder = PipelineBuilder("bad").step("a", Words(), on={"found": "x"}).step("b", 3).step("b", Words(), top_k=0)
    lines = refused(builder, start="q", max_seconds=0).splitlines()
    assert lines[0] == "pipeline 'bad' cannot be built:"
    assert len(lines) == len(set(lines)) == 8
