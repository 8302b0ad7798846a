"""A pipeline that is ready to run, and is itself a technique."""

from __future__ import annotations

import re
from time import perf_counter
from typing import Any

from ragistry.pipelines.flow import PipelineFlow
from ragistry.pipelines.graph import END
from ragistry.trace import collect
from ragistry.types import Document, RetrievalResult, Where
from ragistry.utils.limits import check_query, check_top_k


class Pipeline:
    """Steps joined as a graph, built by `PipelineBuilder`. Safe for threads: it keeps no state of a run.

    ``flow`` is the PocketFlow flow: ``pipeline.flow.run({"query": "…"})``.
    """

    def __init__(self, flow: PipelineFlow) -> None:
        self.flow = flow

    @property
    def name(self) -> str:
        return self.flow.name

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        """Run the steps and return the documents of the last one, in its order.

        Exceptions of a step get a note that names the step.

        Args:
            query: The query.
            top_k: Maximum number of documents.
            where: A condition that all documents meet, in addition to the conditions of steps.

        Raises:
            PipelineError: A budget is used up, or a step returned an undeclared action.
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
        """Run the steps like `retrieve`, and return the result with its time and a trace of one stage per step."""
        start = perf_counter()
        with collect() as trace:
            documents = self.retrieve(query, top_k=top_k, where=where)
        milliseconds = (perf_counter() - start) * 1000
        return RetrievalResult(query, documents, len(documents), milliseconds, trace.stages())

    def mermaid(self) -> str:
        """Draw the graph as a Mermaid flowchart: steps by name, actions on the arrows."""
        steps = self.flow.steps
        ids = {END: "done"} | {name: f"s{number}" for number, name in enumerate(steps)}
        lines = ["flowchart TD", '    start(["START"])']
        lines += [f'    {ids[name]}["{_escaped(name)}"]' for name in steps]
        lines += [f'    done(["{END}"])', f"    start --> {ids[self.flow.first]}"]
        for name, step in steps.items():
            lines += [f'    {ids[name]} -->|"{_escaped(action)}"| {ids[to]}' for action, to in step.on.items()]
        return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """Replace every character that could be markup by its number."""
    return re.sub(r"[^\w .,:/()-]", lambda match: f"#{ord(match[0])};", text)
