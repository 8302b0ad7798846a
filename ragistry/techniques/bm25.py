"""Lexical retrieval: the chunks that share the query's words; rare words count more."""

from __future__ import annotations

from ragistry.config.problems import Configuration, parse_config
from ragistry.protocols import LibraryStore, as_ranking_store
from ragistry.techniques.built_in import TechniqueConfig, require_word_search
from ragistry.trace import stage
from ragistry.types import Document, Ranking, Where
from ragistry.utils.where import Condition


class BM25Technique:
    """Lexical retrieval: the chunks that share the query's words; rare words count more.

    Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009. Scores have
    no upper bound and are comparable within one query only.
    """

    Config = TechniqueConfig

    def __init__(self, config: Configuration, *, store: LibraryStore) -> None:
        self.config = parse_config(self.Config, config, type(self).__name__)
        require_word_search(store, self, "use 'naive', as the default and as a base")
        self.store = store
        self.can_rank = as_ranking_store(store) is not None

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        wanted = self.config.checked_limit(query, top_k)
        with stage("search") as search:
            documents = self.store.search_text(query, wanted, where=where)
            search.documents_out = len(documents)
        return documents

    def rank(self, query: str, top_k: int, where: Condition | None) -> Ranking:
        """Rank as `retrieve` does, without reading texts; only if `can_rank`. The arguments were checked."""
        with stage("search") as search:
            ranking: Ranking = self.store.rank(query, top_k, where=where)  # type: ignore[attr-defined]
            search.documents_out = len(ranking.scores)
        return ranking
