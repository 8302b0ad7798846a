"""A pipeline in Python: search words if the query is a code, else meaning and words; try again if nothing fits.

usage: python examples/compose_pipeline.py [WORKSPACE], by default the one that `ragistry demo` makes.
"""

from __future__ import annotations

import re
import sys
from typing import Any

from pocketflow import Node

from ragistry import Workspace, open_workspace
from ragistry.pipelines import END, Pipeline, PipelineBuilder

QUERIES = ("LNT-1042", "how do I restore yesterday's backup?", "ZZ-9999")


class Kind(Node):  # type: ignore[misc] # PocketFlow has no types
    """Inspects the query and chooses the next step. A custom node declares the actions that it can return."""

    actions = frozenset({"code", "question"})

    def prep(self, shared: dict[str, Any]) -> str:
        return str(shared["query"])

    def exec(self, query: str) -> str:
        return "code" if re.fullmatch(r"[A-Z]+-?\d+", query) else "question"

    def post(self, _shared: dict[str, Any], _query: str, kind: str) -> str:
        return kind


def compose(workspace: Workspace) -> Pipeline:
    """The graph; `build` reports all its errors before anything runs."""
    return (
        PipelineBuilder("by_kind")
        .step("kind", Kind(), on={"code": "words", "question": "both"})
        .step("words", workspace.technique("bm25"), on={"found": END, "empty": "both"}, top_k=3)
        .step("both", workspace.technique("hybrid"), top_k=3)
        .build()
    )


def main() -> None:
    with open_workspace(sys.argv[1] if len(sys.argv) > 1 else "demo-workspace") as workspace:
        pipeline = compose(workspace)
        print(pipeline.mermaid())
        for query in QUERIES:
            result = pipeline.run(query)
            steps = " > ".join(stage.name for stage in result.trace if stage.depth == 1)
            print(f"{query!r} by {steps}, {result.search_time_ms:.1f} ms")
            for document in result.documents:
                print(f"  {document.scores[-1].kind} {document.score:.3f} {document.metadata['source_file']}")


if __name__ == "__main__":
    main()
