"""The plainest store there is: a dictionary and exact arithmetic. What ChromaDB does is compared with it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ragistry.errors import (
    DuplicateChunkIDError,
    EmbeddingMismatchError,
    InvalidFilterError,
    InvalidLimitError,
    StoreError,
)
from ragistry.types import Document, EmbeddedChunk, EmbedderFingerprint, SourceInfo, StageScore, Where
from ragistry.utils.chunk_checks import check_chunks, check_source
from ragistry.utils.fingerprints import check_same_embedder
from ragistry.utils.ids import chunk_id, id_of
from ragistry.utils.limits import check_top_k
from ragistry.utils.vectors import query_vector as unit_query
from ragistry.utils.where import matches, normalise


@dataclass(frozen=True)
class Row:
    text: str
    metadata: dict[str, Any]
    vector: Any


class MemoryStore:
    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.committed: dict[tuple[str, str], int] = {}
        self.embedder: EmbedderFingerprint | None = None
        self.dimension: int | None = None
        self.closed = False

    def add_documents(self, chunks: Sequence[EmbeddedChunk], *, ids: Sequence[str] | None = None) -> int:
        self._check_open()
        checked = check_chunks(chunks, ids, dimension=self.dimension)
        self.dimension = checked.vectors.shape[1] if checked.ids else self.dimension
        rows = zip(checked.texts, checked.metadatas, checked.vectors, strict=True)
        for identity, row in zip(checked.ids, rows, strict=True):
            self.committed = {key: n for key, n in self.committed.items() if chunk_id(*key, 0) != identity}
            self.rows[identity] = Row(*row)
        return len(checked.ids)

    def search(self, query_vector: Sequence[float], top_k: int = 10, *, where: Where | None = None) -> list[Document]:
        self._check_open()
        check_top_k(top_k)
        ids = self._ids(where)
        vector = unit_query(query_vector, self.dimension)
        if not self.rows:
            logging.getLogger(__name__).warning("the store is empty")
        cosine = {identity: float(self.rows[identity].vector @ vector) for identity in ids}
        nearest = sorted(ids, key=lambda identity: (-cosine[identity], identity))[:top_k]
        scores = {identity: float(np.clip(cosine[identity], 0, 1)) for identity in nearest}
        return [
            replace(self._document(i), score=scores[i], scores=(StageScore("dense", "cosine", scores[i]),))
            for i in sorted(nearest, key=lambda i: (-scores[i], i))
        ]

    def get(self, ids: Sequence[str]) -> list[Document]:
        return [self._document(identity) for identity in ids if identity in self.rows]

    def vectors(self, ids: Sequence[str]) -> Any:
        if missing := [identity for identity in ids if identity not in self.rows]:
            raise StoreError(f"not stored: {missing!r}")
        return np.array([self.rows[identity].vector for identity in ids], dtype=np.float32)

    def scan(self, where: Where | None = None, *, batch: int = 1000) -> Iterator[Document]:
        if batch < 1:
            raise InvalidLimitError(f"a batch of {batch!r}")
        ids = self._ids(where)
        return (document for identity in ids for document in self.get([identity]))

    def count(self, where: Where | None = None) -> int:
        return len(self._ids(where))

    def delete(self, *, ids: Sequence[str] | None = None, where: Where | None = None) -> int:
        if (ids is None) == (where is None):
            raise InvalidFilterError("ids or where")
        chosen = set(ids if ids is not None else self._ids(where)) & set(self.rows)
        for identity in chosen:
            del self.rows[identity]
        return len(chosen)

    def clear_collection(self) -> None:
        self.__init__()

    def close(self) -> None:
        self.closed = True

    def use_embedder(self, fingerprint: EmbedderFingerprint) -> None:
        self.check_embedder(fingerprint)
        self.embedder = self.embedder or fingerprint
        self.dimension = fingerprint.dimension

    def check_embedder(self, fingerprint: EmbedderFingerprint) -> None:
        if self.embedder is not None:
            check_same_embedder(self.embedder, fingerprint)
        if self.dimension not in (None, fingerprint.dimension):
            raise EmbeddingMismatchError(f"{self.dimension} numbers, not {fingerprint.dimension}")

    def replace_source(self, collection: str, source_file: str, chunks: Sequence[EmbeddedChunk]) -> None:
        check_chunks(chunks, dimension=self.dimension)
        check_source(collection, source_file, chunks)
        self.delete(where={"collection": collection, "source_file": source_file})
        self.add_documents(chunks)
        self.committed[collection, source_file] = len(chunks)

    def move_source(self, source_file: str, from_collection: str, to_collection: str) -> int:
        ids = self._ids({"collection": from_collection, "source_file": source_file})
        if ids and from_collection != to_collection:
            if self.count({"collection": to_collection, "source_file": source_file}):
                raise DuplicateChunkIDError(f"{to_collection!r} has the source {source_file!r}")
            for identity in ids:
                row = self.rows.pop(identity)
                metadata = {**row.metadata, "collection": to_collection}
                self.rows[id_of(row.text, metadata)] = Row(row.text, metadata, row.vector)
            self.committed[to_collection, source_file] = self.committed.pop((from_collection, source_file), -1)
        return len(ids)

    def sources(self, collection: str | None = None) -> list[SourceInfo]:
        rows = [row.metadata for row in self.rows.values() if "source_file" in row.metadata]
        keys = {(m["collection"], m["source_file"]) for m in rows if collection in (None, m["collection"])}
        return [self._info(*key) for key in sorted(keys)]

    def _info(self, collection: str, source_file: str) -> SourceInfo:
        ids = self._ids({"collection": collection, "source_file": source_file})
        first = self.rows.get(chunk_id(collection, source_file, 0))
        whole = first is not None and self.committed.get((collection, source_file)) == len(ids)
        metadata = (first or self.rows[ids[0]]).metadata
        return SourceInfo(
            collection, source_file, len(ids), metadata["source"],
            metadata["source_hash"] if whole else "", metadata["ingested_at"] if first else 0.0,
            metadata.get("source_path", "") if first else "",
        )  # fmt: skip

    def _ids(self, where: Where | None) -> list[str]:
        condition = None if where is None else normalise(where)
        return [i for i, row in self.rows.items() if condition is None or matches(condition, row.metadata)]

    def _document(self, identity: str) -> Document:
        row = self.rows[identity]
        return Document(row.text, dict(row.metadata), 0.0, identity)

    def _check_open(self) -> None:
        if self.closed:
            raise StoreError("the store is closed")
