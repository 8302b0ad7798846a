"""A pipeline that is ready to run, and is itself a technique."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from ragistry.pipelines.flow import PipelineFlow
from ragistry.pipelines.mermaid import flowchart
from ragistry.trace import collect
from ragistry.types import Document, RetrievalResult, Where
from ragistry.utils.limits import check_query, check_top_k


class Pipeline:
    """Steps joined as a graph, built by `PipelineBuilder`; it keeps no state of a run, so many threads can share it.

    ``flow`` is the PocketFlow flow: ``pipeline.flow.run({"query": "…"})``.
    """

    def __init__(self, flow: PipelineFlow) -> None:
        self.flow = flow

    @property
    def name(self) -> str:
        return self.flow.name

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        """The documents of the last step, in its order, at most ``top_k``.

        All meet ``where``, independent of the conditions of steps. Exceptions of a step get a note that names the step.
        Raises `PipelineError` if a budget is used up or a step returns an undeclared action.
        """
        shared: dict[str, Any] = {
            "query": check_query(query),
            "original_query": query,
            "top_k": None if top_k is None else check_top_k(top_k),
            "where": where,
            "documents": [],
        }
        self.flow.run(shared)
        documents: list[Document] = shared["documents"]
        return documents[:top_k]

    def run(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> RetrievalResult:
        """As `retrieve`, with the time and a trace of one stage per step; the result has the original ``query``."""
        start = perf_counter()
        with collect() as trace:
            documents = self.retrieve(query, top_k=top_k, where=where)
        milliseconds = (perf_counter() - start) * 1000
        return RetrievalResult(query, documents, len(documents), milliseconds, trace.stages())

    def mermaid(self) -> str:
        """The graph as a Mermaid flowchart: steps by name, actions on the arrows."""
        return flowchart({name: step.on for name, step in self.flow.steps.items()}, self.flow.first)
