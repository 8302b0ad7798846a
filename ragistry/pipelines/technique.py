"""A pipeline from techniques.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ragistry.config.parse import parse_config
from ragistry.errors import ConfigError
from ragistry.pipelines.builder import PipelineBuilder
from ragistry.pipelines.config import PipelineConfig, StepConfig
from ragistry.pipelines.parts import node_class
from ragistry.protocols import Technique
from ragistry.types import Document, Where


class Techniques(Protocol):
    """What a pipeline asks of the registry."""

    def get(self, name: str) -> Technique: ...


class PipelineTechnique:
    """Techniques and nodes joined as a graph: what a step returns says which one runs next::

    careful:
      use: pipeline
      steps:
        search: {technique: naive, on: {found: END, empty: wide}}
        wide: {technique: hybrid, top_k: 50}
    """

    Config = PipelineConfig

    def __init__(self, config: Mapping[str, Any], *, registry: Techniques, name: str = "pipeline") -> None:
        settings = parse_config(self.Config, config, type(self).__name__)
        builder = PipelineBuilder(name)
        for step_name, step in settings.steps.items():
            part = registry.get(step.technique) if step.technique is not None else _node(step)
            builder.step(step_name, part, on=step.on, top_k=step.top_k, where=step.where)
        self.pipeline = builder.build(
            start=settings.start, max_steps=settings.max_steps, max_seconds=settings.max_seconds
        )

    @staticmethod
    def references(config: Mapping[str, Any]) -> list[str]:
        """The techniques that the steps name, each once; a malformed step names none."""
        steps = config.get("steps")
        entries = steps.values() if isinstance(steps, Mapping) else ()
        names = [entry.get("technique") for entry in entries if isinstance(entry, Mapping)]
        return list(dict.fromkeys(name for name in names if isinstance(name, str)))

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        return self.pipeline.retrieve(query, top_k=top_k, where=where)


def _node(step: StepConfig) -> Any:
    cls = node_class(str(step.node))
    try:
        return cls(**step.with_)
    except TypeError as error:
        raise ConfigError(f"node {step.node!r} cannot be made with {step.with_!r}: {error}") from error
