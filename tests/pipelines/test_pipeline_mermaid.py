"""The picture of a pipeline."""

from ragistry.pipelines import END, PipelineBuilder
from tests.pipelines.parts import Rewrite, Set, Words


def test_steps_by_name_and_actions_on_the_arrows():
    builder = PipelineBuilder().step("search", Words(), on={"found": END, "empty": "rewrite"})
    pipeline = builder.step("rewrite", Rewrite(), on="wide").step("wide", Words()).build()
    assert (
        pipeline.mermaid()
        == """\
flowchart TD
    start(["START"])
    s0["search"]
    s1["rewrite"]
    s2["wide"]
    done(["END"])
    start --> s0
    s0 -->|"found"| done
    s0 -->|"empty"| s1
    s1 -->|"default"| s2
    s2 -->|"empty"| done
    s2 -->|"found"| done
"""
    )


def test_names_that_are_markup_stay_names():
    builder = PipelineBuilder().step("end", Words(), on='a "b" <c>').step('a "b" <c>', Set())
    drawn = builder.build().mermaid()
    assert 's0["end"]' in drawn
    assert 's1["a #34;b#34; #60;c#62;"]' in drawn
