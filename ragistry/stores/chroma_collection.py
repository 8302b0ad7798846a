"""One Chroma collection as ours: opened in cosine space, its index tried, its embedder on record."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ragistry.errors import EmbeddingMismatchError, StoreCorruptError, StoreError
from ragistry.stores.chroma_errors import ANEW
from ragistry.types import EmbedderFingerprint
from ragistry.utils.fingerprints import from_json, to_json
from ragistry.utils.metadata import OWN_PREFIX

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

log = logging.getLogger(__name__)

EMBEDDER = f"{OWN_PREFIX}embedder"
INDEX = {"space": "cosine", "max_neighbors": 48, "ef_construction": 200, "ef_search": 200}
"""The graph of vectors. With ChromaDB's own 16 neighbours, 500 equal vectors (a footer on every page) hid up to half of
500 others, never to be found; 48 neighbours keep 97 % of them in reach, for a fifth more time to build."""
FEW_CANDIDATES = 50
SAMPLES = 4


def open_collection(client: ClientAPI, name: str, place: str, graph: Mapping[str, Any] = INDEX) -> Collection:
    """The collection, made with this ``graph`` of vectors if it is not there.

    Raises `StoreError` where it was made in another space.
    """
    configuration: Any = {"hnsw": dict(graph)}
    rows = client.get_or_create_collection(name, configuration=configuration, embedding_function=None)
    index: Any = rows.configuration_json.get("hnsw") or rows.configuration_json.get("spann") or {}
    if index.get("space") != "cosine":
        raise StoreError(
            f"{place}: made in the space {index.get('space')!r}, expected 'cosine'; use another collection name, "
            "or delete the collection and ingest again"
        )
    if index.get("ef_search", FEW_CANDIDATES) < FEW_CANDIDATES:
        log.warning(
            "%s: made with ef_search %s, so searches miss near chunks; ingest into a new collection for %s",
            place, index["ef_search"], INDEX["ef_search"],
        )  # fmt: skip
    return rows


def check_index(rows: Collection, place: str) -> None:
    """Raise `StoreCorruptError` if most of a dozen vectors, of all ages, do not find themselves.

    An index that lost its files answers with other rows, or with none, and no error. A sound one may miss a few.
    """
    count = rows.count()
    found = tried = 0
    for offset in sorted({0, max(count // 2, 0), max(count - SAMPLES, 0)} if count else ()):
        embeddings = rows.get(limit=SAMPLES, offset=offset, include=["embeddings"])["embeddings"]
        nearest = rows.query(query_embeddings=embeddings, n_results=1, include=["distances"])["distances"]
        tried += len(nearest or ())
        found += sum(bool(distances) and abs(distances[0]) < 1e-3 for distances in nearest or ())
    if found < tried / 4:
        raise StoreCorruptError(
            f"{place}: only {found} of {tried} vectors find themselves, the index is damaged; "
            "restore the folder from a backup, or delete it and ingest again"
        )


def embedder_of(rows: Collection) -> EmbedderFingerprint | None:
    """The embedder that is on record for the collection, if one is."""
    text = (rows.metadata or {}).get(EMBEDDER)
    return None if text is None else from_json(str(text))


def record_embedder(rows: Collection, fingerprint: EmbedderFingerprint) -> None:
    """Put the embedder on record, beside whatever else the collection's metadata say."""
    # The space of collections made by old versions stands there too, and may not be named again.
    others = {key: value for key, value in (rows.metadata or {}).items() if not key.startswith("hnsw:")}
    rows.modify(metadata={**others, EMBEDDER: to_json(fingerprint)})


def check_dimension(rows: Collection, fingerprint: EmbedderFingerprint, place: str) -> None:
    """Raise `EmbeddingMismatchError` if what is stored has another dimension than the embedder's vectors."""
    stored = rows.get(limit=1, include=["embeddings"])["embeddings"]
    if stored is not None and len(stored) and len(stored[0]) != fingerprint.dimension:
        raise EmbeddingMismatchError(
            f"{place}: the vectors in the store have {len(stored[0])} numbers, those of {fingerprint.model!r} have "
            f"{fingerprint.dimension}; set embed_model in documents.yaml to the embedder that the store was filled "
            f"with, or {ANEW}"
        )
