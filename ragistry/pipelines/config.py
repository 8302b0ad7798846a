"""The configuration of a pipeline in techniques.yaml, checked as a whole when the file is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from ragistry.config.numbers import NumberOrNone, WholeOrNone
from ragistry.config.problems import explain
from ragistry.errors import ConfigError
from ragistry.pipelines.graph import GraphOutline, Problem, Transitions, check_graph
from ragistry.pipelines.node import TechniqueNode
from ragistry.pipelines.parts import check_class, declared_actions, node_class
from ragistry.types import TOP_K_LIMIT
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

    @model_validator(mode="wrap")
    @classmethod
    def _all_at_once(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Report the errors of the fields and of the graph together."""
        problems = list(_check_outline(data))
        try:
            checked = handler(data)
        except ValidationError as error:
            fields = [_as_problem(item, cls) for item in error.errors(include_url=False)]
            raise _as_error(cls, [*fields, *problems]) from error
        if problems:
            raise _as_error(cls, problems)
        return checked


def _check_outline(data: Any) -> Iterator[Problem]:
    """Find the errors of the graph and of the nodes in an unchecked mapping; skip malformed parts."""
    if not isinstance(data, Mapping) or not isinstance(data.get("steps"), Mapping):
        return
    outlines: dict[str, GraphOutline] = {}
    for name, step in data["steps"].items():
        step = step if isinstance(step, Mapping) else {}
        actions: frozenset[str] | None = TechniqueNode.actions if "technique" in step else None
        if isinstance(step.get("node"), str):
            try:
                cls = node_class(step["node"])
                actions = declared_actions(cls)
                for key, said in check_class(cls, step):
                    yield Problem(("steps", name, key), said)
            except ConfigError as error:
                yield Problem(("steps", name, "node"), str(error))
        outlines[str(name)] = GraphOutline(actions, _readable(step.get("on")))
    start = data.get("start")
    yield from check_graph(outlines, start if isinstance(start, str) else None, data.get("max_steps"))


def _readable(on: Any) -> Transitions:
    if isinstance(on, Mapping):
        return {action: target for action, target in on.items() if isinstance(action, str) and isinstance(target, str)}
    return on if isinstance(on, str) else None


def _as_problem(item: Any, model: type[BaseModel]) -> Problem:
    """Convert an error of pydantic to one of our messages, with the field names of its model."""
    path = item["loc"]
    return Problem(path, explain(item, StepConfig if path[:1] == ("steps",) else model))


def _as_error(model: type[BaseModel], problems: Iterable[Problem]) -> ValidationError:
    return ValidationError.from_exception_data(
        model.__name__,
        [
            InitErrorDetails(type=PydanticCustomError("value_error", "{error}", {"error": text}), loc=path, input=None)
            for path, text in problems
        ],
    )
