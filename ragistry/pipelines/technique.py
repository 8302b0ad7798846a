"""The technique ``pipeline``: a graph in techniques.yaml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from ragistry.config.parse import Configuration, parse_config
from ragistry.errors import ConfigError
from ragistry.pipelines.builder import PipelineBuilder
from ragistry.pipelines.config import PipelineConfig, StepConfig
from ragistry.pipelines.graph import GraphOutline, Transitions, check_graph
from ragistry.pipelines.node import TechniqueNode
from ragistry.pipelines.parts import check_class, declared_actions, node_class, node_wants
from ragistry.protocols import Technique
from ragistry.techniques.classes import MODELS, Complaint, Wanted, resources_for
from ragistry.types import Document, Where


class Techniques(Protocol):
    """The methods of the registry that a pipeline uses."""

    @property
    def resources(self) -> Mapping[str, Any]: ...

    def base(self, name: str) -> Technique: ...


class PipelineTechnique:
    """Techniques and nodes joined as a graph; the action that a step returns selects the next step::

    careful:
      use: pipeline
      steps:
        search: {technique: naive, on: {found: END, empty: wide}}
        wide: {technique: hybrid, top_k: 50}

    A node's constructor gets resources by parameter name, as a technique's does, and the arguments in ``with``.
    """

    Config = PipelineConfig
    asks_model = True  # a node may

    def __init__(self, config: Configuration, *, registry: Techniques, name: str = "pipeline") -> None:
        settings = parse_config(self.Config, config, type(self).__name__)
        builder = PipelineBuilder(name)
        for step_name, step in settings.steps.items():
            part = registry.base(step.technique) if step.technique is not None else _node(step_name, step, registry)
            builder.step(step_name, part, on=step.on, top_k=step.top_k, where=step.where)
        self.pipeline = builder.build(
            start=settings.start, max_steps=settings.max_steps, max_seconds=settings.max_seconds
        )

    @staticmethod
    def references(config: Mapping[str, Any]) -> list[str]:
        """List the techniques that the steps name, without duplicates; skip malformed steps."""
        names = [step.get("technique") for _, step in _steps(config)]
        return list(dict.fromkeys(name for name in names if isinstance(name, str)))

    @staticmethod
    def wanted(config: Mapping[str, Any]) -> list[Wanted]:
        """List the resources that the nodes of the steps take; skip malformed steps."""
        found = []
        for name, step in _steps(config):
            try:
                asked = node_wants(node_class(step["node"]), step.get("with") or {}) if "node" in step else {}
            except ConfigError:
                continue
            models = {kind: step[kind] for kind in MODELS if isinstance(step.get(kind), str)}
            found += [Wanted(("steps", name), resource, models.get(resource)) for resource in asked]
        return found

    @staticmethod
    def mistakes(config: Mapping[str, Any], _bases: Sequence[str]) -> Iterator[Complaint]:
        """Find the errors of the graph and of the nodes; skip malformed parts."""
        outlines: dict[str, GraphOutline] = {}
        for name, step in _steps(config):
            actions = TechniqueNode.actions if "technique" in step else None
            if isinstance(step.get("node"), str):
                try:
                    cls = node_class(step["node"])
                    actions = declared_actions(cls)
                    for key, said in check_class(cls, step):
                        yield ("steps", name, key), said
                except ConfigError as error:
                    yield ("steps", name, "node"), str(error)
            outlines[name] = GraphOutline(actions, _readable(step.get("on")))
        if isinstance(config.get("steps"), Mapping):
            start = config.get("start")
            yield from check_graph(outlines, start if isinstance(start, str) else None, config.get("max_steps"))

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        return self.pipeline.retrieve(query, top_k=top_k, where=where)


def _steps(config: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """List the steps of an unchecked configuration; a malformed step is empty."""
    steps = config.get("steps")
    found = steps.items() if isinstance(steps, Mapping) else []
    return [(str(name), step if isinstance(step, Mapping) else {}) for name, step in found]


def _readable(on: Any) -> Transitions:
    if isinstance(on, Mapping):
        return {action: target for action, target in on.items() if isinstance(action, str) and isinstance(target, str)}
    return on if isinstance(on, str) else None


def _node(name: str, step: StepConfig, registry: Techniques) -> Any:
    cls = node_class(str(step.node))
    own, wanted = {"name": name, "registry": registry}, node_wants(cls, step.with_)
    given = resources_for(f"node {step.node!r}", wanted, own, registry.resources, step.models)
    try:
        return cls(**step.with_, **given)
    except TypeError as error:
        raise ConfigError(f"node {step.node!r} does not accept {step.with_!r}: {error}") from error
