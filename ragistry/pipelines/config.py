"""The configuration of a pipeline in techniques.yaml."""

from __future__ import annotations

from typing import Annotated, Any, Self

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
from ragistry.pipelines.graph import Transitions
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
