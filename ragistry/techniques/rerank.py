"""Reranking: order the results of the base by a model that reads the query together with each passage."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

from pydantic import Field

from ragistry.chunking.breadcrumb import searched_text
from ragistry.config.numbers import Number, Whole
from ragistry.config.problems import Configuration, parse_config
from ragistry.errors import ModelError
from ragistry.models.adapt import name_of
from ragistry.protocols import Reranker, Technique
from ragistry.techniques.built_in import TechniqueConfig, continued
from ragistry.techniques.fusion import scaled
from ragistry.trace import degraded, stage
from ragistry.types import TOP_K_LIMIT, Document, ScoreKind, StageScore, Where, ranked

_log = logging.getLogger(__name__)


class RerankTechnique:
    """Reranking: a reranker scores the candidates of the base; its score is mixed with the base's.

    Nogueira and Cho, "Passage Re-ranking with BERT", 2019. There the reranker alone decides (``weight: 1``). Here the
    base keeps a weight, as in Wang, Zhuang and Zuccon, "BERT-based Dense Retrievers Require Interpolation with BM25 for
    Effective Passage Retrieval", 2021: a reranker that was not trained on such texts is often wrong where the base is
    right. The score is ``weight * reranker + (1 - weight) * base``. Both are first scaled to [0, 1] over the candidates
    of the query, the lowest to 0 and the highest to 1: their kinds differ (probabilities, sums of cosines, fused
    scores), and only the order and the relative distances within one list mean something. Bruch, Gai and Ingber, "An
    Analysis of Fusion Functions for Hybrid Retrieval", 2023, find this as good as other scalings that keep distances.

    The reranker reads title and headings with a passage if the index has them. What the base ranks below ``fetch``
    comes after the others, in the order of the base. If the reranker fails, the base's results are returned, and the
    trace says so. ``scores`` of a document has the reranker's score and the mixed one.
    """

    class Config(TechniqueConfig):
        fetch: Whole = Field(
            default=20, ge=1, le=TOP_K_LIMIT, description="number of candidates that the reranker scores"
        )
        weight: Number = Field(
            default=0.3,
            gt=0,
            le=1,
            description="weight of the reranker, above 0; with 1 the base's score does not count",
        )
        strict: bool = Field(default=False, description="raise an error if the reranker fails")

    def __init__(self, config: Configuration, *, base: Technique, reranker: Reranker) -> None:
        self.config = parse_config(self.Config, config, type(self).__name__)
        self.base = base
        self.reranker = reranker

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        wanted = self.config.checked_limit(query, top_k)
        found = self.base.retrieve(query, top_k=max(wanted, self.config.fetch), where=where)
        candidates = found[: self.config.fetch]
        if not candidates:
            return []
        with stage("rerank", weight=self.config.weight) as this:
            this.documents_in = len(candidates)
            try:
                given = self._scores(query, candidates)
            except ModelError as error:
                if self.config.strict:
                    raise
                _log.warning("the reranker failed; the results have the order of the base: %s", error)
                degraded(f"not reranked: {error}")
                documents = found[:wanted]
            else:
                documents = continued(self._mixed(candidates, given)[:wanted], found, "rerank", wanted)
            this.documents_out = len(documents)
        return documents

    def _scores(self, query: str, documents: Sequence[Document]) -> list[float]:
        """Return the reranker's score of each document. Raises `ModelError`."""
        texts = [searched_text(document.content, document.metadata) for document in documents]
        found: Any = self.reranker.rerank(query, texts)
        try:
            scores = list(map(float, found))
        except (TypeError, ValueError):
            scores = []
        if len(scores) != len(texts) or not all(map(isfinite, scores)):
            raise ModelError(
                f"the reranker {name_of(self.reranker)} must return {len(texts)} finite scores, got "
                f"{found!r:.200}; correct its rerank(query, texts)"
            )
        return scores

    def _mixed(self, documents: Sequence[Document], given: Sequence[float]) -> list[Document]:
        kind: ScoreKind = getattr(self.reranker, "score_kind", "cross_encoder")
        weight, bases = self.config.weight, scaled([document.score for document in documents])
        mixed = []
        for document, own, share, base in zip(documents, given, scaled(given), bases, strict=True):
            score = weight * share + (1 - weight) * base
            stages = StageScore("reranker", kind, own), StageScore("rerank", "min_max", score)
            mixed.append(replace(document, score=score, scores=(*document.scores, *stages)))
        return ranked(mixed)
