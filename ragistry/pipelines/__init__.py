"""Techniques and steps of one's own joined as a graph: a PocketFlow flow that is checked before it runs."""

from __future__ import annotations

from ragistry.pipelines.builder import PipelineBuilder
from ragistry.pipelines.graph import END
from ragistry.pipelines.node import TechniqueNode
from ragistry.pipelines.pipeline import Pipeline

__all__ = ["END", "Pipeline", "PipelineBuilder", "TechniqueNode"]
