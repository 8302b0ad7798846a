"""The technique ``pipeline``: a graph in techniques.yaml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Protocol, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from ragistry.config.numbers import NumberOrNone, WholeOrNone
from ragistry.config.problems import Configuration, parse_config
from ragistry.errors import ConfigError
from ragistry.pipelines.builder import PipelineBuilder, check_class, declared_actions, node_class, node_wants
from ragistry.pipelines.graph import GraphOutline, Transitions, check_graph
from ragistry.pipelines.node import TechniqueNode
from ragistry.protocols import Technique
from ragistry.techniques.classes import MODELS, Complaint, Wanted, resources_for
from ragistry.types import TOP_K_LIMIT, Document, Where
from ragistry.utils.where import normalise


def _transitions(value: Any, handler: ValidatorFunctionWrapHandler) -> Transitions:
    """Report one error for a value of neither form, instead of one for each form."""
    try:
        checked: Transitions = handler(value)
    except ValidationError as error:
        raise ValueError(f"write a step's name, or a mapping of actions to steps' names, got {value!r}") from error
    return checked


class StepConfig(BaseModel):
    """One step: a technique by its name, or a node by its class."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    technique: str | None = Field(default=None, description="the name of a technique")
    node: str | None = Field(default=None, description="the class of a PocketFlow node: 'module:Class'")
    with_: dict[str, Any] = Field(default_factory=dict, alias="with", description="arguments of the node's class")
    generator: str | None = Field(default=None, description="the generator of the node, by its name in models.yaml")
    reranker: str | None = Field(default=None, description="the reranker of the node, by its name in models.yaml")
    on: Annotated[dict[str, str] | str | None, WrapValidator(_transitions)] = Field(
        default=None, description="the next step, or END, for each action; default: END"
    )
    top_k: WholeOrNone = Field(
        default=None, ge=1, le=TOP_K_LIMIT, description="the number of results from the technique, instead of the run's"
    )
    where: Annotated[dict[str, Any], AfterValidator(normalise)] | None = Field(
        default=None, description="a condition on metadata, in addition to the run's"
    )

    @model_validator(mode="after")
    def _one_part(self) -> Self:
        if (self.technique is None) == (self.node is None):
            raise ValueError("a step is a technique or a node; write one of `technique: name`, `node: module:Class`")
        if self.node is not None and (self.top_k is not None or self.where is not None):
            raise ValueError("top_k and where are for a technique; pass them to the node in `with`")
        if self.technique is not None and (self.with_ or self.generator or self.reranker):
            raise ValueError("with, generator and reranker are for a node; configure the technique in its own entry")
        return self

    @property
    def models(self) -> dict[str, str]:
        """The generator and the reranker that the step names, by kind."""
        named = {"generator": self.generator, "reranker": self.reranker}
        return {kind: name for kind, name in named.items() if name is not None}


class PipelineConfig(BaseModel):
    """The settings of a pipeline: its steps by name, and the limits of a run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    steps: dict[str, StepConfig] = Field(description="the steps by name")
    start: str | None = Field(default=None, description="the step that runs first; default: the first one")
    max_steps: WholeOrNone = Field(
        default=None, ge=1, description="maximum number of steps of a run; required for a loop"
    )
    max_seconds: NumberOrNone = Field(
        default=None, gt=0, allow_inf_nan=False, description="maximum seconds of a run, checked before each step"
    )


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
