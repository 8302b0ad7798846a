"""Search several archives at once, and merge their passages into one ranking."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from ragistry.config.archives import Archives, ArchiveSettings, Language, clamped
from ragistry.config.problems import parse_config
from ragistry.errors import InvalidConfigError, RagistryError
from ragistry.library.remote.clients import Clients, Outcomes, concurrently, in_time
from ragistry.library.remote.collection import Archive, RemoteHit, query_embedder
from ragistry.types import Document, EmbedderFingerprint, ScoreKind, StageScore, ranked
from ragistry.utils.ids import content_id
from ragistry.utils.limits import check_query
from ragistry.utils.wording import shown

if TYPE_CHECKING:
    from ragistry.models.openai import OpenAICompatibleEmbedder
    from ragistry.protocols import Vectors

log = logging.getLogger(__name__)

KEY = "rag_config"


class ChromaRagConfig(BaseModel):
    """The archives of one agent, and the language of the headings in answers (None: that of the environment)."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    archives: Archives = Field(default_factory=list)
    language: Language | None = None


def extract_rag_config(
    config: Mapping[str, Any] | None, assistant: Mapping[str, Any] | None = None
) -> ChromaRagConfig | None:
    """Read the archives from ``config["configurable"]["rag_config"]``, where an agent platform puts them.

    The archives of the thread completely replace those of the assistant, even by an empty list, as LangChain's
    ``merge_configs([assistant, thread])`` does. Unknown keys are ignored and logged.

    Args:
        config: Configuration of a thread or run.
        assistant: Configuration of the assistant, used if ``config`` has no archives.

    Returns:
        The configuration; None if neither has one.

    Raises:
        InvalidConfigError: With every problem.
    """
    for source in (config, assistant):
        found = _mapping(_mapping(source, "a configuration").get("configurable"), "configurable").get(KEY)
        if found is not None:
            return _parsed(found)
    return None


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    """Return the value, or an empty mapping for None. Errors name only its type: it may contain passwords."""
    if value is not None and not isinstance(value, Mapping):
        raise InvalidConfigError(
            f"{what} must be a mapping, got a value of type {type(value).__name__!r}; "
            f"write {{'configurable': {{{KEY!r}: {{'archives': [...]}}}}}}"
        )
    return value or {}


def _parsed(found: Any) -> ChromaRagConfig:
    if not isinstance(found, Mapping | ChromaRagConfig):
        raise InvalidConfigError(f"{KEY} must be a mapping, got a {type(found).__name__}; write {{'archives': [...]}}")
    if isinstance(found, ChromaRagConfig):
        return found
    known = {name: value for name, value in found.items() if name in ChromaRagConfig.model_fields}
    if "archives" not in known:  # else a misspelt key would give an agent without archives
        known = dict(found)
    elif len(known) < len(found):
        others = shown(sorted(map(str, found.keys() - known.keys())))
        log.warning("%s: ignored unknown keys: %s; known keys: %s", KEY, others, ", ".join(known))
    return parse_config(ChromaRagConfig, known, KEY)


SPARE = 1.0
"""Seconds beyond the two time limits, which are checked separately."""


class Model(NamedTuple):
    """An embedding model and the address of its server."""

    name: str
    url: str


@dataclass(frozen=True, slots=True)
class ArchiveAnswer:
    """Passages, best first; the searched archives; and the error of each archive that failed."""

    documents: list[Document]
    searched: tuple[str, ...]
    failed: tuple[tuple[str, RagistryError], ...]


