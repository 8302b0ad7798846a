"""An answer as a step of a pipeline."""

from __future__ import annotations

from typing import Any, ClassVar

from pocketflow import Node

from ragistry.answers.answer import Answer, Answerer
from ragistry.errors import PipelineError
from ragistry.types import Document


class AnswerNode(Node):  # type: ignore[misc] # untyped base
    """Answers from the documents of an earlier step: returns ``answered``, ``not_found`` or ``incomplete``.

    ``incomplete`` is every other end of `Answer.status`. It reads ``query`` and ``documents`` from the run's shared
    mapping and writes ``answer``, an `Answer`.
    """

    actions: ClassVar[frozenset[str]] = frozenset({"answered", "not_found", "incomplete"})

    def __init__(self, answerer: Answerer) -> None:
        super().__init__()
        self.answerer = answerer

    def prep(self, shared: dict[str, Any]) -> tuple[str, list[Document]]:
        if "query" not in shared:
            raise PipelineError("the shared mapping has no 'query'; run the flow with {'query': '…'}")
        return shared["query"], shared.get("documents", [])

    def exec(self, request: tuple[str, list[Document]]) -> Answer:
        return self.answerer.answer(*request)

    def post(self, shared: dict[str, Any], _request: Any, answer: Answer) -> str:
        shared["answer"] = answer
        return {"complete": "answered", "not_found": "not_found"}.get(answer.status, "incomplete")
