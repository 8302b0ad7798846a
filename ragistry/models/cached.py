"""An embedder that remembers the last queries, so that several techniques embed a query once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from ragistry.protocols import Embedder, TokenCounter
from ragistry.types import EmbedderFingerprint, Role

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

QUERIES_KEPT = 256


class CachedQueries:
    """Passes documents through; a single query is looked up first. Safe for threads."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._query = lru_cache(QUERIES_KEPT)(partial(_query, embedder))

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        return self.embedder.fingerprint

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Vectors:
        if role != "query" or len(texts) != 1:
            return self.embedder.embed(texts, role=role)
        return self._query(texts[0])

    def close(self) -> None:
        """Let go of the embedder's connections, where it has any."""
        close = getattr(self.embedder, "close", None)
        if callable(close):
            close()


class CachedQueriesAndTokens(CachedQueries):
    """The same over an embedder that counts tokens."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        assert isinstance(self.embedder, TokenCounter)
        return self.embedder.count_tokens(texts)


def _query(embedder: Embedder, text: str) -> Vectors:
    vectors = embedder.embed([text], role="query")
    vectors.flags.writeable = False
    return vectors


def cached(embedder: Embedder) -> CachedQueries:
    """``embedder`` with a memory for queries."""
    return CachedQueriesAndTokens(embedder) if isinstance(embedder, TokenCounter) else CachedQueries(embedder)
