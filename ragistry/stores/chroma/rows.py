"""Read, search, write and remove the rows of one Chroma collection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ragistry.stores.chroma.where import native
from ragistry.stores.chunk_checks import CheckedChunks, id_problem
from ragistry.types import Document, StageScore
from ragistry.utils.metadata import OWN_PREFIX
from ragistry.utils.where import matches

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

PAGE = 1_000
"""Number of rows per call; above about 16,000, SQLite runs out of variables."""
MAX_BATCH_BYTES = 8_000_000
"""Maximum text in one write; a server accepts requests of 40 MB, including vectors and metadata."""
MAX_FETCHED = 5_000
"""Maximum number of rows fetched to find all ties with the last."""

Item = TypeVar("Item")


class Row(NamedTuple):
    """The row of an id; ``metadata`` includes the store's own keys."""

    text: str
    metadata: dict[str, Any]

    def public_metadata(self) -> dict[str, Any]:
        """Return the metadata without the store's own keys."""
        return {key: value for key, value in self.metadata.items() if not key.startswith(OWN_PREFIX)}


class ChromaHit(NamedTuple):
    """A found row; sorted by distance, then id. ``vector`` is empty if it was not asked for."""

    distance: float
    id: str
    row: Row
    vector: Any = ()

    def document(self) -> Document:
        """Convert the hit of a collection in cosine space to a result of a search."""
        score = min(1.0, max(0.0, 1.0 - self.distance))
        return Document(
            self.row.text, self.row.public_metadata(), score, self.id, (StageScore("dense", "cosine", score),)
        )


def fetched(chroma: Collection, ids: Sequence[str], *columns: Any) -> Iterator[tuple[Any, ...]]:
    """Yield ``(id, *columns)`` for each stored id, without duplicates, read page by page.

    Values that cannot be ids are skipped, because ChromaDB refuses them.
    """
    possible = [identity for identity in dict.fromkeys(ids) if not id_problem(identity)]
    for page in batched(possible, PAGE):
        part: Any = chroma.get(ids=page, include=list(columns))
        yield from zip(part["ids"], *(() if part[name] is None else part[name] for name in columns), strict=True)


def read(chroma: Collection, ids: Sequence[str]) -> dict[str, Row]:
    """Return the rows of the stored ids."""
    return {
        identity: Row(text or "", dict(metadata or {}))
        for identity, text, metadata in fetched(chroma, ids, "documents", "metadatas")
    }


def metadatas(chroma: Collection, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the metadata of the stored ids."""
    return {identity: dict(metadata or {}) for identity, metadata in fetched(chroma, ids, "metadatas")}


def matching_ids(chroma: Collection, where: Mapping[str, Any] | None) -> list[str]:
    """Return the ids of all rows that meet a condition in its normal form."""
    if where is None:
        return chroma.get(include=[])["ids"]
    condition, exact = native(where)
    if condition is False:
        return []
    ids = chroma.get(where=None if condition is True else condition, include=[])["ids"]
    if exact:
        return ids
    return [identity for identity, metadata in metadatas(chroma, ids).items() if matches(where, metadata)]


def query(
    chroma: Collection, vector: Any, top_k: int, *, with_vectors: bool = False, **selected: Any
) -> list[ChromaHit]:
    """Return the nearest rows, equal distances by id; of those that tie with the last, any."""
    names: Any = ["documents", "metadatas", "distances", *(["embeddings"] if with_vectors else [])]
    found: Any = chroma.query(query_embeddings=[vector], n_results=top_k, include=names, **selected)
    columns = [found[name][0] for name in ("distances", "ids", "documents", "metadatas")]
    vectors = found["embeddings"][0] if with_vectors else [()] * len(columns[0])
    return sorted(
        ChromaHit(distance, identity, Row(text or "", dict(metadata or {})), stored)
        for distance, identity, text, metadata, stored in zip(*columns, vectors, strict=True)
    )


def query_with_ties(chroma: Collection, vector: Any, top_k: int, **selected: Any) -> list[ChromaHit]:
    """Return the nearest rows; the lowest ids win ties with the last."""
    wanted = top_k + 1
    while True:
        hits = query(chroma, vector, wanted, **selected)
        tied = len(hits) == wanted and hits[-1].distance == hits[top_k - 1].distance
        if not tied or wanted >= MAX_FETCHED:
            return hits[:top_k]
        wanted = min(wanted * 2, MAX_FETCHED)


def nearest(
    chroma: Collection,
    vector: Any,
    top_k: int,
    where: Mapping[str, Any] | None,
    *,
    ask: Callable[..., list[ChromaHit]] = query_with_ties,
) -> list[ChromaHit]:
    """Return the ``top_k`` nearest rows that meet a condition in its normal form, by one or more calls of ``ask``."""
    condition, exact = (True, True) if where is None else native(where)
    if condition is False:
        return []
    if exact:
        return ask(chroma, vector, top_k, where=None if condition is True else condition)
    pages = batched(matching_ids(chroma, where), PAGE)
    return sorted(hit for page in pages for hit in ask(chroma, vector, top_k, ids=page))[:top_k]


def write(chroma: Collection, chunks: CheckedChunks, batch_size: int) -> None:
    """Store the chunks in batches; ChromaDB applies a batch completely or not at all."""
    for part in batches(chunks.texts, batch_size):
        ids = chunks.ids[part]
        stored = metadatas(chroma, ids)
        # ChromaDB merges metadata with what is stored; None removes a key.
        whole = [
            {**dict.fromkeys(stored.get(identity, ())), **new} or None
            for identity, new in zip(ids, chunks.metadatas[part], strict=True)
        ]
        rows: Any = {"embeddings": chunks.vectors[part], "documents": chunks.texts[part], "metadatas": whole}
        chroma.upsert(ids=ids, **rows)


def batches(texts: Sequence[str], batch_size: int) -> Iterator[slice]:
    """Cut the texts into parts of at most ``batch_size`` texts and `MAX_BATCH_BYTES`."""
    start, size = 0, 0
    for index, text in enumerate(texts):
        length = len(text.encode())
        if index > start and (index - start == batch_size or size + length > MAX_BATCH_BYTES):
            yield slice(start, index)
            start, size = index, 0
        size += length
    if texts:
        yield slice(start, len(texts))


def delete(chroma: Collection, ids: Sequence[str]) -> int:
    """Remove these rows and return their number; ChromaDB would also count missing ones."""
    present = [identity for (identity,) in fetched(chroma, ids)]
    for page in batched(present, PAGE):
        chroma.delete(ids=page)
    return len(present)


def batched(items: Sequence[Item], size: int) -> Iterator[list[Item]]:
    """Yield the items in lists of at most ``size``."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
