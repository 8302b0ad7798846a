"""Some of the chunks of a target, spread evenly over its sources, and what a router compares a query to in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from ragistry.errors import EmbeddingMismatchError
from ragistry.protocols import DocumentStore, Embedder, LibraryStore
from ragistry.techniques.routing.target import Place, Sampled
from ragistry.techniques.routing.words import Vocabulary, Words
from ragistry.types import Document, Where
from ragistry.utils.fingerprints import check_embedder
from ragistry.utils.ids import chunk_id
from ragistry.utils.where import matches, normalise

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

EMBEDDED = 32
"""Chunks that are embedded where a store has no vectors of the router's embedder."""

Item = TypeVar("Item")


class Sample(NamedTuple):
    """Some of the chunks of a target: the metadata of each, the words of all, and the vectors of the first of them.

    ``vectors``: ``(n, d)`` float32 of unit length. Each is None if it was not asked for.
    """

    metadatas: list[dict[str, Any]]
    vectors: Vectors | None
    words: Words | None

    def within(self, where: Where | None) -> Sample:
        """The part that meets a condition in its normal form."""
        if where is None:
            return self
        kept = np.array([matches(where, metadata) for metadata in self.metadatas], dtype=np.bool_)
        vectors, words = self.vectors, self.words
        return Sample(
            [metadata for metadata, keep in zip(self.metadatas, kept, strict=True) if keep],
            None if vectors is None else vectors[kept[: len(vectors)]],
            None if words is None else words.within(kept),
        )


def read_sample(
    place: Place, where: Where | None, size: int, embedder: Embedder | None, vocabulary: Vocabulary | None
) -> Sample:
    """Up to ``size`` chunks of what meets the condition, with their vectors if there is an ``embedder``, and words if
    there is a ``vocabulary``.

    Vectors are read where they are that embedder's, else made of a few chunks. Raises `ModelError`, `StoreError`.
    """
    documents = sample_documents(place, where, size)
    vectors = None
    if embedder is not None:
        vectors = _stored_vectors(place, documents, embedder)
        if vectors is None:
            first = spread(documents, EMBEDDED)
            chosen = {id(document) for document in first}
            documents = [*first, *(document for document in documents if id(document) not in chosen)]
            vectors = embedder.embed([document.content for document in first])
    words = None if vocabulary is None else Words.of((document.content for document in documents), vocabulary)
    return Sample([document.metadata for document in documents], vectors, words)


def _stored_vectors(place: Place, documents: Sequence[Document], embedder: Embedder) -> Vectors | None:
    if not documents:
        return np.empty((0, 0), dtype=np.float32)
    if not isinstance(place, LibraryStore):
        return None
    try:
        check_embedder(place, embedder.fingerprint)
        return place.vectors([document.id for document in documents])
    except EmbeddingMismatchError:
        return None


def sample_documents(place: Place, where: Where | None, size: int) -> list[Document]:
    """Up to ``size`` chunks of what meets the condition, spread evenly over its sources."""
    if isinstance(place, Sampled):
        condition = None if where is None else normalise(where)
        found = place.sample(size)
        return [document for document in found if condition is None or matches(condition, document.metadata)]
    return place.get(_ids_by_sources(place, where, size)) or place.get(_ids_by_scan(place, where, size))


def _ids_by_sources(store: DocumentStore, where: Where | None, size: int) -> list[str]:
    """Ids that follow from the list of sources, without reading any chunk; wrong if the caller chose other ids."""
    condition = {} if where is None else normalise(where)
    if not isinstance(store, LibraryStore) or not condition.keys() <= {"collection"}:
        return []
    only = condition.get("collection", {}).get("$eq")
    chunks = [
        (info, index)
        for info in store.sources(only)
        if not condition or matches(condition, {"collection": info.collection})
        for index in range(info.chunks)
    ]
    return [chunk_id(info.collection, info.source_file, index) for info, index in spread(chunks, size)]


def _ids_by_scan(store: DocumentStore, where: Where | None, size: int) -> list[str]:
    return spread([document.id for document in store.scan(where)], size)


def spread(items: Sequence[Item], size: int) -> list[Item]:
    """Up to ``size`` items, as far from each other as they can be."""
    step = max(1.0, len(items) / size)
    return [items[int(number * step)] for number in range(min(size, len(items)))]
