"""What a pipeline costs over the bare technique: ``python benchmarks/pipeline_overhead.py [--quick]``.

The technique does nothing but return ten documents that are there already, so that what is left is the pipeline.
All sides are measured in turn within one run; a figure is the median of the rounds.
"""

from __future__ import annotations

import argparse
import statistics
import timeit
from collections.abc import Callable
from typing import Any

from pocketflow import Flow, Node

from ragistry.pipelines import END, Pipeline, PipelineBuilder
from ragistry.types import Document

BAR_US = 20.0


class Ready:
    """A technique whose answer is there already."""

    def __init__(self) -> None:
        self.documents = [Document(f"text {i}", {"page": i}, 1.0 - i / 100, str(i)) for i in range(10)]

    def retrieve(self, _query: str, *, top_k: int | None = None, where: Any = None) -> list[Document]:  # noqa: ARG002
        return self.documents


class Empty(Node):
    """A step that does nothing."""

    actions = frozenset({"default"})


def three_steps() -> Pipeline:
    return (
        PipelineBuilder("three")
        .step("first", Empty(), on="second")
        .step("second", Empty(), on="search")
        .step("search", Ready(), on={"found": END, "empty": END})
        .build()
    )


def bare_flow() -> Flow:
    """Three empty nodes on PocketFlow as it is."""
    first = Empty()
    first.next(Empty()).next(Empty())
    return Flow(first)


def measure(sides: dict[str, Callable[[], object]], rounds: int, calls: int) -> dict[str, float]:
    """Microseconds a call, by side."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, call in sides.items():
            times[name].append(timeit.timeit(call, number=calls) / calls * 1e6)
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rounds")
    rounds = 5 if parser.parse_args().quick else 50
    technique, where = Ready(), {"page": {"$lt": 100}}
    one = PipelineBuilder("one").step("search", technique).build()
    three, flow = three_steps(), bare_flow()
    us = measure(
        {
            "technique, bare": lambda: technique.retrieve("query", top_k=10),
            "pipeline of one step, retrieve": lambda: one.retrieve("query", top_k=10),
            "the same with where": lambda: one.retrieve("query", top_k=10, where=where),
            "the same, run (with its trace)": lambda: one.run("query", top_k=10),
            "pipeline of three steps, retrieve": lambda: three.retrieve("query", top_k=10),
            "PocketFlow alone, three empty nodes": lambda: flow.run({}),
        },
        rounds,
        calls=2_000,
    )
    bare, single = us["technique, bare"], us["pipeline of one step, retrieve"]
    print("| | µs a call | over the bare technique |\n|---|--:|--:|")
    for name, value in us.items():
        print(f"| {name} | {value:.2f} | {value - bare:.2f} |")
    print(f"\nOne step over the bare technique: {single - bare:.1f} µs (bar: under {BAR_US:.0f} µs)")


if __name__ == "__main__":
    main()
