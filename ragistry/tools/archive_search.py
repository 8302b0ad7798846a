"""A query to several archives at once: what they found, and which of them did not answer."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from ragistry.config.archives import ArchiveSettings, clamped
from ragistry.errors import RagistryError
from ragistry.library.remote.calls import Outcomes, concurrently, in_time
from ragistry.library.remote.clients import Clients
from ragistry.library.remote.collection import Archive, query_embedder
from ragistry.tools.archive_config import ChromaRagConfig
from ragistry.tools.archive_merge import Found, merged
from ragistry.types import Document, EmbedderFingerprint
from ragistry.utils.limits import check_query

if TYPE_CHECKING:
    from ragistry.models.openai import OpenAICompatibleEmbedder
    from ragistry.protocols import Vectors

log = logging.getLogger(__name__)

SPARE = 1.0
"""Seconds beyond the two times that are allowed, each of which is told apart where it is passed."""


class Model(NamedTuple):
    """An embedding model and the address of its server."""

    name: str
    url: str


class Embedded(NamedTuple):
    """A query's vector, ``(d,)``, and the model that it comes from."""

    vector: Vectors
    fingerprint: EmbedderFingerprint


@dataclass(frozen=True, slots=True)
class ArchiveAnswer:
    """Passages, best first; the archives that were searched, and the error of each that could not be."""

    documents: list[Document]
    searched: tuple[str, ...]
    failed: tuple[tuple[str, RagistryError], ...]


class ArchiveSearch:
    """The archives of a configuration. Servers are connected to on first use and kept; `close` lets go of them.

    Threads may share it.
    """

    def __init__(self, config: ChromaRagConfig, settings: ArchiveSettings) -> None:
        self.settings = settings
        self.clients = Clients(settings.query_timeout)
        self.archives = [Archive(archive, settings, self.clients) for archive in config.archives]
        self._embedders: dict[Model, OpenAICompatibleEmbedder] = {}
        self._lock = Lock()

    def search(self, query: str, top_k: int | None = None) -> ArchiveAnswer:
        """The best ``top_k`` passages of all archives, clamped to 1 to 20; None: as many as the environment says.

        An archive or a model that fails, or does not answer in time, is reported, and the others are served. Raises
        `EmptyQueryError`.
        """
        check_query(query)
        limit = clamped(self.settings.top_k if top_k is None else top_k)
        of_model: dict[Model, list[Archive]] = {}
        for archive in self.archives:
            of_model.setdefault(Model(archive.config.embedding_model, archive.tei_url), []).append(archive)
        asked = concurrently(
            {model: partial(self._ask, model, archives, query, limit) for model, archives in of_model.items()},
            self.settings.embed_timeout + self.settings.query_timeout + SPARE,
        )
        found: dict[Archive, Found] = {}
        errors: dict[Archive, RagistryError] = {}
        for model, archives in of_model.items():
            if model in asked.values:
                found |= asked.values[model].values
                errors |= asked.values[model].errors
            else:
                errors |= dict.fromkeys(archives, asked.errors[model])
        for archive, error in errors.items():
            log.warning("%s was not searched: %s", archive.place, error)
        return ArchiveAnswer(
            merged([found[archive] for archive in self.archives if archive in found], limit),
            tuple(archive.name for archive in self.archives if archive in found),
            tuple((archive.name, errors[archive]) for archive in self.archives if archive in errors),
        )

    def _ask(self, model: Model, archives: list[Archive], query: str, limit: int) -> Outcomes[Archive, Found]:
        """What the archives of one model find, or why not; a model that is slow holds up no others."""
        embedded = in_time(partial(self._embed, model, query), self.settings.embed_timeout)
        several = len(archives) > 1
        return concurrently(
            {archive: partial(_found, archive, embedded, limit, with_cosines=several) for archive in archives},
            self.settings.query_timeout,
        )

    def close(self) -> None:
        """Close all connections; nothing can be searched afterwards."""
        with self._lock:
            embedders, self._embedders = self._embedders, {}
        self.clients.close()
        for embedder in embedders.values():
            embedder.close()

    def _embed(self, model: Model, query: str) -> Embedded:
        with self._lock:
            embedder = self._embedders.get(model)
            if embedder is None:
                embedder = query_embedder(model.name, model.url, self.settings.embed_timeout)
                self._embedders[model] = embedder
        return Embedded(embedder.embed([query], role="query")[0], embedder.fingerprint)


def _found(archive: Archive, query: Embedded, top_k: int, *, with_cosines: bool) -> Found:
    space, hits = archive.nearest(query.vector, top_k, with_cosines=with_cosines)
    return Found(query.fingerprint, space, hits)
