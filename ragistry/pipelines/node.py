"""A technique as a PocketFlow node."""

from __future__ import annotations

from typing import Any, ClassVar

from pocketflow import Node

from ragistry.errors import PipelineError
from ragistry.protocols import Technique
from ragistry.types import Document, Where
from ragistry.utils.limits import check_top_k
from ragistry.utils.where import both, normalise

Request = tuple[str, int | None, Where | None]


class TechniqueNode(Node):  # type: ignore[misc] # untyped base
    """Retrieves with a technique: returns the action ``found``, or ``empty`` without documents.

    It reads ``query``, ``top_k`` and ``where`` from the run's shared mapping and writes ``documents``. It keeps no
    state of a run.

    Args:
        technique: The technique.
        top_k: Number of results, 1 to 1,000, instead of the run's.
        where: Condition, in addition to the run's.

    Raises:
        InvalidLimitError: ``top_k`` is out of range.
        InvalidFilterError: ``where`` is malformed.
    """

    actions: ClassVar[frozenset[str]] = frozenset({"found", "empty"})

    def __init__(self, technique: Technique, *, top_k: int | None = None, where: Where | None = None) -> None:
        super().__init__()
        self.technique = technique
        self.top_k = None if top_k is None else check_top_k(top_k)
        self.where = normalise(where)

    def prep(self, shared: dict[str, Any]) -> Request:
        if "query" not in shared:
            raise PipelineError("the shared mapping has no 'query'; run the flow with {'query': '…'}")
        top_k, where = shared.get("top_k"), shared.get("where")
        if self.top_k is not None:
            top_k = self.top_k
        if self.where is not None:
            where = self.where if where is None else both(self.where, normalise(where))
        return shared["query"], top_k, where

    def exec(self, request: Request) -> list[Document]:
        query, top_k, where = request
        return self.technique.retrieve(query, top_k=top_k, where=where)

    def post(self, shared: dict[str, Any], _request: Request, documents: list[Document]) -> str:
        shared["documents"] = documents
        return "found" if documents else "empty"
