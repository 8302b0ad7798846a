"""The nearest rows of a Chroma collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ragistry.stores.chroma_records import PAGE, Row, batched, matching_ids
from ragistry.stores.chroma_sources import of_committed_versions
from ragistry.stores.chroma_where import native
from ragistry.types import Document, StageScore, ranked

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

MAX_FETCHED = 5_000
"""Rows fetched at most to see all that share the last place; among more of them, ChromaDB chooses."""
ATTEMPTS = 4
"""How often more is asked for, in the place of rows that are on their way in or out."""


class Hit(NamedTuple):
    """A row found; sorted by distance (1 - cosine), then id."""

    distance: float
    id: str
    row: Row


def search(collection: Collection, vector: Any, top_k: int, where: Mapping[str, Any] | None) -> list[Document]:
    """The ``top_k`` nearest rows that meet a condition in its normal form, best first.

    Of a source that is being replaced only one version is found, at worst in part.
    """
    wanted, kept = top_k, list[Hit]()
    for _ in range(ATTEMPTS):
        hits = _meeting(collection, vector, wanted, where)
        current = of_committed_versions(collection, {hit.id: hit.row for hit in hits})
        kept = [hit for hit in hits if hit.id in current]
        if len(kept) >= top_k or len(kept) == len(hits):
            break
        wanted = min(top_k + 2 * (len(hits) - len(kept)), MAX_FETCHED)
    return ranked(_document(hit) for hit in kept[:top_k])


def _meeting(collection: Collection, vector: Any, wanted: int, where: Mapping[str, Any] | None) -> list[Hit]:
    if where is None:
        return _nearest(collection, vector, wanted)
    condition, exact = native(where)
    if condition is False:
        return []
    if exact:
        return _nearest(collection, vector, wanted, where=None if condition is True else condition)
    pages = batched(matching_ids(collection, where), PAGE)
    return sorted(hit for page in pages for hit in _nearest(collection, vector, wanted, ids=page))[:wanted]


def _nearest(
    collection: Collection,
    vector: Any,
    top_k: int,
    *,
    where: dict[str, Any] | None = None,
    ids: Sequence[str] | None = None,
) -> list[Hit]:
    """The nearest rows; of those that share the last place the ones with the lowest ids."""
    wanted = top_k + 1
    while True:
        hits = sorted(_query(collection, vector, wanted, where, ids))
        tied = len(hits) == wanted and hits[-1].distance == hits[top_k - 1].distance
        if not tied or wanted >= MAX_FETCHED:
            return hits[:top_k]
        wanted = min(wanted * 2, MAX_FETCHED)


def _query(
    collection: Collection, vector: Any, wanted: int, where: dict[str, Any] | None, ids: Sequence[str] | None
) -> list[Hit]:
    found = collection.query(
        query_embeddings=[vector],
        n_results=wanted,
        where=where,
        ids=None if ids is None else list(ids),
        include=["documents", "metadatas", "distances"],
    )
    columns = (found["distances"] or [[]], found["ids"], found["documents"] or [[]], found["metadatas"] or [[]])
    return [
        Hit(distance, identity, Row(text or "", dict(metadata or {})))
        for distance, identity, text, metadata in zip(*(column[0] for column in columns), strict=True)
    ]


def _document(hit: Hit) -> Document:
    score = min(1.0, max(0.0, 1.0 - hit.distance))
    return Document(hit.row.text, hit.row.shown(), score, hit.id, (StageScore("dense", "cosine", score),))
