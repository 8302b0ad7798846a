"""Build a pipeline from named steps; it is checked as a whole before it runs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Container, Iterator, Mapping, Sequence, Set
from inspect import getattr_static, isroutine, signature
from math import isfinite
from typing import Any, NamedTuple, Self

from pocketflow import AsyncNode, BaseNode, Flow, Node

from ragistry.errors import ConfigError, PipelineError, QueryError
from ragistry.pipelines.flow import PipelineFlow, Step
from ragistry.pipelines.graph import GraphOutline, Transitions, check_graph, transitions
from ragistry.pipelines.node import TechniqueNode
from ragistry.pipelines.pipeline import Pipeline
from ragistry.plugins import resolve_object
from ragistry.protocols import Technique
from ragistry.techniques.classes import MODELS, RESOURCES, wanted_resources
from ragistry.types import Where
from ragistry.utils.limits import check_top_k
from ragistry.utils.where import normalise
from ragistry.utils.wording import listed


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


# --- The parts: techniques and PocketFlow nodes, and their checks ---


def actions_of(part: Any) -> frozenset[str] | None:
    """Return the actions of a technique (``found``, ``empty``) or of a node (declared); None if unknown."""
    return declared_actions(part) if isinstance(part, BaseNode) else TechniqueNode.actions


def declared_actions(node: BaseNode | type[BaseNode]) -> frozenset[str] | None:
    """Return the ``actions`` of a node or its class; None if it is not a set of names."""
    actions = getattr(node, "actions", None)
    if isinstance(actions, Set) and actions and all(isinstance(action, str) for action in actions):
        return frozenset(actions)
    return None


def node_class(spec: str) -> type[BaseNode]:
    """Return the class that ``"module:Class"`` names. Raises `ConfigError` if it is not a node class."""
    found = resolve_object(spec)
    if not isinstance(found, type) or not issubclass(found, BaseNode):
        raise ConfigError(f"{spec!r} is {found!r}; name a class that inherits from pocketflow.Node")
    return found


def node_wants(cls: type[BaseNode], given: Container[str]) -> dict[str, bool]:
    """Return the resources that the constructor of a node takes, and whether each is required.

    Args:
        cls: The class of the node. Its parameter ``name`` is the step's name; a node has no base.
        given: Arguments set by ``with``, which take precedence.
    """
    wanted = wanted_resources(cls, first=0)
    return {
        name: required
        for name, required in wanted.items()
        if name in RESOURCES and name not in ("base", "bases") and name not in given
    }


def check_class(cls: type[BaseNode], step: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Find the errors of a step's node before it is built: the key of the step, and a sentence."""
    silent = declared_actions(cls) is None and not _computes_actions(cls)
    if silent and cls.__init__ in (BaseNode.__init__, Node.__init__):  # its __init__ cannot set the actions either
        yield "node", _silent(cls)
    given = step.get("with") or {}
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        return  # the check of the field reports it
    wanted = node_wants(cls, given)
    try:
        signature(cls).bind(**given, **dict.fromkeys(wanted))
    except TypeError as error:
        yield "with", f"{cls.__name__} does not accept the arguments {listed(given)}: {error}"
    for kind in MODELS:
        if step.get(kind) is not None and kind not in wanted:
            yield kind, f"{cls.__name__} does not take a parameter {kind!r}; remove this key"


def _computes_actions(cls: type[BaseNode]) -> bool:
    """Return whether ``actions`` is a property, which only an instance can answer."""
    found = getattr_static(cls, "actions", None)
    return hasattr(type(found), "__get__") and not isroutine(found)


def _silent(cls: type[BaseNode]) -> str:
    return f"{cls.__name__} does not declare its actions; add to the class: actions = frozenset({{'default'}})"


def check_part(part: Any, top_k: int | None, where: Where | None) -> Iterator[str]:
    """Find the reasons why ``part`` cannot be a step with these settings."""
    if isinstance(part, BaseNode):
        yield from _check_node(part)
        if top_k is not None or where is not None:
            yield f"top_k and where are for techniques; set them on {type(part).__name__} itself"
        return
    if isinstance(part, type) or not callable(getattr(part, "retrieve", None)):
        yield f"{part!r} is neither a technique nor a PocketFlow node; pass an object with retrieve(), or a Node"
    settings: list[tuple[Callable[[Any], object], Any]] = [(check_top_k, top_k), (normalise, where)]
    for check, value in settings:
        try:
            if value is not None:
                check(value)
        except QueryError as error:
            yield str(error)


def _check_node(node: BaseNode) -> Iterator[str]:
    kind = type(node).__name__
    if actions_of(node) is None:
        yield _silent(type(node))
    if isinstance(node, AsyncNode):
        yield f"{kind} is asynchronous, but steps run in sequence in the caller's thread; make it a Node"
    elif isinstance(node, Flow):
        yield f"{kind} is a flow, whose steps cannot be checked; build it as a pipeline, which is a technique"
    elif not hasattr(node, "successors"):
        yield f"{kind}.__init__ does not call super().__init__()"
    else:
        if node.successors:
            yield f"{kind} has its own transitions, on {listed(node.successors)}; pass them as on="
        retries = getattr(node, "max_retries", 1)
        if not isinstance(retries, int) or retries < 1:
            yield f"{kind} has max_retries={retries!r}, so PocketFlow would never run it; set 1 or more"
