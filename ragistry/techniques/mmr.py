"""Maximal marginal relevance: documents near the query that do not repeat those already chosen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ragistry.config.numbers import Number, Whole
from ragistry.config.parse import Configuration, parse_config
from ragistry.errors import StoreError
from ragistry.protocols import Embedder, LibraryStore, Technique
from ragistry.techniques.built_in import TechniqueConfig, continued, rescored
from ragistry.techniques.fusion import scaled
from ragistry.trace import stage
from ragistry.types import TOP_K_LIMIT, Document, Where

Vectors = NDArray[np.float32]
AGAIN = 3
"""Number of attempts to read vectors if chunks are deleted meanwhile."""


class MMRTechnique:
    """Diversity: selects documents of the base that are relevant and differ from each other.

    Carbonell and Goldstein, "The Use of MMR, Diversity-Based Reranking for Reordering Documents and Producing
    Summaries", 1998. The score of a document is ``lambda * relevance + (1 - lambda) * novelty``. Relevance is the
    base's score, scaled to [0, 1] over the candidates, so words, fusion or a reranker of the base still count. Novelty
    is one minus the largest cosine similarity to a document above it, clipped to [0, 1]. Scores fall from the first
    document to the last, as in the paper's greedy order. What the base ranks below ``fetch`` comes after the others, in
    the order of the base.

    Vectors come from ``store``. If a document is not there, because the base searches another store or it was deleted
    meanwhile, ``embedder`` embeds its content.
    """

    class Config(TechniqueConfig, populate_by_name=True):
        weight: Number = Field(
            default=0.7, ge=0, le=1, alias="lambda", description="1: relevance only, 0: novelty only"
        )
        fetch: Whole = Field(default=30, ge=1, le=TOP_K_LIMIT, description="number of candidates taken from the base")

    def __init__(self, config: Configuration, *, base: Technique, store: LibraryStore, embedder: Embedder) -> None:
        self.config = parse_config(self.Config, config, type(self).__name__)
        self.base = base
        self.store = store
        self.embedder = embedder

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        wanted = self.config.checked_limit(query, top_k)
        found = self.base.retrieve(query, top_k=max(wanted, self.config.fetch), where=where)
        if not found:
            return []
        # In the order of their ids, so that argmax breaks ties as rankings do.
        candidates = sorted(found[: self.config.fetch], key=lambda document: document.id)
        with stage("diversify") as this:
            this.documents_in = len(candidates)
            vectors = self._vectors(candidates)
            relevance = np.array(scaled([document.score for document in candidates]), dtype=np.float32)
            chosen = choose(vectors, relevance, self.config.weight, wanted)
            this.documents_out = len(chosen)
        documents = [rescored(candidates[row], "mmr", "mmr", score) for row, score in chosen]
        return continued(documents, found, "mmr", wanted)

    def _vectors(self, documents: Sequence[Document]) -> Vectors:
        """Return the vectors of the documents, ``(n, d)``."""
        stored = self._stored_vectors([document.id for document in documents])
        others = [document.content for document in documents if document.id not in stored]
        made = iter(self.embedder.embed(others) if others else ())
        return np.stack([stored[found.id] if found.id in stored else next(made) for found in documents])

    def _stored_vectors(self, ids: Sequence[str], again: int = AGAIN) -> dict[str, Vectors]:
        """Read the vectors ``(d,)`` that the store has, by id. Raises `StoreError`."""
        if not ids:
            return {}
        try:
            found = zip(ids, self.store.vectors(ids), strict=True)
            return {id: vector for id, vector in found if vector.any()}  # zeros: it waits for its vector
        except StoreError:
            if not again:
                raise
            return self._stored_vectors([document.id for document in self.store.get(ids)], again - 1)


def choose(vectors: Vectors, relevance: NDArray[np.float32], weight: float, count: int) -> list[tuple[int, float]]:
    """Choose vectors greedily by relevance and novelty.

    Args:
        vectors: Unit vectors, ``(n, d)``.
        relevance: Relevance of each, ``(n,)``, 0 to 1.
        weight: Weight of relevance; novelty has the rest.
        count: Maximum number of rows to choose.

    Returns:
        The chosen rows in order, each with its score.
    """
    gain = weight * relevance
    nearest = np.zeros(len(vectors), dtype=np.float32)
    left = np.ones(len(vectors), dtype=bool)
    chosen: list[tuple[int, float]] = []
    for _ in range(min(count, len(vectors))):
        scores = np.where(left, gain + (1 - weight) * (1 - nearest), -np.inf)
        row = int(np.argmax(scores))
        chosen.append((row, float(scores[row])))
        left[row] = False
        nearest = np.maximum(nearest, np.clip(vectors @ vectors[row], 0.0, 1.0))
    return chosen
