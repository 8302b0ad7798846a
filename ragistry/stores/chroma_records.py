"""Reading and writing the rows of one Chroma collection, with our meaning of a condition and of a write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ragistry.stores.chroma_where import native
from ragistry.utils.chunk_checks import CheckedChunks, id_problem
from ragistry.utils.metadata import OWN_PREFIX
from ragistry.utils.where import matches

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

PAGE = 1_000
"""Rows asked for in one call; above 16,000 to 32,000, by what is asked, SQLite runs out of variables."""
MAX_BATCH_BYTES = 8_000_000
"""Of text in one write; a server takes requests of 40 MB, vectors and metadata included."""

Item = TypeVar("Item")


class Row(NamedTuple):
    """What is stored under an id; ``metadata`` with the store's own keys."""

    text: str
    metadata: dict[str, Any]

    def shown(self) -> dict[str, Any]:
        """The metadata without the store's own keys."""
        return {key: value for key, value in self.metadata.items() if not key.startswith(OWN_PREFIX)}


def matching_ids(collection: Collection, where: Mapping[str, Any] | None) -> list[str]:
    """The ids of all rows that meet a condition in its normal form."""
    if where is None:
        return collection.get(include=[])["ids"]
    condition, exact = native(where)
    if condition is False:
        return []
    ids = collection.get(where=None if condition is True else condition, include=[])["ids"]
    if exact:
        return ids
    return [
        identity
        for page in batched(ids, PAGE)
        for identity, metadata in metadatas(collection, page).items()
        if matches(where, metadata)
    ]


def rows(collection: Collection, ids: Sequence[str]) -> dict[str, Row]:
    """What is stored under these ids, by id; those that are not stored are left out."""
    found: dict[str, Row] = {}
    for page in batched(_possible(ids), PAGE):
        part = collection.get(ids=page, include=["documents", "metadatas"])
        for identity, text, metadata in zip(part["ids"], part["documents"] or (), part["metadatas"] or (), strict=True):
            found[identity] = Row(text or "", dict(metadata or {}))
    return found


def metadatas(collection: Collection, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The metadata stored under these ids, at most a page, by id."""
    part = collection.get(ids=list(ids), include=["metadatas"])
    return {
        identity: dict(metadata or {}) for identity, metadata in zip(part["ids"], part["metadatas"] or (), strict=True)
    }


def vectors(collection: Collection, ids: Sequence[str]) -> dict[str, Any]:
    """The vectors stored under these ids, by id."""
    found: dict[str, Any] = {}
    for page in batched(_possible(ids), PAGE):
        part = collection.get(ids=page, include=["embeddings"])
        embeddings = part["embeddings"]
        found.update(zip(part["ids"], () if embeddings is None else embeddings, strict=True))
    return found


def stored_ids(collection: Collection, ids: Sequence[str]) -> list[str]:
    """Those of the ids that are stored, each once."""
    return [
        identity for page in batched(_possible(ids), PAGE) for identity in collection.get(ids=page, include=[])["ids"]
    ]


def delete(collection: Collection, ids: Sequence[str]) -> int:
    """Remove these rows and return how many there were; ChromaDB counts absent ones too."""
    present = stored_ids(collection, ids)
    for page in batched(present, PAGE):
        collection.delete(ids=page)
    return len(present)


def write(collection: Collection, chunks: CheckedChunks, batch_size: int) -> None:
    """Store the chunks, whole rows, in batches that ChromaDB applies each in one piece."""
    for part in batches(chunks.texts, batch_size):
        ids, metadata = chunks.ids[part], chunks.metadatas[part]
        stored = metadatas(collection, ids)
        collection.upsert(
            ids=ids,
            embeddings=chunks.vectors[part],
            documents=chunks.texts[part],
            metadatas=[_replacing(new, stored.get(identity, {})) for identity, new in zip(ids, metadata, strict=True)],
        )


def _replacing(new: dict[str, Any], old: Mapping[str, Any]) -> Any:
    """The metadata that turn ``old`` into ``new``: ChromaDB merges the two, and None removes a key."""
    return {**dict.fromkeys(old), **new} or None


def batches(texts: Sequence[str], batch_size: int) -> Iterator[slice]:
    """Where to cut the texts so that each part is at most ``batch_size`` of them, and not too many bytes."""
    start, size = 0, 0
    for index, text in enumerate(texts):
        length = len(text.encode())
        if index > start and (index - start == batch_size or size + length > MAX_BATCH_BYTES):
            yield slice(start, index)
            start, size = index, 0
        size += length
    if texts:
        yield slice(start, len(texts))


def _possible(ids: Sequence[str]) -> list[str]:
    """The ids without repetitions and without what no store could hold, which ChromaDB refuses to look for."""
    return [identity for identity in dict.fromkeys(ids) if not id_problem(identity)]


def batched(items: Sequence[Item], size: int) -> Iterator[list[Item]]:
    """The items in lists of at most ``size``."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
