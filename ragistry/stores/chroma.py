"""ChromaDB as a store: a directory of this process, or a server."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from ragistry.errors import ConfigError, InvalidCollectionNameError, InvalidFilterError, StoreError
from ragistry.stores import chroma_files as files
from ragistry.stores import chroma_records as records
from ragistry.stores import chroma_sources as sources
from ragistry.stores.chroma_client import DEFAULT_DATABASE, DEFAULT_TENANT, Connection, connect, open_directory
from ragistry.stores.chroma_collection import (
    check_dimension,
    check_index,
    embedder_of,
    open_collection,
    record_embedder,
)
from ragistry.stores.chroma_errors import ANEW, translated
from ragistry.stores.chroma_search import search
from ragistry.types import Document, EmbeddedChunk, EmbedderFingerprint, SourceInfo, Where
from ragistry.utils.chunk_checks import check_chunks, check_source, listed
from ragistry.utils.fingerprints import check_same_embedder
from ragistry.utils.forking import brief_rlock
from ragistry.utils.limits import check_batch, check_ids, check_top_k
from ragistry.utils.shown import shown
from ragistry.utils.vectors import query_vector as unit_query
from ragistry.utils.where import normalise

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

    from ragistry.protocols import Vectors

log = logging.getLogger(__name__)

BATCH_SIZE = 1_000
"""Chunks a write. ChromaDB lets no other thread run while it writes; smaller batches are slower in all."""


class ChromaStore:
    """Chunks and vectors in one ChromaDB collection, cosine space; vectors are kept at unit length.

    ``path``: a directory; one process at a time has it, others get `StoreLockedError` after ``lock_timeout``
    seconds. `connect` opens a server instead. ``batch_size``: chunks written at once, in one piece; a larger
    `add_documents` is written in several. Searches come from ChromaDB's approximate index. Not for use in a forked
    child of the process that opened it.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        collection: str = "documents",
        batch_size: int = BATCH_SIZE,
        lock_timeout: float = 2.0,
    ) -> None:
        _check(collection, batch_size)
        self._open(open_directory(path, lock_timeout), collection, batch_size)

    @classmethod
    def connect(
        cls,
        host: str,
        *,
        port: int = 8000,
        ssl: bool = False,
        headers: Mapping[str, str] | None = None,
        tenant: str = DEFAULT_TENANT,
        database: str = DEFAULT_DATABASE,
        timeout: float = 30.0,
        collection: str = "documents",
        batch_size: int = BATCH_SIZE,
    ) -> ChromaStore:
        """Open a collection of a ChromaDB server; ``host`` may be a URL, ``timeout`` is in seconds a request.

        Raises `ChromaDBConnectionError` where there is no server, or none that answers.
        """
        _check(collection, batch_size)
        store = cls.__new__(cls)
        connection = connect(host, port, ssl=ssl, headers=headers, tenant=tenant, database=database, timeout=timeout)
        store._open(connection, collection, batch_size)
        return store

    def _open(self, connection: Connection, name: str, batch_size: int) -> None:
        self._connection, self._name = connection, name
        self._place = f"{connection.place}, collection {name!r}"
        self._pid = os.getpid()
        self._closed = False
        self._writing = brief_rlock()
        try:
            with translated(self._place):
                self._batch_size = min(batch_size, connection.client.get_max_batch_size())
                self._rows = open_collection(connection.client, name, self._place)
                self._embedder = embedder_of(self._rows)
                if connection.directory is not None:
                    files.check_same_collection(connection.directory, name, str(self._rows.id))
                    check_index(self._rows, self._place)
        except BaseException:
            connection.close()
            raise

    def __repr__(self) -> str:
        return f"<ChromaStore: {self._place}>"

    @contextmanager
    def _use(self) -> Iterator[Collection]:
        """The collection, while it may be used; its errors become ours."""
        if self._closed:
            raise StoreError(f"{self._place}: the store is closed; open it again")
        if self._pid != os.getpid():
            raise StoreError(
                f"{self._place}: opened by process {self._pid}, which forked this one, where it would hang; "
                "start the process with the 'spawn' method, or open the store after the fork"
            )
        with translated(self._place):
            yield self._rows

    @contextmanager
    def _write(self) -> Iterator[Collection]:
        with self._use() as rows, self._writing:
            if self._connection.directory is not None:
                files.record(self._connection.directory, self._name, str(rows.id))
            yield rows

    @property
    def _dimension(self) -> int | None:
        return self._embedder.dimension if self._embedder else None

    def add_documents(self, chunks: Sequence[EmbeddedChunk], *, ids: Sequence[str] | None = None) -> int:
        checked = check_chunks(chunks, ids, dimension=self._dimension)
        with self._write() as rows:
            records.write(rows, checked, self._batch_size)
        return len(checked.ids)

    def search(self, query_vector: Sequence[float], top_k: int = 10, *, where: Where | None = None) -> list[Document]:
        check_top_k(top_k)
        condition = None if where is None else normalise(where)
        vector = unit_query(query_vector, self._dimension)
        with self._use() as rows:
            documents = search(rows, vector, top_k, condition)
            if not documents and rows.count() == 0:
                log.warning("%s: the store is empty; ingest something first", self._place)
        return documents

    def get(self, ids: Sequence[str]) -> list[Document]:
        ids = check_ids(ids)
        with self._use() as rows:
            found = records.rows(rows, ids)
        return [
            Document(found[identity].text, found[identity].shown(), 0.0, identity)
            for identity in ids
            if identity in found
        ]

    def vectors(self, ids: Sequence[str]) -> Vectors:
        ids = check_ids(ids)
        with self._use() as rows:
            found = records.vectors(rows, ids)
        missing = [identity for identity in ids if identity not in found]
        if missing:
            raise StoreError(f"{self._place}: {len(missing)} of the ids are not stored: {shown(missing[:3])}")
        return np.array([found[identity] for identity in ids], dtype=np.float32).reshape(len(ids), -1)

    def scan(self, where: Where | None = None, *, batch: int = 1000) -> Iterator[Document]:
        condition = None if where is None else normalise(where)
        check_batch(batch)
        with self._use() as rows:
            ids = records.matching_ids(rows, condition)
        return (document for page in records.batched(ids, batch) for document in self.get(page))

    def count(self, where: Where | None = None) -> int:
        condition = None if where is None else normalise(where)
        with self._use() as rows:
            return rows.count() if condition is None else len(records.matching_ids(rows, condition))

    def delete(self, *, ids: Sequence[str] | None = None, where: Where | None = None) -> int:
        if (ids is None) == (where is None):
            raise InvalidFilterError("delete takes ids or where, one of the two; clear_collection() removes everything")
        condition = None if where is None else normalise(where)
        with self._write() as rows:
            return records.delete(rows, check_ids(ids) if ids is not None else records.matching_ids(rows, condition))

    def use_embedder(self, fingerprint: EmbedderFingerprint) -> None:
        self.check_embedder(fingerprint)
        if self._embedder is None:
            with self._write() as rows:
                record_embedder(rows, fingerprint)
            self._embedder = fingerprint

    def check_embedder(self, fingerprint: EmbedderFingerprint) -> None:
        if self._embedder is None:  # somebody else may have recorded one meanwhile
            with self._use() as rows:
                self._embedder = embedder_of(self._connection.client.get_collection(self._name, None))
                check_dimension(rows, fingerprint, self._place)
        if self._embedder is not None:
            check_same_embedder(self._embedder, fingerprint, instead=ANEW)

    def replace_source(self, collection: str, source_file: str, chunks: Sequence[EmbeddedChunk]) -> None:
        chunks = listed("chunks", chunks)
        checked = check_chunks(chunks, dimension=self._dimension)
        check_source(collection, source_file, chunks)
        with self._write() as rows:
            sources.put(rows, collection, source_file, checked, self._batch_size)

    def move_source(self, source_file: str, from_collection: str, to_collection: str) -> int:
        with self._write() as rows:
            return sources.move(rows, source_file, from_collection, to_collection, self._batch_size)

    def sources(self, collection: str | None = None) -> list[SourceInfo]:
        with self._use() as rows:
            return sources.listed(rows, collection)

    def clear_collection(self) -> None:
        with self._use(), self._writing:
            directory = self._connection.directory
            if directory is not None:
                files.record(directory, self._name, None)
            self._connection.client.delete_collection(self._name)
            self._rows = open_collection(self._connection.client, self._name, self._place)
            self._embedder = None
            if directory is not None:
                files.remove_orphans(directory)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._pid == os.getpid():
            self._connection.close()


def _check(collection: str, batch_size: int) -> None:
    if batch_size < 1:
        raise ConfigError(f"batch_size must be at least 1, got {batch_size!r}")
    if not re.fullmatch(r"[a-zA-Z0-9][a-zA-Z0-9._-]{1,510}[a-zA-Z0-9]", collection):
        raise InvalidCollectionNameError(
            f"{collection!r} cannot be the name of a collection; use 3 to 512 letters, digits, '.', '_' and '-', "
            "a letter or digit at both ends"
        )
