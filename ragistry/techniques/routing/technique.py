"""Choose the collections to search by the query, then search only these."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ragistry.config.parse import parse_config
from ragistry.errors import ConfigError
from ragistry.protocols import DocumentStore, Embedder, Generator, Technique
from ragistry.techniques.routing.config import RoutingConfig
from ragistry.techniques.routing.route import Route, Rule
from ragistry.techniques.routing.routers import make_router
from ragistry.techniques.routing.searching import search_targets
from ragistry.techniques.routing.target import Library, Reachable, Targets, library_targets, reachable
from ragistry.trace import stage
from ragistry.types import Document, Where
from ragistry.utils.limits import check_query
from ragistry.utils.where import normalise

if TYPE_CHECKING:
    from ragistry.techniques.registry import TechniqueRegistry


class CollectionRoutedTechnique:
    """Routing: choose the collections to search by the query, then search only these with the base.

    The targets are what ``targets`` gives, else the collections of the library. A router scores them:
    ``evidence`` by the words and vectors of a sample of what each holds, ``embedding`` by descriptions and the vectors
    of samples, ``llm`` lets a generator pick, ``explicit`` leaves it to the caller, ``all`` takes every one.
    Several are searched where the best are within ``margin`` of each other, none where what is found fits the query
    less than ``threshold``. A caller's ``where`` limits the targets; if one is left, no router is asked.
    """

    Config = RoutingConfig

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        base: Technique,
        store: DocumentStore | None = None,
        embedder: Embedder | None = None,
        generator: Generator | None = None,
        library: Library | None = None,
        targets: Targets | None = None,
    ) -> None:
        self.config = parse_config(self.Config, config, type(self).__name__)
        self.base = base
        if targets is None:
            if library is None:
                raise ConfigError(
                    f"{type(self).__name__} has nothing to choose from; "
                    "pass library=, or targets= with a function that returns a list of Target"
                )
            targets = partial(library_targets, library)
        self.targets: Targets = targets
        self.router = make_router(self.config, store, embedder, generator)

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        wanted = self.config.top_k if top_k is None else top_k
        condition = None if where is None else normalise(where)
        within, route = self._routed(query, condition)
        chosen = [item for item in within if item.target.name in route.chosen]
        if not chosen:
            return []
        return search_targets(query, chosen, self.base, wanted, condition)

    def route(self, query: str, where: Where | None = None) -> Route:
        """What `retrieve` would search, and why."""
        return self._routed(check_query(query), None if where is None else normalise(where))[1]

    def _routed(self, query: str, where: Where | None) -> tuple[list[Reachable], Route]:
        """The targets that the caller may reach, and the route among them."""
        targets = self.targets()
        within = reachable(targets, where)
        with stage("route") as this:
            if len(within) > 1:
                route = self.router.route(query, within, where)
            else:
                rule: Rule = "no targets" if not within else "only target" if len(targets) == 1 else "named"
                names = tuple(item.target.name for item in within)
                route = Route(self.config.router, rule, names, dict.fromkeys(names, 1.0))
            this.detail.update(route.detail())
        return within, route


def routing_technique(registry: TechniqueRegistry, technique: str | None) -> str:
    """The technique that was named, else the one that searches by default, if it routes, or the first that does.

    Raises `ConfigError` where the technique does not route, or none does, and `UnknownTechniqueError`.
    """
    if technique is not None:
        if not issubclass(registry.technique_class(technique), CollectionRoutedTechnique):
            raise ConfigError(f"technique {technique!r} does not route; name one that uses collection_routed")
        return technique
    for name in (registry.default, *registry.names()):
        if issubclass(registry.technique_class(name), CollectionRoutedTechnique):
            return name
    raise ConfigError(
        f"no technique of {registry.file.path} routes; add `routed: {{use: collection_routed, base: hybrid}}`"
    )
