"""What the built-in techniques share: common settings, and scores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import inf, nextafter
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from ragistry.config.numbers import NumberOrNone, Whole
from ragistry.errors import ConfigError
from ragistry.types import TOP_K_LIMIT, Document, ScoreKind, StageScore
from ragistry.utils.limits import check_query, check_top_k


class TechniqueConfig(BaseModel):
    """The settings of every built-in technique; unknown settings are errors.

    ``read_if`` lists settings that are not always read, each with another setting and the values with which it is.
    """

    model_config = ConfigDict(extra="forbid")
    read_if: ClassVar[tuple[tuple[Any, ...], ...]] = ()

    top_k: Whole = Field(default=5, ge=1, le=TOP_K_LIMIT, description="default number of results")
    min_score: NumberOrNone = Field(
        default=None, allow_inf_nan=False, description="leave out results with a lower score"
    )

    def checked_limit(self, query: str, top_k: int | None) -> int:
        """Return the number of results of a search. Raises `QueryError` for an invalid query or ``top_k``."""
        check_query(query)
        return self.top_k if top_k is None else check_top_k(top_k)


def least_score(technique: object) -> float | None:
    """Return the ``min_score`` that the configuration of a built-in technique sets."""
    config = getattr(technique, "config", None)
    if not isinstance(config, TechniqueConfig) or "min_score" not in config.model_fields_set:
        return None
    return config.min_score


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
