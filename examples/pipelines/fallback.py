"""Search the library, and ask elsewhere if nothing in it is near enough."""

import sys
from typing import Any

from ragistry import Document, open_workspace
from ragistry.pipelines import END, PipelineBuilder


class Web:
    def retrieve(self, query: str, **_: Any) -> list[Document]:
        return [Document(f"A page about {query}", {"url": "https://example.org", "outside": True}, 1.0, "web")]


with open_workspace(sys.argv[1] if len(sys.argv) > 1 else "demo-workspace") as workspace:
    near = workspace.build({"use": "naive", "min_score": 0.3})
    steps = PipelineBuilder().step("library", near, on={"found": END, "empty": "web"}).step("web", Web())
    for query in ("how do I restore a backup?", "the population of Iceland"):
        print(query, "→", steps.build().retrieve(query, top_k=1, where={"collection": "handbook"})[0].id[:3])
