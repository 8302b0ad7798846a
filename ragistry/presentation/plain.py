"""Convert results, answers and techniques to plain values for ``--json`` and the server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragistry.presentation.answering import place_of
from ragistry.techniques.classes import first_sentence
from ragistry.types import RetrievalResult
from ragistry.utils.dataclass_json import to_json

if TYPE_CHECKING:
    from ragistry.answers.answer import Answer
    from ragistry.techniques.registry import TechniqueRegistry


def as_mapping(found: RetrievalResult | Answer, language: str) -> dict[str, Any]:
    """Convert a result or an answer, each document with the ``place`` of the line that answers.

    An answer without text is None. ``language``: of documents whose metadata have none.
    """
    values: dict[str, Any] = to_json(found)
    for row, document in zip(values["documents"], found.documents, strict=True):
        row["place"] = place_of(document, found.query, language)
    return values if "answer" not in values else values | {"answer": values["answer"] or None}


@dataclass(frozen=True, slots=True)
class TechniqueInfo:
    """A configured technique. ``unusable``: why it cannot run; empty if it can."""

    name: str
    use: str
    default: bool
    bases: list[str]
    config: dict[str, Any]
    description: str
    unusable: str


def describe_techniques(registry: TechniqueRegistry) -> list[TechniqueInfo]:
    """Describe the valid techniques of a registry."""
    entries = {name: registry.entry(name) for name in registry.names()}
    return [
        TechniqueInfo(
            name,
            entry.use,
            name == registry.default,
            [base for base in (entry.base, *entry.bases) if base],
            entry.config,
            first_sentence(registry.technique_class(name)),
            registry.unusable(name),
        )
        for name, entry in entries.items()
    ]
