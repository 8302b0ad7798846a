"""Some of the chunks of a target, spread evenly over its sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeGuard, TypeVar

import numpy as np

from ragistry.errors import StoreError
from ragistry.protocols import DocumentStore, SourceStore, VectorLookup
from ragistry.types import Document, Where
from ragistry.utils.ids import chunk_id
from ragistry.utils.where import matches, normalise

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

Item = TypeVar("Item")


class VectorStore(DocumentStore, VectorLookup, Protocol):
    """A store that gives its vectors back."""


class Sample(NamedTuple):
    """Some of the chunks of a target: vectors ``(n, d)`` float32 of unit length, and the metadata of each."""

    vectors: Vectors
    metadatas: list[dict[str, Any]]

    def within(self, where: Where | None) -> Vectors:
        """The vectors of what meets a condition in its normal form."""
        if where is None:
            return self.vectors
        return self.vectors[[matches(where, metadata) for metadata in self.metadatas]]


def gives_vectors(store: DocumentStore) -> TypeGuard[VectorStore]:
    """Whether the store can be asked for vectors."""
    return isinstance(store, VectorLookup)


def read_sample(store: VectorStore, where: Where | None, size: int) -> Sample | None:
    """Up to ``size`` chunks of what meets the condition; None where they are gone before their vectors are read."""
    documents = sample_documents(store, where, size)
    if not documents:
        return Sample(np.empty((0, 0), dtype=np.float32), [])
    try:
        return Sample(store.vectors([found.id for found in documents]), [found.metadata for found in documents])
    except StoreError:
        return None


def sample_documents(store: DocumentStore, where: Where | None, size: int) -> list[Document]:
    """Up to ``size`` chunks of what meets the condition, spread evenly over its sources."""
    return store.get(_ids_by_sources(store, where, size)) or store.get(_ids_by_scan(store, where, size))


def _ids_by_sources(store: DocumentStore, where: Where | None, size: int) -> list[str]:
    """Ids that follow from the list of sources, without reading any chunk; somebody may have chosen others."""
    condition = {} if where is None else normalise(where)
    if not isinstance(store, SourceStore) or not condition.keys() <= {"collection"}:
        return []
    chunks = [
        (info, index)
        for info in store.sources()
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
