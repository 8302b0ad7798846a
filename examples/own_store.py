"""A custom store: chunks in a dictionary, exact search, nothing on disk."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ragistry.chunking.breadcrumb import searched_text
from ragistry.errors import (
    DuplicateChunkIDError,
    EmbeddingMismatchError,
    InvalidFilterError,
    InvalidLimitError,
    StoreError,
    UnsupportedError,
)
from ragistry.stores.chunk_checks import check_chunks, check_source
from ragistry.stores.records import source_info
from ragistry.stores.vectors import query_vector as unit_vector
from ragistry.types import Chunk, Document, EmbeddedChunk, EmbedderFingerprint, SourceInfo, StageScore, Where
from ragistry.utils.fingerprints import check_same_embedder
from ragistry.utils.ids import chunk_id, id_of
from ragistry.utils.limits import check_top_k
from ragistry.utils.metadata import shared_metadata
from ragistry.utils.where import matches, normalise

Vectors = NDArray[np.float32]


class DictStore:
    """For a few thousand chunks of one process. ``rows``: id → (text, metadata, vector of unit length)."""

    abilities = frozenset[str]()  # only storing and dense search

    def __init__(self) -> None:
        self.clear_collection()
        self.closed = False

    def clear_collection(self) -> None:
        self.rows: dict[str, tuple[str, Mapping[str, Any], Vectors]] = {}
        self.whole: dict[tuple[str, str], int] = {}
        self.recorded: EmbedderFingerprint | None = None
        self.dimension: int | None = None

    def close(self) -> None:
        self.closed = True

    def add_documents(self, chunks: Sequence[EmbeddedChunk], *, ids: Sequence[str] | None = None) -> int:
        self._check_open()
        checked = check_chunks(chunks, ids, dimension=self.dimension)  # reports all errors before the first write
        for identity, text, metadata, vector in zip(
            checked.ids, checked.texts, checked.metadatas, checked.vectors, strict=True
        ):
            self.rows[identity] = (text, metadata, vector)
            self.dimension = len(vector)
            self.whole = {key: count for key, count in self.whole.items() if chunk_id(*key, 0) != identity}
        return len(checked.ids)

    def search(self, query_vector: Sequence[float], top_k: int = 10, *, where: Where | None = None) -> list[Document]:
        self._check_open()
        check_top_k(top_k)
        unit = unit_vector(query_vector, self.dimension)
        if not self.rows:
            logging.getLogger("ragistry.own_store").warning("the store is empty; ingest something first")
        cosines = {identity: float(np.clip(self.rows[identity][2] @ unit, -1, 1)) for identity in self._ids(where)}
        nearest = sorted(cosines, key=lambda identity: (-cosines[identity], identity))[:top_k]
        found = [self._document(identity, max(0.0, cosines[identity])) for identity in nearest]
        return sorted(found, key=lambda document: (-document.score, document.id))

    def get(self, ids: Sequence[str]) -> list[Document]:
        return [replace(self._document(i, 0.0), scores=()) for i in ids if i in self.rows]

    def vectors(self, ids: Sequence[str]) -> Vectors:
        if missing := [identity for identity in ids if identity not in self.rows]:
            raise StoreError(f"no chunks {missing[:10]!r} in the store; ask for ids that it has")
        return np.array([self.rows[identity][2] for identity in ids], dtype=np.float32)

    def scan(self, where: Where | None = None, *, batch: int = 1000) -> Iterator[Document]:
        if batch < 1:
            raise InvalidLimitError(f"a batch of {batch!r} chunks; ask for 1 or more")
        return (document for identity in self._ids(where) for document in self.get([identity]))

    def count(self, where: Where | None = None) -> int:
        return len(self._ids(where))

    def delete(self, *, ids: Sequence[str] | None = None, where: Where | None = None) -> int:
        if (ids is None) == (where is None):
            raise InvalidFilterError("delete needs ids or where; give one of the two")
        chosen = set(self._ids(where) if ids is None else ids) & set(self.rows)
        for identity in chosen:
            del self.rows[identity]
        return len(chosen)

    def embedder(self) -> EmbedderFingerprint | None:
        return self.recorded

    def use_embedder(self, fingerprint: EmbedderFingerprint) -> None:
        if self.recorded is not None:
            check_same_embedder(self.recorded, fingerprint)
        if self.dimension not in (None, fingerprint.dimension):
            raise EmbeddingMismatchError(f"the store has {self.dimension} numbers a vector; clear it first")
        self.recorded, self.dimension = self.recorded or fingerprint, fingerprint.dimension

    def replace_source(self, collection: str, source_file: str, chunks: Sequence[EmbeddedChunk]) -> None:
        check_source(collection, source_file, chunks)
        check_chunks(chunks, dimension=self.dimension)
        self.delete(where={"collection": collection, "source_file": source_file})
        self.add_documents(chunks)
        self.whole[collection, source_file] = len(chunks)

    def move_source(self, source_file: str, from_collection: str, to_collection: str) -> int:
        ids = self._ids({"collection": from_collection, "source_file": source_file})
        if not ids or from_collection == to_collection:
            return len(ids)
        if self.count({"collection": to_collection, "source_file": source_file}):
            raise DuplicateChunkIDError(f"{to_collection!r} has a source {source_file!r}; delete one of the two")
        for text, metadata, vector in [self.rows.pop(identity) for identity in ids]:
            moved = {**metadata, "collection": to_collection}
            self.rows[id_of(text, moved)] = (text, moved, vector)
        self.whole[to_collection, source_file] = self.whole.pop((from_collection, source_file), -1)
        return len(ids)

    def move_collection(self, from_collection: str, to_collection: str) -> int:
        names = [info.source_file for info in self.sources(from_collection)]
        taken = {info.source_file for info in self.sources(to_collection)}.intersection(names)
        if taken and from_collection != to_collection:
            raise DuplicateChunkIDError(f"{to_collection!r} has a source {min(taken)!r}; delete one of the two")
        return sum(self.move_source(name, from_collection, to_collection) for name in names)

    def known_vectors(self, collection: str, source_file: str, chunks: Sequence[Chunk]) -> dict[str, Vectors]:
        ids = self._ids({"collection": collection, "source_file": source_file})
        known = {searched_text(text, metadata): vector for text, metadata, vector in map(self.rows.__getitem__, ids)}
        return {text: known[text] for text in (searched_text(*chunk) for chunk in chunks) if text in known}

    def sources(self, collection: str | None = None) -> list[SourceInfo]:
        metadatas = [metadata for _, metadata, _ in self.rows.values() if "source_file" in metadata]
        keys = {(m["collection"], m["source_file"]) for m in metadatas if collection in (None, m["collection"])}
        return [self._info(*key) for key in sorted(keys)]

    def _info(self, collection: str, source_file: str) -> SourceInfo:
        ids = self._ids({"collection": collection, "source_file": source_file})
        shared = shared_metadata([self.rows[identity][1] for identity in ids])
        has_first = chunk_id(collection, source_file, 0) in self.rows
        # Only a complete source has its hash; without it, the next ingest reads the source again.
        is_whole = has_first and self.whole.get((collection, source_file)) == len(ids)
        return source_info((collection, source_file), len(ids), shared, is_whole=is_whole)

    def writing(self) -> AbstractContextManager[None]:
        return nullcontext()

    def flush(self) -> None:
        pass

    def _unsupported(self, *_: Any, **__: Any) -> NoReturn:
        raise UnsupportedError("DictStore only searches vectors; use the local store for anything more")

    search_text = unknown_words = reembed = verify = repair = _unsupported

    def _ids(self, where: Where | None) -> list[str]:
        condition = None if where is None else normalise(where)
        return [i for i, (_, metadata, _) in self.rows.items() if condition is None or matches(condition, metadata)]

    def _check_open(self) -> None:
        if self.closed:
            raise StoreError("the store is closed; make another one")

    def _document(self, identity: str, score: float) -> Document:
        text, metadata, _ = self.rows[identity]
        return Document(text, dict(metadata), score, identity, (StageScore("dense", "cosine", score),))
