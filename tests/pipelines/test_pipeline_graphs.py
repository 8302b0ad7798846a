"""Any graph: it is built exactly if nothing is wrong with it, and a run goes the way that the graph says."""

import pocketflow
from hypothesis import event, given, settings
from hypothesis import strategies as st

from ragistry.errors import PipelineError
from ragistry.pipelines import END, PipelineBuilder
from ragistry.trace import collect

NAMES = ["s0", "s1", "s2", "s3"]
TARGETS = st.sampled_from([*NAMES, END, END, END, "nowhere"])
ON = st.one_of(
    TARGETS,
    st.none(),
    st.fixed_dictionaries({"a": TARGETS, "b": TARGETS}),
    st.dictionaries(st.sampled_from("abc"), TARGETS, min_size=1),
)


class Scripted(pocketflow.Node):
    """Return what stands next in the run's script."""

    actions = frozenset("ab")

    def post(self, shared, _prepared, _done):
        return shared["script"].pop()


def after(on):
    """What follows each action, written out."""
    return on if isinstance(on, dict) else dict.fromkeys("ab", on or END)


def is_right(graph, max_steps):
    """The rules, in the plainest way to say them."""
    nexts = {name: set(after(on).values()) for name, on in graph.items()}
    if any(set(after(on)) != {"a", "b"} for on in graph.values()):
        return False
    if not set().union(*nexts.values()) <= {*graph, END}:
        return False
    far = {name: set(targets) for name, targets in nexts.items()}
    for _ in graph:
        for targets in far.values():
            targets |= set().union(*(far.get(target, set()) for target in targets))
    reached = {next(iter(graph))} | far[next(iter(graph))]
    loops = any(name in far[name] for name in graph)
    return set(graph) <= reached and all(END in targets for targets in far.values()) and (max_steps or not loops)


@settings(max_examples=100, deadline=None)
@given(
    ons=st.lists(ON, min_size=1, max_size=4),
    max_steps=st.sampled_from([None, 1, 3, 30]),
    script=st.lists(st.sampled_from("ab"), min_size=40, max_size=40),
)
def test_a_graph_is_built_if_it_is_right_and_a_run_follows_it(ons, max_steps, script):
    graph = dict(zip(NAMES, ons, strict=False))
    builder = PipelineBuilder()
    for name, on in graph.items():
        builder.step(name, Scripted(), on=on)
    try:
        flow = builder.build(max_steps=max_steps).flow
    except PipelineError:
        event("refused")
        assert not is_right(graph, max_steps)
        return
    event("built")
    assert is_right(graph, max_steps)
    expected, name, left = [], "s0", list(script)
    while name != END and len(expected) < (max_steps or 40):
        expected.append(name)
        name = after(graph[name])[left.pop()]
    with collect() as trace:
        try:
            flow.run({"query": "q", "script": list(script)})
            ended = True
        except PipelineError:
            ended = False
    assert [stage.name for stage in trace.stages()] == expected
    assert ended == (name == END)
