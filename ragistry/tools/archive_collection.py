"""One archive: a collection of a Chroma server, opened on first use and kept. Nothing is written to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ragistry.errors import CollectionNotFoundError, EmbeddingMismatchError
from ragistry.stores.chroma_errors import translated
from ragistry.stores.chroma_records import PAGE, Row, batched, matching_ids
from ragistry.stores.chroma_where import native
from ragistry.tools.archive_clients import Clients, Place
from ragistry.tools.archive_config import RagArchiveConfig
from ragistry.tools.archive_settings import EVERY_LAYER, ArchiveSettings
from ragistry.types import Document, ScoreKind, StageScore, Where
from ragistry.utils.where import normalise

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

LAYER = "layer"

SCORES: dict[ScoreKind, Callable[[float], float]] = {
    "cosine": lambda distance: min(1.0, max(0.0, 1.0 - distance)),
    "l2": lambda distance: 1.0 / (1.0 + distance),  # ChromaDB's l2 is the square of the distance
    "ip": lambda distance: 1.0 - distance,
}
"""From the distance in each space of ChromaDB to a score that is higher where it is lower."""


class Hit(NamedTuple):
    """A passage and its distance, which only those of the same space and model can be compared by."""

    distance: float
    document: Document


class Opened(NamedTuple):
    """A collection that was found, and its space."""

    rows: Collection
    space: ScoreKind


class Archive:
    """What ``config`` names, and the environment where it names nothing. Threads may share it.

    ``place``: how messages call it.
    """

    def __init__(self, config: RagArchiveConfig, settings: ArchiveSettings, clients: Clients) -> None:
        self.config = config
        self.name = config.name
        self.tei_url = config.tei_url or settings.tei_url
        self.layer = config.layer or settings.layer
        self.place = f"archive {config.name!r}, collection {config.collection_name!r}"
        self._clients = clients
        self._database = Place(
            config.chromadb_url or settings.chromadb_url,
            config.tenant or settings.tenant,
            config.database or settings.database,
            tuple(sorted(config.headers.items())),
        )
        self._opened: Opened | None = None

    def nearest(self, vector: Any, top_k: int, where: Where | None = None) -> tuple[ScoreKind, list[Hit]]:
        """The space, and the ``top_k`` nearest passages of the archive's layer that meet ``where``, nearest first.

        ``vector``: ``(d,)`` floats. Raises `CollectionNotFoundError`, `EmbeddingMismatchError` (another dimension),
        `ChromaDBConnectionError`, `StoreError`.
        """
        condition = self._condition(where)
        try:
            return self._nearest(vector, top_k, condition)
        except CollectionNotFoundError:
            self._opened = None  # it may have been filled anew, under the same name
        return self._nearest(vector, top_k, condition)

    def _condition(self, where: Where | None) -> dict[str, Any] | None:
        parts: list[Where] = [] if self.layer == EVERY_LAYER else [{LAYER: self.layer}]
        parts += [] if where is None else [where]
        return normalise({"$and": parts}) if parts else None

    def _nearest(self, vector: Any, top_k: int, condition: dict[str, Any] | None) -> tuple[ScoreKind, list[Hit]]:
        rows, space = self._open(len(vector))
        with translated(self.place):
            found = _query(rows, vector, top_k, condition)
        return space, [self._hit(row, identity, distance, space) for distance, identity, row in found]

    def _hit(self, row: Row, identity: str, distance: float, space: ScoreKind) -> Hit:
        score = SCORES[space](distance)
        metadata = {**row.shown(), "archive": self.name}
        return Hit(distance, Document(row.text, metadata, score, identity, (StageScore(self.name, space, score),)))

    def _open(self, dimension: int) -> Opened:
        opened = self._opened
        if opened is None:  # two threads may both open it, to the same end
            client = self._clients.connection(self._database).client
            with translated(self.place):
                rows = client.get_collection(self.config.collection_name, embedding_function=None)
            self._check_dimension(rows, dimension)
            opened = self._opened = Opened(rows, _space(rows))
        return opened

    def _check_dimension(self, rows: Collection, dimension: int) -> None:
        with translated(self.place):
            stored = rows.get(limit=1, include=["embeddings"])["embeddings"]
        if stored is not None and len(stored) and len(stored[0]) != dimension:
            raise EmbeddingMismatchError(
                f"{self.place}: its vectors have {len(stored[0])} numbers, those of {self.config.embedding_model!r} "
                f"have {dimension}; set embedding_model to the one that the archive was filled with"
            )


def _space(rows: Collection) -> ScoreKind:
    index: Mapping[str, Any] = rows.configuration_json.get("hnsw") or rows.configuration_json.get("spann") or {}
    return next((space for space in SCORES if space == index.get("space")), "l2")


def _query(rows: Collection, vector: Any, top_k: int, condition: dict[str, Any] | None) -> list[tuple[float, str, Row]]:
    """Distance, id and row of the nearest, nearest first; equal distances in the order of ids."""
    if condition is None:
        return _ask(rows, vector, top_k)
    said, exact = native(condition)
    if said is False:
        return []
    if exact:
        return _ask(rows, vector, top_k, where=None if said is True else said)
    pages = batched(matching_ids(rows, condition), PAGE)
    found = [hit for page in pages for hit in _ask(rows, vector, top_k, ids=page)]
    return sorted(found, key=lambda hit: hit[:2])[:top_k]


def _ask(rows: Collection, vector: Any, top_k: int, **selected: Any) -> list[tuple[float, str, Row]]:
    found = rows.query(
        query_embeddings=[vector], n_results=top_k, include=["documents", "metadatas", "distances"], **selected
    )
    columns = (found["distances"] or [[]], found["ids"], found["documents"] or [[]], found["metadatas"] or [[]])
    hits = [
        (distance, identity, Row(text or "", dict(metadata or {})))
        for distance, identity, text, metadata in zip(*(column[0] for column in columns), strict=True)
    ]
    return sorted(hits, key=lambda hit: hit[:2])
