"""Retrieval over one documentation repository."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from time import perf_counter

from ragistry.library.contract_chunks import without_json
from ragistry.library.contract_collection import Collection
from ragistry.protocols import LibraryStore, Technique
from ragistry.trace import collect
from ragistry.types import Document, RetrievalResult, Where

Build = Callable[[LibraryStore], Technique]
"""Builds a technique over a store, such as one of a `TechniqueRegistry`."""


class RepositoryTechnique:
    """A technique over the current version of a repository: after an update, the next search sees the new one."""

    def __init__(self, collection: Collection, build: Build) -> None:
        self.collection = collection
        self._build = build
        self._over: tuple[LibraryStore, Technique] | None = None
        self._lock = Lock()

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        """As every technique; empty without chunks. Also raises `CollectionNotFoundError`."""
        nothing: list[Document] = []
        found = self.collection.read(
            lambda store: self._technique(store).retrieve(query, top_k=top_k, where=where), nothing
        )
        return list(map(without_json, found))

    def _technique(self, store: LibraryStore) -> Technique:
        with self._lock:
            if self._over is None or self._over[0] is not store:
                self._over = store, self._build(store)
            return self._over[1]


def search_repository(technique: Technique, query: str, top_k: int) -> RetrievalResult:
    """The results of a technique with its trace. Raises `QueryError` and the technique's errors."""
    start = perf_counter()
    with collect() as trace:
        documents = technique.retrieve(query, top_k=top_k)
    elapsed = (perf_counter() - start) * 1000
    return RetrievalResult(query, documents, len(documents), elapsed, trace.stages())
