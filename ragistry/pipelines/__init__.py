"""Pipelines: techniques and custom steps joined as a PocketFlow graph that is checked before it runs."""

from __future__ import annotations

from ragistry.pipelines.builder import PipelineBuilder
from ragistry.pipelines.graph import END
from ragistry.pipelines.node import TechniqueNode
from ragistry.pipelines.pipeline import Pipeline

__all__ = ["END", "Pipeline", "PipelineBuilder", "TechniqueNode"]
