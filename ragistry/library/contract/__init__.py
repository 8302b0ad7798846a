"""The storage contract for documentation repositories: seven operations on named collections in a folder.

Each collection is a `LocalStore`, not a ChromaDB collection in a shared directory. ChromaDB's files do not survive
every kill of their writer, and two processes on one directory silently lose each other's vectors. Here all data is in
SQLite, and a new version is built next to the searched one and replaces it in one step. A search with a condition
compares every matching vector, faster than ChromaDB does. The contract's promises about ChromaDB (cosine space,
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
"""The largest ``limit`` of `search_chunks`."""
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
    """Create a collection, or begin to recreate one; the returned collection is empty.

    ``repository_name``: lower-case letters, digits and '-', at most 63. ``metadata``: ``repository_url``,
    ``commit_hash``, ``last_updated``, ``total_documents``, ``total_chunks``, or any other JSON values. Existing chunks
    are searched until the first `add_chunks` to the new version, or a ``with`` block around several, is complete; if it
    fails, or another process writes to the old version, the old chunks stay. Raises `InvalidCollectionNameError`,
    `ConfigError` for metadata, and `CollectionAlreadyExistsError` if the collection exists and ``recreate`` is False.
    """
    root, given = folder_of(path), check_metadata(metadata)
    with locked(root, check_name(repository_name)):
        entry = read_entry(root, repository_name)
        if entry is not None and not recreate:
            raise CollectionAlreadyExistsError(
                f"collection {repository_name!r} exists in {str(root)!r}; choose another name, or let recreate be True"
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
    """Embed chunks in batches of ``batch_size`` (1 to 1,000), write all or none, and return the number written.

    Four batches are embedded in parallel. Asynchronous callers await ``asyncio.to_thread(add_chunks, …)``. Raises
    `DuplicateChunkIDError` (``on_duplicate``: skip duplicates, or replace the stored chunks),
    `InvalidChunkError`, a `ValueError`, for a chunk without text (``on_empty``) or with metadata that cannot be
    stored, `EmbeddingGenerationError` for one that cannot be embedded after retries of temporary errors (``on_error``),
    `StoreLockedError`, `ConfigError` for an invalid batch size. Skipped chunks are logged. If no chunk could be
    embedded, a collection that is being recreated does not change.
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
    """Write the chunks that are not yet stored: another writer may have been faster during embedding."""
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
    """The chunks most similar to ``query``, best first, by cosine similarity clipped to [0, 1].

    ``limit``: 1 to 100. ``where``: a condition on metadata (`utils.where`). A collection with chunks always has a
    most similar one; ``min_score``, 0 to 1, drops lower scores. Raises `EmptyQueryError`, `InvalidLimitError`,
    `InvalidFilterError`, another `QueryError` for another ``min_score``, `EmbeddingMismatchError`, `ModelError`.
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
    """A collection by its name. Raises `CollectionNotFoundError`, `InvalidCollectionNameError`."""
    root = folder_of(path)
    if read_entry(root, repository_name) is None:
        raise not_found(root, repository_name)
    return Collection(root, repository_name, embedder)


def list_collections(*, path: FolderPath = DEFAULT_PATH) -> list[CollectionInfo]:
    """Every collection with its metadata and number of chunks, by name; empty without the folder."""
    root = folder_of(path)
    return [CollectionInfo(entry.name, _count(root, entry), entry.metadata) for entry in entries(root)]


def delete_collection(repository_name: str, *, path: FolderPath = DEFAULT_PATH) -> int:
    """Remove a collection with all its data, and return its number of chunks. Raises `CollectionNotFoundError`."""
    root = folder_of(path)
    if read_entry(root, repository_name) is None:  # asked first, so that no folder is made for nothing
        raise not_found(root, repository_name)
    with locked(root, repository_name):
        entry = read_entry(root, repository_name)
        if entry is None:  # deleted meanwhile
            raise not_found(root, repository_name)
        chunks = _count(root, entry)
        drop_entry(root, repository_name)
    return chunks


def update_collection_metadata(collection: Collection, metadata: Mapping[str, Any]) -> None:
    """Update the recorded values; ``last_updated`` is set to the current time unless given.

    Those of a collection that is made again are on record with its chunks: its old ones keep what was said of them.
    """
    check_collection(collection)
    collection.update_metadata({"last_updated": now(), **check_metadata(metadata)})


def _count(root: Path, entry: Entry) -> int:
    """Number of chunks; 0 for a damaged store, so that it can still be deleted."""
    if not entry.folder:
        return 0
    try:
        with closing(open_local(check_there(root / entry.folder))) as store:
            return store.count()
    except StoreError as error:  # its files may be on their way out
        present = read_entry(root, entry.name)
        if present is None:
            return 0
        if present.folder != entry.folder:
            return _count(root, present)
        if not isinstance(error, StoreCorruptError):
            raise
        log.warning("collection %r: %s", entry.name, error)
        return 0
