"""Stages report to the retrieval that they are part of, and to no other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from ragistry import trace


def test_nested_stages_stand_in_the_order_in_which_they_began() -> None:
    with trace.collect() as recorded, trace.stage("outer") as outer:
        trace.model_call(tokens=7)
        with trace.stage("inner", rule="largest margin"):
            trace.model_call()
            trace.degraded("no reranker")
        outer.documents_out = 3
    first, second = recorded.stages()
    assert (first.name, first.depth, first.model_calls, first.tokens, first.documents_out) == ("outer", 0, 1, 7, 3)
    assert (second.name, second.depth, second.model_calls, second.degraded) == ("inner", 1, 1, "no reranker")
    assert second.detail == {"rule": "largest margin"}
    assert first.ms >= second.ms >= 0


def test_nothing_is_recorded_outside_a_retrieval() -> None:
    with trace.stage("alone") as stage:
        trace.model_call(tokens=5)
        trace.degraded("nobody reads this")
    assert (stage.model_calls, stage.degraded) == (0, "")


def test_a_stage_that_raises_is_recorded() -> None:
    with trace.collect() as recorded:
        try:
            with trace.stage("fails"):
                raise ValueError
        except ValueError:
            trace.model_call()  # belongs to no stage
    assert [(stage.name, stage.model_calls) for stage in recorded.stages()] == [("fails", 0)]


def test_two_threads_do_not_see_each_other() -> None:
    def search(name: str) -> list[str]:
        with trace.collect() as recorded:
            for _ in range(200):
                with trace.stage(name):
                    trace.model_call()
        return [stage.name for stage in recorded.stages()]

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(search, ["a", "b"])) == [["a"] * 200, ["b"] * 200]
