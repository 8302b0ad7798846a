"""An archive: a collection on a Chroma server that is opened on first use, kept open, and only read."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from math import hypot
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ragistry.config.archives import EVERY_LAYER, ArchiveSettings, RagArchiveConfig, archive_settings
from ragistry.errors import CollectionNotFoundError, EmbeddingMismatchError
from ragistry.library.remote.clients import Clients, place_of
from ragistry.models.http import Patience
from ragistry.models.openai import OpenAICompatibleEmbedder
from ragistry.stores.chroma.client import space_of
from ragistry.stores.chroma.errors import translated
from ragistry.stores.chroma.rows import ChromaHit, nearest, query
from ragistry.stores.chroma.where import native
from ragistry.types import Document, Role, ScoreKind, StageScore, Where
from ragistry.utils.where import normalise

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

LAYER = "layer"

Answer = TypeVar("Answer")

SCORES: dict[ScoreKind, Callable[[float], float]] = {
    "cosine": lambda distance: min(1.0, max(0.0, 1.0 - distance)),
    "l2": lambda distance: 1.0 / (1.0 + distance),  # ChromaDB's l2 is the square of the distance
    "ip": lambda distance: 1.0 - distance,
}
"""Functions that convert the distance of each ChromaDB space to a score."""
MOST = 300
"""Maximum number of rows requested if the nearest are duplicates; some servers refuse more."""
UNIT = 1e-3
"""Tolerance of unit length, because some models compute in 16 bits."""


class RemoteHit(NamedTuple):
    """A passage and its distance.

    Attributes:
        distance: Distance, comparable within the same space and model.
        document: The passage.
        cosine: Cosine similarity to the query if known, comparable within the same model.
    """

    distance: float
    document: Document
    cosine: float | None = None


class Opened(NamedTuple):
    """An open collection and its space."""

    rows: Collection
    space: ScoreKind


class Archive:
    """The archive of a configuration, which threads may share.

    Missing values of the configuration come from the environment. ``place`` is its name in messages.
    """

    def __init__(self, config: RagArchiveConfig, settings: ArchiveSettings, clients: Clients) -> None:
        self.config = config
        self.name = config.name
        self.tei_url = config.tei_url or settings.tei_url
        self.layer = config.layer or settings.layer
        self.place = f"archive {config.name!r}, collection {config.collection_name!r}"
        self._clients = clients
        self._database = place_of(config, settings)
        self._opened: Opened | None = None

    def nearest(
        self, vector: Any, top_k: int, where: Where | None = None, *, with_cosines: bool = False
    ) -> tuple[ScoreKind, list[RemoteHit]]:
        """Find the nearest passages of the archive's layer.

        Duplicate texts are returned once, and rows without text are left out.

        Args:
            vector: ``(d,)`` floats of unit length.
            top_k: Maximum number of passages.
            where: Condition on metadata.
            with_cosines: Read the vectors of the results, if the cosine cannot be computed without them.

        Returns:
            The space, and the passages, nearest first.

        Raises:
            CollectionNotFoundError: The server lacks the collection.
            EmbeddingMismatchError: The vectors of the collection have another dimension.
            ChromaDBConnectionError: The server cannot be reached.
            StoreError: The collection cannot be read.
        """
        search = partial(self._nearest, vector, top_k, self._condition(where), with_cosines)
        return self._asked(search, len(vector))

    def count(self) -> int:
        """Count the passages of all layers. Raises as `nearest` does."""
        return self._asked(lambda opened: opened.rows.count())

    def sample(self, size: int) -> list[Document]:
        """Return the first passages of the archive's layer. Raises as `nearest` does."""
        condition = self._condition(None)
        said = True if condition is None else native(condition)[0]
        if said is False:
            return []
        selected = None if said is True else said
        found = self._asked(
            lambda opened: opened.rows.get(where=selected, limit=size, include=["documents", "metadatas"])
        )
        rows = zip(found["ids"], found["documents"] or (), found["metadatas"] or (), strict=True)
        return [Document(text, dict(metadata or {}), 0.0, identity) for identity, text, metadata in rows if text]

    def _asked(self, use: Callable[[Opened], Answer], dimension: int | None = None) -> Answer:
        """Call a function with the collection, whose vectors have this dimension if it is given."""
        with translated(self.place):
            if opened := self._opened:
                try:
                    with translated(self.place):
                        return use(opened)
                except CollectionNotFoundError:
                    self._opened = None  # it may have been recreated under the same name
            return use(self._open(dimension))

    def _open(self, dimension: int | None) -> Opened:
        client = self._clients.connection(self._database).client
        rows = client.get_collection(self.config.collection_name, embedding_function=None)
        found = space_of(rows)
        opened = Opened(rows, next((space for space in SCORES if space == found), "l2"))
        if dimension is not None:  # otherwise it is not kept, so that the next search checks it
            stored = rows.get(limit=1, include=["embeddings"])["embeddings"]
            if stored is not None and len(stored) and len(stored[0]) != dimension:
                raise EmbeddingMismatchError(
                    f"{self.place}: its vectors have {len(stored[0])} dimensions, those of "
                    f"{self.config.embedding_model!r} have {dimension}; set embedding_model to the model of the archive"
                )
            self._opened = opened
        return opened

    def _condition(self, where: Where | None) -> dict[str, Any] | None:
        parts: list[Where] = [] if self.layer == EVERY_LAYER else [{LAYER: self.layer}]
        parts += [] if where is None else [where]
        return normalise({"$and": parts}) if parts else None

    def _nearest(
        self, vector: Any, top_k: int, condition: dict[str, Any] | None, with_cosines: bool, opened: Opened
    ) -> tuple[ScoreKind, list[RemoteHit]]:
        rows, space = opened
        wanted, ask = top_k, partial(query, with_vectors=with_cosines and space != "cosine")
        found = nearest(rows, vector, wanted, condition, ask=ask)
        while len(distinct := _distinct(found)) < top_k and len(found) == wanted < MOST:
            wanted = min(MOST, 4 * wanted)
            found = nearest(rows, vector, wanted, condition, ask=ask)
        return space, [self._hit(hit, space) for hit in distinct[:top_k]]

    def _hit(self, hit: ChromaHit, space: ScoreKind) -> RemoteHit:
        score = SCORES[space](hit.distance)
        metadata = {**hit.row.public_metadata(), "archive": self.name}
        document = Document(hit.row.text, metadata, score, hit.id, (StageScore(self.name, space, score),))
        is_known = space == "cosine" or abs(hypot(*hit.vector) - 1) < UNIT
        # for unit vectors, squared l2 is 2 - 2 cos
        cosine = 1.0 - (hit.distance / 2 if space == "l2" else hit.distance)
        return RemoteHit(hit.distance, document, cosine if is_known else None)


