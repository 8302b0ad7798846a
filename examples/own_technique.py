"""A custom technique: reduces the scores of older sources."""

from __future__ import annotations

from dataclasses import replace

from pydantic import BaseModel, ConfigDict, Field

from ragistry.protocols import Technique
from ragistry.trace import stage
from ragistry.types import Document, StageScore, Where, ranked
from ragistry.utils.limits import check_top_k

DAY = 24 * 60 * 60


class Recent:
    """Recency: halves the score for every `half_life_days` that a source is older than the newest."""

    class Config(BaseModel):
        model_config = ConfigDict(extra="forbid")

        top_k: int = Field(default=5, ge=1, le=1_000, description="default number of results")
        half_life_days: float = Field(default=365, gt=0, description="age difference that halves the score")
        fetch: int = Field(default=50, ge=1, le=1_000, description="number of candidates taken from the base")

    def __init__(self, config: Config, *, base: Technique) -> None:
        self.config = config
        self.base = base

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        wanted = check_top_k(self.config.top_k if top_k is None else top_k)
        found = self.base.retrieve(query, top_k=max(wanted, self.config.fetch), where=where)
        newest = max((document.metadata["ingested_at"] for document in found), default=0)
        with stage("recency") as this:
            this.documents_in = len(found)
            best = ranked(self._aged(document, newest) for document in found)[:wanted]
            this.documents_out = len(best)
        return best

    def _aged(self, document: Document, newest: float) -> Document:
        days = (newest - document.metadata["ingested_at"]) / DAY
        score = document.score * 0.5 ** (days / self.config.half_life_days)
        return replace(document, score=score, scores=(*document.scores, StageScore("recency", "other", score)))
