"""What the built-in techniques share: common settings, and scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import inf, isfinite, nextafter
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from ragistry.config.numbers import Number, Whole
from ragistry.errors import ConfigError
from ragistry.types import TOP_K_LIMIT, Document, ScoreKind, StageScore
from ragistry.utils.limits import check_query, check_top_k

STAGES = {
    "naive": "dense", "naive_rag": "dense", "bm25": "bm25", "learned_sparse": "learned_sparse", "hybrid": "hybrid",
    "graph": "graph", "rerank": "reranker",
}  # fmt: skip
"""Technique → the stage of its scores that can be compared with a number."""
PACKAGE = __name__.partition(".")[0]


class TechniqueConfig(BaseModel):
    """The settings of every built-in technique; unknown settings are errors.

    ``read_if`` lists settings that are not always read, each with another setting and the values with which it is.
    """

    model_config = ConfigDict(extra="forbid")
    read_if: ClassVar[tuple[tuple[Any, ...], ...]] = ()

    top_k: Whole = Field(default=5, ge=1, le=TOP_K_LIMIT, description="default number of results")
    min_score: dict[str, Number] | None = Field(
        default=None, description="the lowest score of a stage, such as {naive: 0.35}; results without one are left out"
    )

    @field_validator("min_score", mode="before")
    @classmethod
    def _names_a_stage(cls, value: Any) -> Any:
        return check_stage_scores(value)

    def checked_limit(self, query: str, top_k: int | None) -> int:
        """Return the number of results of a search. Raises `QueryError` for an invalid query or ``top_k``."""
        check_query(query)
        return self.top_k if top_k is None else check_top_k(top_k)


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and isfinite(value)


def check_stage_scores(value: Any) -> Any:
    """Return a ``min_score`` unchanged. Raises `ValueError` if it does not name the stage whose score it means."""
    if value is None or (isinstance(value, Mapping) and value and all(map(_is_finite, value.values()))):
        return value
    raise ValueError(
        f"must name the stage whose score it means, because each stage has a scale of its own, got {value!r:.80}; "
        "write min_score: {naive: 0.35}"
    )


def least_scores(technique: object) -> dict[str, float]:
    """Return the lowest score of each stage that ``min_score`` of a built-in technique names; often none."""
    config = getattr(technique, "config", None)
    named = config.min_score if isinstance(config, TechniqueConfig) else None
    return {STAGES.get(name, name): value for name, value in named.items()} if isinstance(named, dict) else {}


def rescored(document: Document, stage: str, kind: ScoreKind, score: float) -> Document:
    """Return a copy of the document with a new score; its earlier scores stay in ``scores``."""
    return replace(document, score=score, scores=(*document.scores, StageScore(stage, kind, score)))


def continued(first: list[Document], deeper: Iterable[Document], stage: str, top_k: int) -> list[Document]:
    """Append what lies deeper in a ranking, with scores below the others, so that more results reorder nothing.

    Args:
        first: The results from the candidates of a technique.
        deeper: A ranking, best first. Documents of ``first`` are skipped.
        stage: Name of the stage of the new scores.
        top_k: Maximum number of documents.
    """
    known = {document.id for document in first}
    more = [document for document in deeper if document.id not in known][: max(0, top_k - len(first))]
    if first and more:
        best, below = more[0].score, nextafter(first[-1].score, -inf)
        more = [rescored(document, stage, "other", below - (best - document.score)) for document in more]
    return [*first, *more][:top_k]


def require_word_search(store: object, technique: object, remedy: str) -> None:
    """Raise `ConfigError` with ``remedy`` if the store cannot search words."""
    if "text" not in getattr(store, "abilities", ()):
        raise ConfigError(
            f"{type(technique).__name__}: the store {type(store).__name__!r} cannot search words; {remedy}, or set "
            "`store: {use: local}` in vector_stores.yaml"
        )


def is_built_in(technique: object) -> bool:
    """Return whether the class of a technique is part of this package."""
    return type(technique).__module__.partition(".")[0] == PACKAGE
