"""Dense retrieval: embed the query and return the chunks with the nearest vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pydantic import Field

from ragistry.config.numbers import Number, WholeOrNone
from ragistry.config.problems import Configuration, parse_config
from ragistry.errors import EmbeddingMismatchError
from ragistry.protocols import DocumentStore, Embedder, LibraryStore, as_ranking_store
from ragistry.techniques.built_in import TechniqueConfig
from ragistry.techniques.checks import model_name
from ragistry.trace import stage
from ragistry.types import Document, Ranking, Where
from ragistry.utils.fingerprints import check_embedder
from ragistry.utils.where import Condition


class NaiveRAGTechnique:
    """Dense retrieval: the chunks whose vectors are nearest to the query's.

    Karpukhin et al., "Dense Passage Retrieval for Open-Domain Question Answering", 2020.
    """

    class Config(TechniqueConfig):
        min_score: Number = Field(default=0.0, ge=0.0, le=1.0, description="leave out results with a lower score")
        embedding_model: str | None = Field(default=None, description="the embedding model that the store must have")
        chunk_size: WholeOrNone = Field(default=None, ge=1, description="the chunk size that the store must have")

    def __init__(self, config: Configuration, *, store: DocumentStore, embedder: Embedder) -> None:
        self.config = parse_config(self.Config, config, type(self).__name__)
        self.store = store
        self.embedder = embedder
        self._recorded = store if isinstance(store, LibraryStore) else None
        self._ranking = as_ranking_store(store)
        self.can_rank = self._ranking is not None

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        wanted = self.config.checked_limit(query, top_k)
        vector = self._vector(query)
        with stage("search") as search:
            if self._ranking is None:
                documents = self.store.search(vector, wanted, where=where)
            else:
                documents = self._ranking.search(vector, wanted, where=where, embedder=self.embedder.fingerprint)
            search.documents_out = len(documents)
        return [document for document in documents if document.score >= self.config.min_score]

    def rank(self, query: str, top_k: int, where: Condition | None) -> Ranking:
        """Rank as `retrieve` does, without reading texts; only if `can_rank`. The arguments were checked."""
        assert self._ranking is not None
        vector, least = self._vector(query), self.config.min_score
        with stage("search") as search:
            ranking = self._ranking.rank(vector, top_k, where=where, embedder=self.embedder.fingerprint)
            if least:
                scores = {key: score for key, score in ranking.scores.items() if score >= least}
                ranking = replace(ranking, scores=scores)
            search.documents_out = len(ranking.scores)
        return ranking

    def _vector(self, query: str) -> Sequence[float]:
        """Embed the query, after a check that the store has vectors of this embedder.

        A ranking store checks it in the snapshot that it searches.
        """
        with stage("embed"):
            wanted = self.config.embedding_model
            if wanted is not None and model_name(wanted) != model_name(self.embedder.fingerprint.model):
                raise EmbeddingMismatchError(
                    f"embedding_model is {wanted!r}, but the embedder here is {self.embedder.fingerprint.model!r}; "
                    f"set embed_model: {wanted} in documents.yaml and ingest again, or remove embedding_model"
                )
            if self._ranking is None and self._recorded is not None:
                check_embedder(self._recorded, self.embedder.fingerprint)
            return self.embedder.embed([query], role="query")[0]  # type: ignore[no-any-return]
