"""Archives as techniques and routing targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from ragistry.config.archives import ArchiveSettings, RagArchiveConfig, archive_settings, clamped
from ragistry.errors import ChromaDBConnectionError, ModelConnectionError, ModelError
from ragistry.library.remote.clients import Clients, LateError, in_time
from ragistry.library.remote.collection import Archive, query_embedder
from ragistry.techniques.routing.target import Target
from ragistry.trace import stage
from ragistry.types import Document, Where, ranked
from ragistry.utils.limits import check_query, check_top_k

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

Answer = TypeVar("Answer")


class ArchiveTechnique:
    """Dense retrieval from one archive.

    The time limits of `ArchiveSettings` apply to all calls.

    Attributes:
        name: Name for routers.
        description: Description for routers.
        place: Name in messages.
    """

    def __init__(self, archive: RagArchiveConfig, settings: ArchiveSettings) -> None:
        self.name = archive.name
        self.description = archive.description
        self._settings = settings
        self._clients = Clients(settings.query_timeout)
        self._archive = Archive(archive, settings, self._clients)
        self.place = self._archive.place
        self._embedder = query_embedder(archive.embedding_model, self._archive.tei_url, settings.embed_timeout)

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        """Return at most 20 passages; see `ragistry.protocols.Technique`.

        The metadata of each passage contain the name of the ``archive``.

        Raises:
            ModelError: The query cannot be embedded.
            StoreError: The archive cannot be read.
        """
        check_query(query)
        limit = self._settings.top_k if top_k is None else clamped(check_top_k(top_k))
        with stage("embed"):
            vector = self._embedded(query)
        with stage("search", archive=self.name) as search:
            _, hits = self._asked(partial(self._archive.nearest, vector, limit, where))
            search.documents_out = len(hits)
        return ranked(hit.document for hit in hits)

    def count(self) -> int:
        """Count the passages of all layers. Raises `StoreError`."""
        return self._asked(self._archive.count)

    def sample(self, size: int) -> list[Document]:
        """Return the first passages as a sample for routers. Raises `StoreError`."""
        return self._asked(partial(self._archive.sample, size))

    def _embedded(self, query: str) -> Vectors:
        seconds = self._settings.embed_timeout
        try:
            return in_time(lambda: self._embedder.embed([query], role="query")[0], seconds)
        except LateError as error:
            raise ModelConnectionError(f"{self.place}: its embedding service sent {error}") from error
        except ModelError as error:
            raise type(error)(f"{self.place}: {error}") from error

    def _asked(self, ask: Callable[[], Answer]) -> Answer:
        """Call a function, with the time limit of a query for all its requests."""
        try:
            return in_time(ask, self._settings.query_timeout)
        except LateError as error:
            raise ChromaDBConnectionError(f"{self.place}: {error}") from error

    def close(self) -> None:
        """Close the connections; the technique cannot be used afterwards."""
        self._clients.close()
        self._embedder.close()


def archive_technique(archive: RagArchiveConfig, settings: ArchiveSettings | None = None) -> ArchiveTechnique:
    """Create a technique that searches an archive.

    Args:
        archive: The archive.
        settings: Settings; None for those of the environment.
    """
    return ArchiveTechnique(archive, settings or archive_settings())


def archive_target(archive: RagArchiveConfig, settings: ArchiveSettings | None = None) -> Target:
    """Create a routing target for an archive."""
    return _target(archive_technique(archive, settings))


def _target(technique: ArchiveTechnique) -> Target:
    return Target(technique.name, technique.description, kind="archive", technique=technique, store=technique)


class ArchiveTargets:
    """Routing targets for archives; a server is contacted at the first search.

    Raises:
        InvalidConfigError: A variable of the environment is invalid.
    """

    def __init__(self, archives: Sequence[RagArchiveConfig]) -> None:
        settings = archive_settings() if archives else None
        self.techniques: list[ArchiveTechnique] = [archive_technique(archive, settings) for archive in archives]

    def targets(self) -> list[Target]:
        """Return the archives, in the order of the file."""
        return list(map(_target, self.techniques))

    def close(self) -> None:
        """Close every connection."""
        for technique in self.techniques:
            technique.close()