def _distinct(found: list[ChromaHit]) -> list[ChromaHit]:
    """Keep each text once, at its nearest row, and drop rows without text."""
    texts: dict[str, ChromaHit] = {}
    for hit in found:
        if hit.row.text.strip():
            texts.setdefault(hit.row.text, hit)
    return list(texts.values())


def embed_query(
    text: str, embedding_model: str, tei_url: str | None = None, timeout: float | None = None
) -> list[float]:
    """Embed a query with ``POST {tei_url}/v1/embeddings``.

    Args:
        text: The query.
        embedding_model: Name of the model.
        tei_url: Address of the server; None for ``DOCPROC_TEI_EMBEDDINGS_URL``.
        timeout: Maximum seconds for each request; None for ``RAG_EMBED_TIMEOUT_SECONDS``.

    Returns:
        ``(d,)`` floats of unit length.

    Raises:
        ModelConnectionError: The server cannot be reached.
        ModelNotFoundError: The server serves another model.
        EmbeddingGenerationError: The server refuses the query.
        ModelError: The response is invalid.
    """
    settings = archive_settings()
    seconds = settings.embed_timeout if timeout is None else timeout
    with closing(query_embedder(embedding_model, tei_url or settings.tei_url, seconds)) as embedder:
        return [float(value) for value in embedder.embed([text], role="query")[0]]


def query_embedder(embedding_model: str, tei_url: str, timeout: float) -> OpenAICompatibleEmbedder:
    """Create an embedder for queries of archives.

    It does not retry, so that callers wait for ``timeout`` only once. It adds no prefix, because it is unknown whether
    the documents of an archive have one. It sends no probe, because archives record no fingerprint.
    """
    prefixes: dict[Role, str] = {"query": "", "document": ""}
    patience = Patience(timeout, timeout, attempts=1)
    return OpenAICompatibleEmbedder(embedding_model, url=tei_url, prefixes=prefixes, probe=False, patience=patience)
