"""The storage contract for documentation repositories: seven operations on named collections in a folder.

Each collection is a `LocalStore`, not a ChromaDB collection in a shared directory. ChromaDB's files do not survive
every kill of their writer, and two processes on one directory silently lose each other's vectors. Here all data is in
SQLite. A new version is built next to the searched one and replaces it in one step. A search with a condition compares
every matching vector, and is faster than in ChromaDB. The contract's promises about ChromaDB (cosine space,
conditions, named errors) hold.

Every function takes ``path``, the folder of the collections (default ``./chroma_data``). ``embedder`` defaults to
all-MiniLM-L6-v2; a collection is bound to the embedder that filled it. A folder that cannot be opened or written raises
`ChromaDBConnectionError`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from ragistry.errors import CollectionAlreadyExistsError, ConfigError, QueryError, StoreCorruptError, StoreError
from ragistry.library.contract.chunks import (
    OnDuplicate,
    OnEmpty,
    OnError,
    as_given,
    as_stored,
    check_choice,
    check_metadata,
    check_storable,
    not_stored,
    now,
    once,
    with_content,
)
from ragistry.library.contract.collection import (
    Collection,
    Rebuild,
    check_collection,
    check_there,
    not_found,
    version_of,
)
from ragistry.library.contract.embedding import embedded, query_vector, retried
from ragistry.library.contract.entries import (
    Entry,
    check_name,
    drop_entry,
    entries,
    folder_of,
    locked,
    put_entry,
    read_entry,
)
from ragistry.library.contract.types import CollectionInfo, DocumentChunk, RetrievalMatch, RetrievalResult
from ragistry.protocols import Embedder, LibraryStore
from ragistry.stores.registry import open_local
from ragistry.trace import collect, stage
from ragistry.types import Document, EmbeddedChunk, Where
from ragistry.utils.fingerprints import check_embedder
from ragistry.utils.limits import check_query, check_top_k
from ragistry.utils.where import normalise
from ragistry.utils.wording import shown

log = logging.getLogger(__name__)

__all__ = [
    "Collection",
    "CollectionInfo",
    "DocumentChunk",
    "RetrievalMatch",
    "RetrievalResult",
    "add_chunks",
    "create_collection",
    "delete_collection",
    "get_collection",
    "list_collections",
    "search_chunks",
    "update_collection_metadata",
]

DEFAULT_PATH = "./chroma_data"
LIMIT = 100
"""Maximum ``limit`` of `search_chunks`."""
LARGEST_BATCH = 1_000

FolderPath = str | os.PathLike[str]


def create_collection(
    repository_name: str,
    metadata: Mapping[str, Any],
    *,
    path: FolderPath = DEFAULT_PATH,
    embedder: Embedder | None = None,
    recreate: bool = True,
) -> Collection:
    """Create an empty collection, or start to recreate an existing one.

    Searches find the existing chunks until the first `add_chunks` is complete, or a ``with`` block around several
    calls. If it fails, or another process writes to the old version, the old chunks remain.

    Args:
        repository_name: 1 to 63 lower-case letters, digits and '-'.
        metadata: ``repository_url``, ``commit_hash``, ``last_updated``, ``total_documents``, ``total_chunks``, or any
            other JSON values.
        path: Folder of the collections.
        embedder: Embedder of the collection.
        recreate: Recreate an existing collection.

    Returns:
        The collection, which has no chunks yet.

    Raises:
        InvalidCollectionNameError: The name is invalid.
        ConfigError: The metadata cannot be written as JSON.
        CollectionAlreadyExistsError: The collection exists, and ``recreate`` is false.
    """
    root, given = folder_of(path), check_metadata(metadata)
    with locked(root, check_name(repository_name)):
        entry = read_entry(root, repository_name)
        if entry is not None and not recreate:
            raise CollectionAlreadyExistsError(
                f"collection {repository_name!r} exists in {str(root)!r}; choose another name, or set recreate=True"
            )
        rebuild = None
        if entry is not None and _count(root, entry) > 0:
            rebuild = Rebuild(given, entry.folder, version_of(root / entry.folder))
        else:
            put_entry(root, Entry(repository_name, "", given))
    return Collection(root, repository_name, embedder, rebuild=rebuild)


def add_chunks(
    collection: Collection,
    chunks: Sequence[DocumentChunk],
    batch_size: int = 100,
    *,
    on_duplicate: OnDuplicate = "raise",
    on_empty: OnEmpty = "raise",
    on_error: OnError = "raise",
) -> int:
    """Embed chunks in batches, and write all of them or none.

    Four batches are embedded in parallel. Asynchronous callers await ``asyncio.to_thread(add_chunks, …)``. Skipped
    chunks are logged. If no chunk can be embedded, a collection that is being recreated does not change.

    Args:
        collection: Target collection.
        chunks: The chunks.
        batch_size: Number of chunks in a batch, 1 to 1,000.
        on_duplicate: Raise an error for duplicate ids, skip them, or replace the stored chunks.
        on_empty: Raise an error for chunks without text, or skip them.
        on_error: Raise an error for chunks that cannot be embedded, or skip them.

    Returns:
        Number of chunks written.

    Raises:
        DuplicateChunkIDError: An id is already stored, or occurs twice.
        InvalidChunkError: A chunk has no text, or metadata that cannot be stored. It is also a `ValueError`.
        EmbeddingGenerationError: A chunk cannot be embedded, also after retries of temporary errors.
        StoreLockedError: Another process writes to the collection.
        ConfigError: The batch size is invalid.
    """
    check_collection(collection)
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or not 1 <= batch_size <= LARGEST_BATCH:
        raise ConfigError(f"batch_size must be a whole number from 1 to {LARGEST_BATCH:,}, got {batch_size!r}")
    check_choice("on_duplicate", on_duplicate, ("raise", "skip", "upsert"))
    check_choice("on_empty", on_empty, ("raise", "skip"))
    check_choice("on_error", on_error, ("raise", "skip"))
    wanted = once(with_content(chunks, on_empty), on_duplicate)
    wanted = collection.read(lambda store: not_stored(store, wanted, on_duplicate), wanted)
    ids, processed_at = [chunk.chunk_id for chunk in wanted], now()
    stored = [as_stored(chunk, collection.name, processed_at) for chunk in wanted]
    check_storable(stored, ids)
    with_vectors, kept = embedded(stored, ids, collection.embedder, batch_size, on_error)
    if not kept and (wanted or not collection.is_rebuilt):  # nothing to write, and no old version to replace
        return 0
    by_id = {chunk.chunk_id: chunk for chunk in wanted}
    return retried(partial(_write, collection, dict(zip(kept, with_vectors, strict=True)), by_id, on_duplicate))


def _write(
    collection: Collection,
    chunks: Mapping[str, EmbeddedChunk],
    given: Mapping[str, DocumentChunk],
    on_duplicate: OnDuplicate,
) -> int:
    """Write the chunks that another writer has not stored in the meantime."""
    with collection.writing() as store:
        left = [chunk.chunk_id for chunk in not_stored(store, [given[id] for id in chunks], on_duplicate)]
        if not left:
            return 0
        store.use_embedder(collection.embedder.fingerprint)
        return store.add_documents([chunks[id] for id in left], ids=left)


def search_chunks(
    collection: Collection,
    query: str,
    limit: int = 10,
    where: Where | None = None,
    *,
    min_score: float = 0.0,
) -> RetrievalResult:
    """Find the chunks that are most similar to a query.

    A collection with chunks always has a most similar one. ``min_score`` removes results that are not similar enough.

    Args:
        collection: The collection.
        query: The query.
        limit: Maximum number of results, 1 to 100.
        where: Condition on metadata; see `utils.where`.
        min_score: Minimum score of results, 0 to 1.

    Returns:
        The results, best first. Scores are cosine similarities, clipped to [0, 1].

    Raises:
        EmptyQueryError: The query is empty.
        InvalidLimitError: ``limit`` is out of range.
        InvalidFilterError: The condition is invalid.
        QueryError: ``min_score`` is out of range.
        EmbeddingMismatchError: Another embedder filled the collection.
        ModelError: The query cannot be embedded.
    """
    check_collection(collection)
    check_query(query)
    check_top_k(limit, LIMIT, name="limit")
    if isinstance(min_score, bool) or not isinstance(min_score, int | float) or not 0 <= min_score <= 1:
        raise QueryError(f"min_score must be a number from 0 to 1, got {shown(min_score)}")
    condition = None if where is None else normalise(where)
    start = perf_counter()
    with collect() as trace:
        with stage("embed"):
            vector = query_vector(query, collection.embedder)

        def search(store: LibraryStore) -> list[Document]:
            check_embedder(store, collection.embedder.fingerprint)
            return store.search(vector, limit, where=condition)

        with stage("search") as this:
            nothing: list[Document] = []
            found = collection.read(search, nothing)
            documents = [as_given(document) for document in found if document.score >= min_score]
            this.documents_out = len(documents)
    elapsed = (perf_counter() - start) * 1000
    return RetrievalResult(query, documents, len(documents), elapsed, trace.stages())


def get_collection(
    repository_name: str, *, path: FolderPath = DEFAULT_PATH, embedder: Embedder | None = None
) -> Collection:
    """Open a collection by its name.

    Raises:
        CollectionNotFoundError: The collection does not exist.
        InvalidCollectionNameError: The name is invalid.
    """
    root = folder_of(path)
    if read_entry(root, repository_name) is None:
        raise not_found(root, repository_name)
    return Collection(root, repository_name, embedder)


def list_collections(*, path: FolderPath = DEFAULT_PATH) -> list[CollectionInfo]:
    """List the collections with their metadata and number of chunks, by name.

    A missing folder has no collections.
    """
    root = folder_of(path)
    return [CollectionInfo(entry.name, _count(root, entry), entry.metadata) for entry in entries(root)]


def delete_collection(repository_name: str, *, path: FolderPath = DEFAULT_PATH) -> int:
    """Delete a collection with all its data.

    Returns:
        Number of chunks deleted.

    Raises:
        CollectionNotFoundError: The collection does not exist.
    """
    root = folder_of(path)
    if read_entry(root, repository_name) is None:  # checked first, so that no folder is created
        raise not_found(root, repository_name)
    with locked(root, repository_name):
        entry = read_entry(root, repository_name)
        if entry is None:  # deleted in the meantime
            raise not_found(root, repository_name)
        chunks = _count(root, entry)
        drop_entry(root, repository_name)
    return chunks


def update_collection_metadata(collection: Collection, metadata: Mapping[str, Any]) -> None:
    """Update some values of a collection's metadata.

    Without a value for ``last_updated``, it is set to the current time. If the collection is being recreated, the
    values become visible together with its new chunks.
    """
    check_collection(collection)
    collection.update_metadata({"last_updated": now(), **check_metadata(metadata)})


def _count(root: Path, entry: Entry) -> int:
    """Count the chunks; 0 for a damaged store, which can then be deleted."""
    if not entry.folder:
        return 0
    try:
        with closing(open_local(check_there(root / entry.folder))) as store:
            return store.count()
    except StoreError as error:  # another process may be deleting its files
        present = read_entry(root, entry.name)
        if present is None:
            return 0
        if present.folder != entry.folder:
            return _count(root, present)
        if not isinstance(error, StoreCorruptError):
            raise
        log.warning("collection %r: %s", entry.name, error)
        return 0
