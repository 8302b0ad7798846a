"""What the built-in techniques share: common settings, and scores."""

from __future__ import annotations

from dataclasses import replace

from pydantic import BaseModel, ConfigDict, Field

from ragistry.config.numbers import Whole
from ragistry.errors import ConfigError
from ragistry.types import TOP_K_LIMIT, Document, ScoreKind, StageScore
from ragistry.utils.limits import check_query, check_top_k

PACKAGE = __name__.partition(".")[0]


class TechniqueConfig(BaseModel):
    """The settings of every built-in technique; unknown settings are errors."""

    model_config = ConfigDict(extra="forbid")

    top_k: Whole = Field(default=5, ge=1, le=TOP_K_LIMIT, description="default number of results")

    def checked_limit(self, query: str, top_k: int | None) -> int:
        """Return the number of results of a search. Raises `QueryError` for an invalid query or ``top_k``."""
        check_query(query)
        return self.top_k if top_k is None else check_top_k(top_k)


def rescored(document: Document, stage: str, kind: ScoreKind, score: float) -> Document:
    """Return a copy of the document with a new score; its earlier scores stay in ``scores``."""
    return replace(document, score=score, scores=(*document.scores, StageScore(stage, kind, score)))


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
