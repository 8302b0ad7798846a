"""Build the router that a configuration names."""

from __future__ import annotations

from typing import TypeVar

from ragistry.errors import ConfigError
from ragistry.protocols import DocumentStore, Embedder, Generator
from ragistry.techniques.classes import SETTING
from ragistry.techniques.routing.config import RoutingConfig
from ragistry.techniques.routing.embedding import EmbeddingRouter
from ragistry.techniques.routing.evidence import EvidenceRouter
from ragistry.techniques.routing.explicit import AllRouter, ExplicitRouter
from ragistry.techniques.routing.llm import LLMRouter
from ragistry.techniques.routing.route import Limits, Router
from ragistry.techniques.routing.samples import Samples

Resource = TypeVar("Resource")


def make_router(
    config: RoutingConfig, store: DocumentStore | None, embedder: Embedder | None, generator: Generator | None
) -> Router:
    """Raises `ConfigError` with the resource that the router needs and that is missing."""
    limits = Limits(config.margin, config.threshold, config.most)
    if config.router == "explicit":
        return ExplicitRouter()
    if config.router == "all":
        return AllRouter()
    if config.router == "llm":
        return LLMRouter(_given(generator, "generator", config), config.on_error)
    known = _given(store, "store", config)
    if config.router == "embedding":
        embedder = _given(embedder, "embedder", config)
        return EmbeddingRouter(Samples(known, config.sample, embedder), embedder, limits)
    asked = _given(embedder, "embedder", config) if "vectors" in config.evidence else None
    return EvidenceRouter(Samples(known, config.sample, asked, words="words" in config.evidence), asked, limits)


def _given(resource: Resource | None, name: str, config: RoutingConfig) -> Resource:
    if resource is None:
        raise ConfigError(
            f"router {config.router!r} needs `{name}`, and none is configured here; "
            f"{SETTING.get(name, 'configure one')}, or change the router"
        )
    return resource
