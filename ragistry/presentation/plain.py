"""Convert results, answers and techniques to plain values for ``--json`` and the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ragistry.pipelines.answer import Answer
from ragistry.presentation.answering import place_of
from ragistry.techniques.classes import first_sentence
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.types import Document, RetrievalResult


def result_as_mapping(result: RetrievalResult, language: str) -> dict[str, Any]:
    """Convert a result with its documents and stages. ``language``: of documents whose metadata have none."""
    return {
        "query": result.query,
        "documents": _with_places(result.documents, result.query, language),
        "total_results": result.total_results,
        "search_time_ms": result.search_time_ms,
        "weak": result.weak,
        "trace": [asdict(stage) for stage in result.trace],
    }


def _with_places(documents: Sequence[Document], query: str, language: str) -> list[dict[str, Any]]:
    """Convert documents, each with the ``place`` of the line that answers."""
    return [document_as_mapping(one) | {"place": place_of(one, query, language)} for one in documents]


def document_as_mapping(document: Document) -> dict[str, Any]:
    """Convert a document with its scores."""
    return {
        "id": document.id,
        "content": document.content,
        "metadata": document.metadata,
        "score": document.score,
        "scores": [asdict(score) for score in document.scores],
    }


def answer_as_mapping(answer: Answer, language: str) -> dict[str, Any]:
    """Convert an answer with the passages that it cites; ``answer`` is None if it has no text."""
    return {
        "query": answer.query,
        "status": answer.status,
        "answer": answer.text or None,
        "reason": answer.reason,
        "sentences": [
            {"text": one.text, "citations": list(one.citations), "supported": one.supported} for one in answer.sentences
        ],
        "documents": _with_places(answer.documents, answer.query, language),
        "weak": answer.weak,
        "degraded": list(answer.degraded),
    }


def techniques_as_mappings(registry: TechniqueRegistry) -> list[dict[str, Any]]:
    """Convert the valid techniques of a registry."""
    return [
        {
            "name": name,
            "use": registry.entry(name).use,
            "default": name == registry.default,
            "bases": [base for base in (registry.entry(name).base, *registry.entry(name).bases) if base],
            "config": registry.entry(name).config,
            "description": first_sentence(registry.technique_class(name)),
            "unusable": registry.unusable(name),
        }
        for name in registry.names()
    ]
