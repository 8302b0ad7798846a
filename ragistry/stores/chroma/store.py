"""`ChromaStore`: one ChromaDB collection, in a directory of this process or on a server."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from pydantic import Field

from ragistry.chunking.breadcrumb import searched_text
from ragistry.config.files import ChromaServer
from ragistry.config.numbers import Number, Whole
from ragistry.errors import ConfigError, EmbeddingMismatchError, StoreCorruptError, StoreError, UnsupportedError
from ragistry.stores.chroma import client, rows, sources
from ragistry.stores.chroma.errors import OTHER_COLLECTION, translated
from ragistry.stores.chunk_checks import as_list, check_chunks, check_source
from ragistry.stores.records import check_deletion, check_stored
from ragistry.stores.vectors import query_vector as unit_query
from ragistry.types import (
    Chunk,
    Document,
    EmbeddedChunk,
    EmbedderFingerprint,
    Repair,
    SourceInfo,
    Where,
    ranked,
)
from ragistry.utils.fingerprints import check_same_embedder, from_json, to_json
from ragistry.utils.limits import check_batch, check_ids, check_top_k
from ragistry.utils.metadata import OWN_PREFIX
from ragistry.utils.where import normalise

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

    from ragistry.protocols import Vectors

log = logging.getLogger(__name__)

BATCH_SIZE = 1_000
"""Number of chunks per write. ChromaDB blocks all other threads during a write; smaller batches are slower in total."""
SEARCHES = 3
"""Number of attempts at a search: while another client deletes chunks, a server fails as if its index were damaged."""
EMBEDDER = f"{OWN_PREFIX}embedder"
LOCAL = "use the local store (`store: {use: local}` in vector_stores.yaml)"


class ChromaStore:
    """Chunks and vectors in one ChromaDB collection, in cosine space; vectors are kept at unit length.

    ``path``: a directory, which one process at a time may open; others get `StoreLockedError` after ``lock_timeout``
    seconds. ``host``: address of a server, ``http://HOST:PORT``; ``timeout``: seconds per request. ``batch_size``:
    chunks per write. Searches use ChromaDB's approximate index.

    It keeps these promises of the local store:

    - Old or new: a source that fits in one batch is replaced at once. Of a larger one, a search finds one version,
      possibly incomplete; after an interruption it is listed without its hash, and the next ingest completes it.
    - One writer: for a directory. A server has many, without order.
    - Bad input gets one line.

    A source is embedded before it is written, so it is found by nothing until then.

    It does not keep: acknowledged writes survive (one in seven kills of a writer destroys the index; opening then
    raises `StoreCorruptError` if the damage is detected), indexes can be rebuilt, a damaged database is salvaged,
    deleting erases, and reading during a write (in a directory).
    """

    abilities: frozenset[str] = frozenset()

    class Config(ChromaServer):  # type: ignore[misc, valid-type] # made of the settings
        """The settings of ``store: {use: chroma}``."""

        path: str | None = Field(default=None, description="folder of the database")
        headers: dict[str, str] = Field(default={}, repr=False, description="HTTP headers of each request")
        batch_size: Whole = Field(default=BATCH_SIZE, ge=1, description="number of chunks per write")
        lock_timeout: Number = Field(default=2.0, ge=0, description="seconds to wait for another process")

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        host: str | None = None,
        headers: Mapping[str, str] | None = None,
        tenant: str = "default_tenant",
        database: str = "default_database",
        timeout: float = 30.0,
        collection: str = "documents",
        batch_size: int = BATCH_SIZE,
        lock_timeout: float = 2.0,
    ) -> None:
        if batch_size < 1:
            raise ConfigError(f"batch_size must be at least 1, got {batch_size!r}")
        if path is not None and host is None:
            self._connection = client.open_directory(path, lock_timeout)
        elif host is not None and path is None:
            self._connection = client.connect(host, headers=headers, tenant=tenant, database=database, timeout=timeout)
        else:
            raise ConfigError(f"ChromaStore takes a path or a host, one of the two; got {path!r} and {host!r}")
        self._name = collection
        self._place = f"{self._connection.place}, collection {collection!r}"
        self._pid = os.getpid()
        self._closed = False
        self._turn = threading.RLock()
        try:
            with translated(self._place):
                self._batch_size = min(batch_size, self._connection.client.get_max_batch_size())
                self._collection = client.open_collection(self._connection.client, collection, self._place)
                self._embedder = _embedder_of(self._collection)
                if path is not None:
                    client.check_index(self._collection, self._place)
        except BaseException:
            self._connection.close()
            raise

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self._place}: the store is closed; open it again")
        if self._pid != os.getpid():
            raise StoreError(
                f"{self._place}: opened by process {self._pid}, and ChromaDB hangs in a process forked from it; "
                "start the process with the 'spawn' method, or open the store after the fork"
            )

    @contextmanager
    def _use(self) -> Iterator[Collection]:
        """Provide the collection of the open store, and translate errors."""
        self._check_open()
        with translated(self._place):
            yield self._collection

    @contextmanager
    def writing(self) -> Iterator[None]:
        self._check_open()
        lock = self._connection.lock
        with self._turn if lock is None else lock.writing():
            yield

    @contextmanager
    def _write(self) -> Iterator[Collection]:
        with self.writing(), self._use() as chroma:
            yield chroma

    @property
    def _dimension(self) -> int | None:
        return self._embedder.dimension if self._embedder else None

    def add_documents(self, chunks: Sequence[EmbeddedChunk], *, ids: Sequence[str] | None = None) -> int:
        checked = check_chunks(chunks, ids, dimension=self._dimension)
        with self._write() as chroma:
            rows.write(chroma, checked, self._batch_size)
        return len(checked.ids)

    def search(self, query_vector: Sequence[float], top_k: int = 10, *, where: Where | None = None) -> list[Document]:
        check_top_k(top_k)
        condition = normalise(where)
        vector = unit_query(query_vector, self._dimension)
        for attempt in range(1, SEARCHES + 1):
            try:
                with self._use() as chroma:
                    hits = sources.search(chroma, vector, top_k, condition)
                    if not hits and chroma.count() == 0:
                        log.warning("%s: the store is empty; ingest something first", self._place)
                break
            except StoreCorruptError:
                if attempt == SEARCHES:
                    raise
        return ranked(hit.document() for hit in hits)

    def get(self, ids: Sequence[str]) -> list[Document]:
        ids = check_ids(ids)
        with self._use() as chroma:
            found = rows.read(chroma, ids)
        return [Document(found[i].text, found[i].public_metadata(), 0.0, i) for i in ids if i in found]

    def vectors(self, ids: Sequence[str]) -> Vectors:
        ids = check_ids(ids)
        with self._use() as chroma:
            found = dict(rows.fetched(chroma, ids, "embeddings"))
        check_stored(self._place, ids, found)
        vectors = [found[identity] for identity in ids] or np.empty((0, self._dimension or 0))
        return np.asarray(vectors, dtype=np.float32)

    def known_vectors(self, collection: str, source_file: str, chunks: Sequence[Chunk]) -> dict[str, Vectors]:
        wanted = {searched_text(*chunk) for chunk in chunks}
        with self._use() as chroma:
            ids = rows.matching_ids(chroma, sources.of_source(collection, source_file))
            found = list(rows.fetched(chroma, ids, "documents", "metadatas", "embeddings"))
        vectors = {
            searched_text(text or "", metadata or {}): np.asarray(vector, dtype=np.float32)
            for _, text, metadata, vector in found
        }
        return {text: vector for text, vector in vectors.items() if text in wanted}

    def scan(self, where: Where | None = None, *, batch: int = 1000) -> Iterator[Document]:
        condition = normalise(where)
        check_batch(batch)
        with self._use() as chroma:
            ids = rows.matching_ids(chroma, condition)
        return (document for page in rows.batched(ids, batch) for document in self.get(page))

    def count(self, where: Where | None = None) -> int:
        condition = normalise(where)
        with self._use() as chroma:
            return chroma.count() if condition is None else len(rows.matching_ids(chroma, condition))

    def delete(self, *, ids: Sequence[str] | None = None, where: Where | None = None) -> int:
        known, condition = check_deletion(ids, where)
        with self._write() as chroma:
            return rows.delete(chroma, known if condition is None else rows.matching_ids(chroma, condition))

    def embedder(self) -> EmbedderFingerprint | None:
        if self._embedder is None:  # another client of the server may have recorded one meanwhile
            with self._use():
                self._embedder = _embedder_of(self._connection.client.get_collection(self._name, None))
        return self._embedder

    def use_embedder(self, fingerprint: EmbedderFingerprint) -> None:
        recorded = self.embedder()
        if recorded is not None:
            check_same_embedder(recorded, fingerprint, instead=OTHER_COLLECTION)
            return
        with self._write() as chroma:
            stored = chroma.get(limit=1, include=["embeddings"])["embeddings"]
            if stored is not None and len(stored) and len(stored[0]) != fingerprint.dimension:
                raise EmbeddingMismatchError(
                    f"{self._place}: the stored vectors have {len(stored[0])} numbers, those of {fingerprint.model!r} "
                    f"have {fingerprint.dimension}; set embed_model in documents.yaml to the embedder that the store "
                    f"was filled with, or {OTHER_COLLECTION}"
                )
            # ChromaDB refuses a space for an existing collection
            others = {key: value for key, value in (chroma.metadata or {}).items() if not key.startswith("hnsw:")}
            chroma.modify(metadata={**others, EMBEDDER: to_json(fingerprint)})
        self._embedder = fingerprint

    def replace_source(self, collection: str, source_file: str, chunks: Sequence[EmbeddedChunk]) -> None:
        chunks = as_list("chunks", chunks)
        checked = check_chunks(chunks, dimension=self._dimension)
        check_source(collection, source_file, chunks)
        with self._write() as chroma:
            sources.put(chroma, collection, source_file, checked, self._batch_size)

    def move_source(self, source_file: str, from_collection: str, to_collection: str) -> int:
        with self._write() as chroma:
            return sources.move(chroma, source_file, from_collection, to_collection, self._batch_size)

    def move_collection(self, from_collection: str, to_collection: str) -> int:
        """Move source by source: an interrupted move leaves some in each collection; repeat it to complete it."""
        with self._write() as chroma:
            names = [info.source_file for info in sources.list_sources(chroma, from_collection)]
            if from_collection != to_collection:
                existing = {info.source_file for info in sources.list_sources(chroma, to_collection)}
                for name in sorted(existing.intersection(names)):
                    sources.check_free(chroma, name, from_collection, to_collection)
            return sum(sources.move(chroma, name, from_collection, to_collection, self._batch_size) for name in names)

    def sources(self, collection: str | None = None) -> list[SourceInfo]:
        with self._use() as chroma:
            return sources.list_sources(chroma, collection)

    def clear_collection(self) -> None:
        with self._write() as chroma:
            # without this, lists in the metadata of old rows would reappear in new ones
            rows.delete(chroma, rows.matching_ids(chroma, None))
            self._connection.client.delete_collection(self._name)
            self._collection = client.open_collection(self._connection.client, self._name, self._place)
            self._embedder = None

    def flush(self) -> None:
        """Do nothing: ChromaDB maintains its own index."""

    def search_text(self, *_: object, **__: object) -> list[Document]:
        self._refuse("does not search words", f"use 'naive', as the default and as a base, or {LOCAL}")

    def unknown_words(self, *_: object, **__: object) -> list[str]:
        self._refuse("does not search words", f"use {LOCAL}")

    def verify(self) -> list[str]:
        self._refuse("keeps its own files", f"use ChromaDB's own tools, or {LOCAL}")

    def repair(self) -> Repair:
        self._refuse("keeps its own files", f"use ChromaDB's own tools, or {LOCAL}")

    def _refuse(self, why: str, remedy: str) -> NoReturn:
        raise UnsupportedError(f"{self._place}: this store {why}; {remedy}")

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._pid == os.getpid():
            self._connection.close()


def _embedder_of(chroma: Collection) -> EmbedderFingerprint | None:
    text = (chroma.metadata or {}).get(EMBEDDER)
    return None if text is None else from_json(str(text))
