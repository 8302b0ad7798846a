"""Build a pipeline from named steps; it is checked as a whole before it runs."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import NamedTuple, Self

from pocketflow import BaseNode

from ragistry.errors import PipelineError
from ragistry.pipelines.flow import PipelineFlow, Step
from ragistry.pipelines.graph import GraphOutline, Transitions, check_graph, transitions
from ragistry.pipelines.node import TechniqueNode
from ragistry.pipelines.parts import actions_of, check_part
from ragistry.pipelines.pipeline import Pipeline
from ragistry.protocols import Technique
from ragistry.types import Where


class _Draft(NamedTuple):
    """A step that is not checked yet."""

    name: str
    part: Technique | BaseNode
    on: Transitions
    top_k: int | None
    where: Where | None

    def node(self) -> BaseNode:
        if isinstance(self.part, BaseNode):
            # PocketFlow stores transitions on the node: use a copy, so that the caller's node does not change
            return copy.copy(self.part)
        return TechniqueNode(self.part, top_k=self.top_k, where=self.where)


class PipelineBuilder:
    """Composes a pipeline in Python.

    A step is a named technique or PocketFlow node; the first one starts. ``on`` names the next step for every action
    that the step can return; a step without ``on`` ends the run. A technique returns ``found`` or ``empty``; the class
    of a node declares its own actions: ``actions = frozenset({"default"})``::

        pipeline = (
            PipelineBuilder("careful")
            .step("search", naive, on={"found": END, "empty": "wide"})
            .step("wide", hybrid, top_k=50)
            .build()
        )
    """

    def __init__(self, name: str = "pipeline") -> None:
        self.name = name
        self._drafts: list[_Draft] = []

    def step(
        self,
        name: str,
        part: Technique | BaseNode,
        *,
        on: Transitions = None,
        top_k: int | None = None,
        where: Where | None = None,
    ) -> Self:
        """Add a step; `build` reports its errors.

        Args:
            name: Name of the step.
            part: A technique or a PocketFlow node.
            on: The next step, or `END`, for each action, or one name for all actions.
            top_k: Number of results of a technique, instead of the run's.
            where: Condition of a technique, in addition to the run's.
        """
        self._drafts.append(_Draft(name, part, on, top_k, where))
        return self

    def build(
        self, *, start: str | None = None, max_steps: int | None = None, max_seconds: float | None = None
    ) -> Pipeline:
        """Build the pipeline from copies of the nodes.

        Args:
            start: The first step; by default the one that was added first.
            max_steps: Maximum number of steps of a run. A graph with a loop requires it.
            max_seconds: Maximum duration of a run, checked before each step; a running step is not interrupted.

        Raises:
            PipelineError: The pipeline has errors; all of them.
        """
        outlines = {draft.name: GraphOutline(actions_of(draft.part), draft.on) for draft in self._drafts}
        problems = [
            *_check_drafts(self._drafts),
            *(said for _, said in check_graph(outlines, start, max_steps)),
            *_check_budgets(max_steps, max_seconds),
        ]
        if problems:
            raise PipelineError("\n  ".join([f"pipeline {self.name!r} cannot be built:", *problems]))
        steps = {
            draft.name: Step(draft.name, draft.node(), transitions(outlines[draft.name])) for draft in self._drafts
        }
        return Pipeline(PipelineFlow(self.name, steps, start or self._drafts[0].name, max_steps, max_seconds))


def _check_drafts(drafts: Sequence[_Draft]) -> Iterator[str]:
    names: set[str] = set()
    step_of: dict[int, str] = {}
    for draft in drafts:
        if draft.name in names:
            yield f"two steps are called {draft.name!r}; rename one"
        names.add(draft.name)
        for problem in check_part(draft.part, draft.top_k, draft.where):
            yield f"step {draft.name!r}: {problem}"
        if isinstance(draft.part, BaseNode):
            other = step_of.setdefault(id(draft.part), draft.name)
            if other != draft.name:
                yield f"steps {other!r} and {draft.name!r} share one node; make a node for each step"


def _check_budgets(max_steps: int | None, max_seconds: float | None) -> Iterator[str]:
    if max_steps is not None and (isinstance(max_steps, bool) or not isinstance(max_steps, int) or max_steps < 1):
        yield f"max_steps must be a whole number from 1, got {max_steps!r}"
    if max_seconds is not None and not (
        isinstance(max_seconds, int | float) and max_seconds > 0 and isfinite(max_seconds)
    ):
        yield f"max_seconds must be a number above 0, got {max_seconds!r}"
