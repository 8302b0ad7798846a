"""Lexical retrieval: the chunks that share the query's words; rare words count more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ragistry.config.numbers import Whole
from ragistry.config.parse import parse_config
from ragistry.errors import ConfigError
from ragistry.protocols import LibraryStore
from ragistry.trace import stage
from ragistry.types import TOP_K_LIMIT, Document, Where


class BM25Technique:
    """Lexical retrieval: the chunks that share the query's words; rare words count more.

    Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009. Scores have
    no upper bound and are comparable within one query only.
    """

    class Config(BaseModel):
        model_config = ConfigDict(extra="forbid")

        top_k: Whole = Field(default=5, ge=1, le=TOP_K_LIMIT, description="default number of results")

    def __init__(self, config: Mapping[str, Any], *, store: LibraryStore) -> None:
        self.config = parse_config(self.Config, config, type(self).__name__)
        if "text" not in getattr(store, "abilities", ()):
            raise ConfigError(
                f"{type(self).__name__}: the store {type(store).__name__!r} does not search words; use 'naive', as "
                "the default and as a base, or set `store: {use: local}` in vector_stores.yaml"
            )
        self.store = store

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        with stage("search") as search:
            documents = self.store.search_text(query, self.config.top_k if top_k is None else top_k, where=where)
            search.documents_out = len(documents)
        return documents
