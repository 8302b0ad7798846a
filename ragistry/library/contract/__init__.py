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
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from ragistry.errors import (
    CollectionAlreadyExistsError,
    CollectionNotFoundError,
    ConfigError,
    QueryError,
    StoreCorruptError,
)
from ragistry.library.contract.chunks import (
    CollectionInfo,
    DocumentChunk,
    OnDuplicate,
    OnEmpty,
    RetrievalMatch,
    RetrievalResult,
    as_json,
    chunks_to_write,
    from_stored,
    handle_duplicates,
    now,
    to_stored,
)
from ragistry.library.contract.collection import Collection, Rebuild, state_of
from ragistry.library.contract.embedding import OnError, call_with_retries, embed_chunks
from ragistry.library.contract.entries import (
    RepositoryEntry,
    check_name,
    drop_entry,
    entry_lock,
    existing_entry,
    names,
    put_entry,
    read_entry,
)
from ragistry.protocols import Embedder, LibraryStore
from ragistry.techniques.naive import NaiveRAGTechnique
from ragistry.trace import collect
from ragistry.types import Document, EmbeddedChunk, Where
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
    root, name, rebuild = Path(path).absolute(), check_name(repository_name), None
    checked = _checked_metadata(metadata)
    with entry_lock(root, name):
        entry = read_entry(root, name)
        if entry is not None and not recreate:
            raise CollectionAlreadyExistsError(
                f"collection {name!r} exists in {str(root)!r}; choose another name, or set recreate=True"
            )
        if entry is not None and _count(root, name) > 0:
            rebuild = Rebuild(checked, entry.folder, state_of(root / entry.folder))
        else:
            put_entry(root, RepositoryEntry(name, "", checked))
    return Collection(root, name, embedder, rebuild=rebuild)


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
    chunks are logged. If no chunk can be embed_chunks, a collection that is being recreated does not change.

    Args:
        collection: Target collection.
        chunks: The chunks.
        batch_size: Number of chunks in a batch, 1 to 1,000.
        on_duplicate: Raise an error for duplicate ids, skip them, or replace the stored chunks.
        on_empty: Raise an error for chunks without text, or skip them.
        on_error: Raise an error for chunks that cannot be embed_chunks, or skip them.

    Returns:
        Number of chunks written.

    Raises:
        DuplicateChunkIDError: An id is already stored, or occurs twice.
        InvalidChunkError: A chunk has no text, or metadata that cannot be stored. It is also a `ValueError`.
        EmbeddingGenerationError: A chunk cannot be embed_chunks, also after retries of temporary errors. With
            ``on_error="skip"``, only if the model cannot be reached, or rejects a plain word too.
        StoreLockedError: Another process writes to the collection.
        InvalidLimitError: The batch size is invalid.
    """
    check_top_k(batch_size, LARGEST_BATCH, name="batch_size")
    _check_choice("on_duplicate", on_duplicate, "raise", "skip", "upsert")
    _check_choice("on_empty", on_empty, "raise", "skip")
    _check_choice("on_error", on_error, "raise", "skip")
    stored = to_stored(chunks_to_write(chunks, on_empty, on_duplicate), collection.name)
    ids = collection.read(lambda store: _to_write(store, stored, on_duplicate), list(stored))
    with_vectors = embed_chunks({key: stored[key] for key in ids}, collection.embedder, batch_size, on_error)
    if not with_vectors and (ids or not collection.is_rebuilt):  # nothing to write, and no old version to replace
        return 0
    return call_with_retries(_write, collection, with_vectors, on_duplicate)


def _write(collection: Collection, chunks: Mapping[str, EmbeddedChunk], on_duplicate: OnDuplicate) -> int:
    """Write the chunks that another writer has not stored in the meantime."""
    with collection.writing() as store:
        ids = _to_write(store, chunks, on_duplicate)
        if not ids:
            return 0
        store.use_embedder(collection.embedder.fingerprint)
        return store.add_documents([chunks[key] for key in ids], ids=ids)


def _to_write(store: LibraryStore, ids: Iterable[str], on_duplicate: OnDuplicate) -> list[str]:
    """Return the ids that are not stored yet; all with ``upsert``."""
    wanted = list(ids)
    if on_duplicate == "upsert":
        return wanted
    stored = {document.id for document in store.get(wanted)}
    handle_duplicates(stored, "is already stored", on_duplicate)
    return [identity for identity in wanted if identity not in stored]


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
    check_query(query)
    check_top_k(limit, LIMIT, name="limit")
    if not 0 <= min_score <= 1:
        raise QueryError(f"min_score must be a number from 0 to 1, got {shown(min_score)}")
    condition = normalise(where)

    def search(store: LibraryStore) -> list[Document]:
        technique = NaiveRAGTechnique({"min_score": min_score}, store=store, embedder=collection.embedder)
        return technique.retrieve(query, top_k=limit, where=condition)

    start, nothing = perf_counter(), list[Document]()
    with collect() as trace:
        documents = list(map(from_stored, collection.read(search, nothing)))
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
    root = Path(path).absolute()
    return Collection(root, existing_entry(root, repository_name).name, embedder)


def list_collections(*, path: FolderPath = DEFAULT_PATH) -> list[CollectionInfo]:
    """List the collections with their metadata and number of chunks, by name.

    A missing folder has no collections.
    """
    root = Path(path).absolute()
    entries = [entry for name in names(root) if (entry := read_entry(root, name)) is not None]
    return [CollectionInfo(entry.name, _count(root, entry.name), entry.metadata) for entry in entries]


def delete_collection(repository_name: str, *, path: FolderPath = DEFAULT_PATH) -> int:
    """Delete a collection with all its data.

    Returns:
        Number of chunks deleted.

    Raises:
        CollectionNotFoundError: The collection does not exist.
    """
    root = Path(path).absolute()
    existing_entry(root, repository_name)  # checked first, so that no folder is created
    with entry_lock(root, repository_name):
        existing_entry(root, repository_name)
        chunks = _count(root, repository_name)
        drop_entry(root, repository_name)
    return chunks


def update_collection_metadata(collection: Collection, metadata: Mapping[str, Any]) -> None:
    """Update some values of a collection's metadata.

    Without a value for ``last_updated``, it is set to the current time. If the collection is being recreated, the
    values become visible together with its new chunks.
    """
    collection.update_metadata({"last_updated": now(), **_checked_metadata(metadata)})


def _checked_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a collection. Raises `ConfigError` unless they are JSON."""
    if problem := as_json(metadata)[1]:
        raise ConfigError(f"collection {problem}")
    return dict(metadata)


def _check_choice(name: str, value: str, *choices: str) -> None:
    if value not in choices:
        raise ConfigError(f"{name} is {value!r}; choose one of {', '.join(map(repr, choices))}")


def _count(root: Path, name: str) -> int:
    """Count the chunks; 0 for a missing collection, and for a damaged store, which can then be deleted."""
    try:
        with Collection(root, name) as collection:
            return collection.count()
    except CollectionNotFoundError:
        return 0
    except StoreCorruptError as error:
        log.warning("collection %r: %s", name, error)
        return 0
