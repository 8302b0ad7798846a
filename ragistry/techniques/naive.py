"""Dense retrieval: embed the query and return the chunks with the nearest vectors."""

from __future__ import annotations

from pydantic import Field

from ragistry.config.numbers import Number, WholeOrNone
from ragistry.config.parse import Configuration, parse_config
from ragistry.errors import EmbeddingMismatchError
from ragistry.models.adapt import as_embedder
from ragistry.protocols import DocumentStore, Embedder, LibraryStore
from ragistry.techniques.built_in import TechniqueConfig
from ragistry.techniques.checks import model_name
from ragistry.trace import stage
from ragistry.types import Document, Where
from ragistry.utils.fingerprints import check_embedder


class NaiveRAGTechnique:
    """Dense retrieval: the chunks whose vectors are nearest to the query's.

    Karpukhin et al., "Dense Passage Retrieval for Open-Domain Question Answering", 2020.
    """

    class Config(TechniqueConfig):
        min_score: Number = Field(default=0.0, ge=0.0, le=1.0, description="leave out documents with a lower score")
        embedding_model: str | None = Field(default=None, description="the embedding model that the store must have")
        chunk_size: WholeOrNone = Field(default=None, ge=1, description="the chunk size that the store must have")

    def __init__(self, config: Configuration, *, store: DocumentStore, embedder: Embedder) -> None:
        self.config = parse_config(self.Config, config, type(self).__name__)
        self.store = store
        self.embedder = as_embedder(embedder)
        self._recorded = store if isinstance(store, LibraryStore) else None

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        wanted = self.config.checked_limit(query, top_k)
        with stage("embed"):
            self._check_embedder()
            vector = self.embedder.embed([query], role="query")[0]
        with stage("search") as search:
            documents = self.store.search(vector, wanted, where=where)
            search.documents_out = len(documents)
        return [document for document in documents if document.score >= self.config.min_score]

    def _check_embedder(self) -> None:
        """Check that the store has vectors of this embedder: those of two models cannot be compared."""
        fingerprint = self.embedder.fingerprint
        wanted = self.config.embedding_model
        if wanted is not None and model_name(wanted) != model_name(fingerprint.model):
            raise EmbeddingMismatchError(
                f"embedding_model is {wanted!r}, but the embedder here is {fingerprint.model!r}; "
                f"set embed_model: {wanted} in documents.yaml and ingest again, or remove embedding_model"
            )
        if self._recorded is not None:
            check_embedder(self._recorded, fingerprint)
