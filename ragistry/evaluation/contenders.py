"""What is compared: a technique under its name, all that is known of it, and the index that it searches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ragistry.evaluation.indexing import DatasetIndex
from ragistry.techniques.registered import RegisteredTechnique
from ragistry.types import Document


@dataclass(frozen=True, slots=True)
class Contender:
    """A technique under the name that the report gives it.

    ``configuration``: all that decides its rankings, defaults included. ``unknown``: what that leaves open, so that
    nothing tells its answers from those of another. ``own_top_k``: its ``top_k`` is part of what is compared, so it is
    asked for no other.
    """

    name: str
    technique: RegisteredTechnique
    configuration: dict[str, Any]
    index: DatasetIndex | None = None
    own_top_k: bool = False
    unknown: str = ""

    @property
    def chunks_per_document(self) -> float:
        """How many chunks make up a document, on average; 1 where that is not known."""
        return 1.0 if self.index is None else max(1.0, self.index.cost.chunks / self.index.cost.documents)

    @property
    def not_seen(self) -> str:
        """What it keeps whose changes go unnoticed: it has no plain value, and its class or entry stands for it."""
        return str(self.configuration.get("not_seen", ""))

    @property
    def qualified(self) -> bool:
        """Whether a document may have the name of its collection before its own; of an unknown store it may."""
        return self.index is None or self.index.qualified

    @property
    def unmade(self) -> Exception | None:
        """Why there is nothing to ask, where the technique could not be made."""
        inner = self.technique.technique
        return inner.reason if isinstance(inner, Unmade) else None


class Unmade:
    """Stands for a technique that could not be made, so that the others can be compared."""

    def __init__(self, reason: Exception) -> None:
        self.reason = reason

    def retrieve(self, query: str, **_: Any) -> list[Document]:  # noqa: ARG002, nothing can be found
        raise self.reason