class ArchiveSearch:
    """The archives of a configuration. Threads may share it.

    Connections are opened on first use and kept until `close`.
    """

    limited = True
    """Errors are only logged: they may name servers."""

    def __init__(self, config: ChromaRagConfig, settings: ArchiveSettings) -> None:
        self.settings = settings
        self.clients = Clients(settings.query_timeout)
        self.archives = [Archive(archive, settings, self.clients) for archive in config.archives]
        self._embedders: dict[Model, OpenAICompatibleEmbedder] = {}
        self._lock = Lock()

    def search(self, query: str, top_k: int | None = None) -> ArchiveAnswer:
        """Search all archives.

        An archive or a model that fails, or does not answer in time, is reported; the others are searched.

        Args:
            query: The query.
            top_k: Maximum number of passages, clamped to 1 to 20; None for the number of the environment.

        Raises:
            EmptyQueryError: The query is empty.
        """
        check_query(query)
        limit = clamped(self.settings.top_k if top_k is None else top_k)
        of_model: dict[Model, list[Archive]] = {}
        for archive in self.archives:
            of_model.setdefault(Model(archive.config.embedding_model, archive.tei_url), []).append(archive)
        outcomes = concurrently(
            {model: partial(self._ask, model, archives, query, limit) for model, archives in of_model.items()},
            self.settings.embed_timeout + self.settings.query_timeout + SPARE,
        )
        found: dict[Archive, ArchiveHits] = {}
        errors: dict[Archive, RagistryError] = {}
        for model, archives in of_model.items():
            if model in outcomes.values:
                found |= outcomes.values[model].values
                errors |= outcomes.values[model].errors
            else:
                errors |= dict.fromkeys(archives, outcomes.errors[model])
        for archive, error in errors.items():
            log.warning("%s was not searched: %s", archive.place, error)
        return ArchiveAnswer(
            merge_hits([found[archive] for archive in self.archives if archive in found], limit),
            tuple(archive.name for archive in self.archives if archive in found),
            tuple((archive.name, errors[archive]) for archive in self.archives if archive in errors),
        )

    def _ask(self, model: Model, archives: list[Archive], query: str, limit: int) -> Outcomes[Archive, ArchiveHits]:
        """Search the archives of one model; a slow model does not delay the others."""
        vector, fingerprint = in_time(partial(self._embed, model, query), self.settings.embed_timeout)

        def hits(archive: Archive) -> ArchiveHits:
            return ArchiveHits(fingerprint, *archive.nearest(vector, limit, with_cosines=len(archives) > 1))

        return concurrently({archive: partial(hits, archive) for archive in archives}, self.settings.query_timeout)

    def close(self) -> None:
        """Close all connections; the object cannot be used afterwards."""
        with self._lock:
            embedders, self._embedders = self._embedders, {}
        self.clients.close()
        for embedder in embedders.values():
            embedder.close()

    def _embed(self, model: Model, query: str) -> tuple[Vectors, EmbedderFingerprint]:
        with self._lock:
            embedder = self._embedders.get(model)
            if embedder is None:
                embedder = query_embedder(model.name, model.url, self.settings.embed_timeout)
                self._embedders[model] = embedder
        return embedder.embed([query], role="query")[0], embedder.fingerprint


STAGE = "archives"
K = 60
"""The constant of reciprocal rank fusion, as in the paper."""


class ArchiveHits(NamedTuple):
    """The hits of one archive, the model of its vectors, and the space of its distances."""

    model: Hashable
    space: ScoreKind
    hits: list[RemoteHit]


def merge_hits(found: Iterable[ArchiveHits], top_k: int) -> list[Document]:
    """Merge hits to the best ``top_k`` passages.

    They are ordered by distance within a model and space, by cosine across the spaces of a model, and by reciprocal
    rank across models, or if the cosines are unknown because vectors are not of unit length. A text found several times
    is returned once, with its best rank: copies do not count as votes. A document's id is that of its text; ``scores``
    name the kind of its score.
    """
    models: dict[Hashable, list[ArchiveHits]] = {}
    for one in found:
        models.setdefault(one.model, []).append(one)
    rankings = [ranking for of_model in models.values() for ranking in _rankings(of_model)]
    if len(rankings) == 1:
        return rankings[0][:top_k]
    best: dict[str, tuple[int, Document]] = {}
    for ranking in rankings:
        for rank, document in enumerate(ranking, 1):
            if document.id not in best or rank < best[document.id][0]:
                best[document.id] = rank, document
    return ranked(_scored(document, "rrf", 1 / (K + rank)) for rank, document in best.values())[:top_k]


def _rankings(found: list[ArchiveHits]) -> list[list[Document]]:
    """Rank the hits of one model: one ranking if all can be compared, else one per space."""
    spaces: dict[ScoreKind, list[RemoteHit]] = {}
    for _, space, hits in found:
        spaces.setdefault(space, []).extend(hits)
    cosines = [(hit, hit.cosine) for hits in spaces.values() for hit in hits if hit.cosine is not None]
    if len(spaces) > 1 and len(cosines) == sum(map(len, spaces.values())):
        return [_once((-cosine, _scored(hit.document, "cosine", cosine)) for hit, cosine in cosines)]
    return [_once((hit.distance, hit.document) for hit in hits) for hits in spaces.values()]


def _once(found: Iterable[tuple[float, Document]]) -> list[Document]:
    """Order the documents by distance, each text once."""
    named = [(distance, content_id(document.content), document) for distance, document in found]
    best: dict[str, Document] = {}
    for _, identity, document in sorted(named, key=lambda item: item[:2]):
        best.setdefault(identity, replace(document, id=identity))
    return list(best.values())


def _scored(document: Document, kind: ScoreKind, value: float) -> Document:
    score = min(1.0, max(0.0, value))
    return replace(document, score=score, scores=(*document.scores, StageScore(STAGE, kind, score)))
