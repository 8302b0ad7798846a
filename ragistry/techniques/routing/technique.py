"""The technique ``collection_routed``: choose the collections to search by the query, then search only these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from math import exp
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from pydantic import Field

from ragistry.config.numbers import Number, Whole
from ragistry.config.problems import Configuration, parse_config
from ragistry.errors import ConfigError, ModelError, QueryError, StoreError
from ragistry.protocols import DocumentStore, Embedder, Generator, Technique
from ragistry.techniques.built_in import TechniqueConfig
from ragistry.techniques.classes import SETTING
from ragistry.techniques.query_fusion import fuse_by_rank
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.techniques.routing.route import LLMRouter, Route, decide, route_to_all
from ragistry.techniques.routing.samples import Sample, Samples
from ragistry.techniques.routing.target import Reachable, Target, TargetLibrary, Targets, library_targets, reachable
from ragistry.techniques.routing.words import Languages, word_shares
from ragistry.trace import degraded, stage
from ragistry.types import Document, Where, ranked
from ragistry.utils.limits import check_query
from ragistry.utils.where import matches, normalise
from ragistry.utils.wording import did_you_mean, listed

if TYPE_CHECKING:
    from ragistry.protocols import Vectors


BETWEEN = "\x1f"
"""Separator of target name and document id while rankings of several stores are fused."""

Resource = TypeVar("Resource")
Call = tuple[str, Callable[[], list[Document]]]
"""The name of what is searched, and the search."""


class CollectionRoutedTechnique:
    """Routing: choose the collections to search by the query, then search only these with the base.

    A router scores the targets: ``evidence`` by the words and vectors of a sample of each, ``embedding`` by
    descriptions and the vectors of samples. ``llm`` lets a generator choose, ``explicit`` leaves the choice to the
    caller, ``all`` searches every target. Several targets are searched if they are within ``margin`` of the best, none
    if the best fits the query less than ``threshold``. A caller's ``where`` limits the targets; if one is left, no
    router is asked. Without ``targets``, the targets are the collections of the library. ``techniques`` names the
    technique of a collection that the base does not search; rankings of several techniques are fused by rank.
    """

    class Config(TechniqueConfig):
        read_if = (
            *((key, "router", "evidence", "embedding") for key in ("margin", "threshold", "most", "sample")),
            ("evidence", "router", "evidence"),
            ("on_error", "router", "llm"),
        )
        router: Literal["evidence", "embedding", "llm", "explicit", "all"] = Field(
            default="evidence", description="the router that chooses"
        )
        margin: Number = Field(
            default=0.1, ge=0, le=1, description="also search targets that score less than this below the best"
        )
        threshold: Number = Field(
            default=0.0, ge=0, le=1, description="search nothing if the fit is lower; 0: always search"
        )
        most: Whole = Field(default=3, ge=1, le=100, description="maximum number of targets to search")
        evidence: list[Literal["words", "vectors"]] = Field(
            default=["words", "vectors"], min_length=1, description="router evidence: what to compare"
        )
        sample: Whole = Field(
            default=512, ge=3, le=10_000, description="number of chunks of each target to compare the query with"
        )
        on_error: Literal["raise", "all", "abstain"] = Field(
            default="raise", description="router llm: what to do if the answer names no target"
        )
        techniques: dict[str, str] = Field(
            default={}, description="collection: the technique that searches it instead of the base"
        )

    def __init__(
        self,
        config: Configuration,
        *,
        base: Technique,
        store: DocumentStore | None = None,
        embedder: Embedder | None = None,
        generator: Generator | None = None,
        library: TargetLibrary | None = None,
        targets: Targets | None = None,
        registry: TechniqueRegistry | None = None,
    ) -> None:
        self.config = parse_config(self.Config, config, type(self).__name__)
        self.base = base
        self.asks_model = self.config.router == "llm"
        self.techniques: dict[str, Technique] = {}
        if self.config.techniques:
            if registry is None:
                raise ConfigError(
                    f"{type(self).__name__}: techniques needs `registry`, which has them by name; pass one"
                )
            self.techniques = {target: registry.base(name) for target, name in self.config.techniques.items()}
        if targets is None:
            if library is None:
                raise ConfigError(
                    f"{type(self).__name__} has no targets; "
                    "pass library=, or targets= with a function that returns a list of Target"
                )
            targets = partial(library_targets, library)
        self.targets: Targets = targets
        self.router: LLMRouter | EvidenceRouter | None = None
        if self.asks_model:
            self.router = LLMRouter(self._required(generator, "generator"), self.config.on_error)
        elif self.config.router in ("evidence", "embedding"):
            evidence = self.config.evidence if self.config.router == "evidence" else ["vectors"]
            store = self._required(store, "store")
            embedder = self._required(embedder, "embedder") if "vectors" in evidence else None
            samples = Samples(store, self.config.sample, embedder, words="words" in evidence)
            self.router = EvidenceRouter(samples, self.config)

    @staticmethod
    def references(config: Mapping[str, Any]) -> list[str]:
        """List the techniques that ``techniques`` names, without duplicates; skip malformed values."""
        named = config.get("techniques")
        values = named.values() if isinstance(named, Mapping) else []
        return list(dict.fromkeys(name for name in values if isinstance(name, str)))

    def _required(self, resource: Resource | None, name: str) -> Resource:
        if resource is None:
            raise ConfigError(
                f"router {self.config.router!r} needs `{name}`, and none is configured here; "
                f"{SETTING.get(name, 'configure one')}, or change the router"
            )
        return resource

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        wanted = self.config.checked_limit(query, top_k)
        condition = normalise(where)
        within, route = self._routed(query, condition)
        chosen = [item for item in within if item.target.name in route.chosen]
        return self._search(query, chosen, wanted, condition)

    def route(self, query: str, where: Where | None = None) -> Route:
        """Return the route of a query: the targets that `retrieve` would search, and why."""
        return self._routed(check_query(query), normalise(where))[1]

    def _routed(self, query: str, where: Where | None) -> tuple[list[Reachable], Route]:
        """Return the targets that the caller may search, and the route among them."""
        targets = self.targets()
        within = reachable(targets, where)
        with stage("route") as this:
            if len(within) > 1:
                route = self._chosen(query, within, where)
            else:
                # The same whether other targets exist: a condition may stand for collections that a caller cannot see.
                route = route_to_all(self.config.router, "only target" if within else "no targets", within)
            this.detail.update(route.detail())
            self._check_names(targets)
        return within, route

    def _chosen(self, query: str, within: Sequence[Reachable], where: Where | None) -> Route:
        """Choose among two or more targets."""
        if self.router is not None:
            return self.router.route(query, within)
        if self.config.router == "all":
            return route_to_all("all", "all", within)
        if where is not None:
            return route_to_all("explicit", "named", within)
        collections = [item.target.name for item in within if item.target.kind == "collection"]
        others = [item.target.name for item in within if item.target.kind != "collection"]
        raise QueryError(
            "router 'explicit' needs a collection, and the search names none; "
            f"set `collection` to one of {listed(collections)}"
            + (f", or pass where={{'collection': NAME}} with one of {listed(others)}" if others else "")
        )

    def _check_names(self, targets: Sequence[Target]) -> None:
        """Report names in ``techniques`` that have no effect."""
        known = {target.name: target for target in targets}
        for name in self.config.techniques:
            if name not in known:
                degraded(f"techniques names {name!r}, which does not exist{did_you_mean(name, known)}")
            elif known[name].technique is not None:
                degraded(f"techniques names {name!r}, which is not a collection of the library")

    def _search(self, query: str, chosen: Sequence[Reachable], top_k: int, where: Where | None) -> list[Document]:
        """Search the chosen targets.

        Targets of one technique are searched together, so that their scores are comparable. The others are searched
        by their own techniques, in parallel, and the rankings are fused by rank.
        """
        together: dict[str | None, list[Reachable]] = {}
        for item in chosen:
            if item.target.technique is None:
                together.setdefault(self.config.techniques.get(item.target.name), []).append(item)
        calls: list[Call] = []
        for shared in together.values():
            technique = self.techniques.get(shared[0].target.name, self.base)
            names = ", ".join(item.target.name for item in shared)
            calls.append((names, partial(technique.retrieve, query, top_k=top_k, where=within_store(shared, where))))
        calls += [
            (item.target.name, partial(_search_target, query, item, item.target.technique, top_k, where))
            for item in chosen
            if item.target.technique is not None
        ]
        if len(calls) < 2:
            return [document for _, call in calls for document in call()]
        return _search_stores(calls, top_k)


def within_store(shared: Sequence[Reachable], where: Where | None) -> Where:
    """Write the condition for these targets of one store, limited to what the caller may search."""
    if any(item.target.where for item in shared):
        limit: Where = {"$or": [item.target.condition for item in shared]}
    else:  # the same condition, in a form that stores look up quickly
        names = [item.target.name for item in shared]
        limit = {"collection": {"$eq": names[0]} if len(names) == 1 else {"$in": names}}
    if where is not None:
        limit = {"$and": [where, limit]}
    return normalise(limit)


def _search_target(
    query: str, item: Reachable, technique: Technique, top_k: int, where: Where | None
) -> list[Document]:
    """Search a target with its own technique; add its name to the documents, and drop those that violate ``where``."""
    parts = [part for part in (item.where, item.target.condition) if part is not None]
    condition = normalise({"$and": parts}) if parts else None
    found = technique.retrieve(query, top_k=top_k, where=condition)
    named = [replace(document, metadata=document.metadata | item.target.facts) for document in found]
    return [document for document in named if where is None or matches(where, document.metadata)]


def _search_stores(calls: Sequence[Call], top_k: int) -> list[Document]:
    """Run searches in parallel and fuse their rankings.

    The trace names targets that cannot be searched. If all fail, the first error is raised.
    """
    rankings: list[list[Document]] = []
    failures: list[ModelError | StoreError] = []
    with ThreadPoolExecutor(len(calls), thread_name_prefix="route") as pool:
        pending = [(name, pool.submit(copy_context().run, call)) for name, call in calls]
    for name, future in pending:
        try:
            rankings.append([replace(found, id=f"{name}{BETWEEN}{found.id}") for found in future.result()])
        except (ModelError, StoreError) as error:
            failures.append(error)
            degraded(f"{name} was not searched: {error}")
    if failures and not rankings:
        raise failures[0]
    best = fuse_by_rank(rankings, "collection_routed", top_k=top_k)
    return ranked(replace(found, id=found.id.partition(BETWEEN)[2]) for found in best)


def routing_technique(registry: TechniqueRegistry, name: str | None) -> tuple[str, CollectionRoutedTechnique]:
    """Find a technique that routes: the named one, else the default technique or the first one that routes.

    Returns:
        Its name and the technique.

    Raises:
        ConfigError: The named technique does not route, or none does.
        UnknownTechniqueError: There is no technique of that name.
    """
    names = (registry.default, *registry.names()) if name is None else (name,)
    for one in names:
        if issubclass(registry.technique_class(one), CollectionRoutedTechnique):
            technique: Any = registry.get(one).technique
            return one, technique
    if name is not None:
        raise ConfigError(f"technique {name!r} does not route; name one that uses collection_routed")
    raise ConfigError(
        f"no technique of {registry.file.path} routes; add `routed: {{use: collection_routed, base: hybrid}}`"
    )


# --- The router by evidence: descriptions and samples of the targets ---


NEIGHBOURS = 3
"""Number of nearest chunks of a sample to average; a single one may be near by chance."""
TEMPERATURE = 0.05
"""Difference of cosines that makes one target e times as likely as another."""
CONTENDS = 0.1
"""Minimum share by words of a target whose vectors are compared: they cost more than the words of all targets."""


class EvidenceRouter:
    """Compares words and vectors: first the words of every target, then the vectors of the targets that contend.

    After Si and Callan, "Relevant Document Distribution Estimation Method for Resource Selection", 2003: samples of
    the same size represent the targets, so that large targets have no advantage. By vectors, a target scores by the
    nearest chunks of its sample, or by its description. Scores sum to 1 and are the mean of both comparisons. ``fit``
    is the best target's cosine similarity; without vectors, its likelihood mapped to 0 to 1.

    Args:
        samples: The samples; without words, only vectors are compared, without an embedder only words.
        config: The settings.
    """

    def __init__(self, samples: Samples, config: CollectionRoutedTechnique.Config) -> None:
        self.samples, self.name = samples, config.router
        self.limits = config.model_dump(include={"margin", "threshold", "most"})
        self._descriptions: dict[str, Vectors] = {}
        self._spoken: tuple[Any, Languages | None] = None, None
        """The last samples without a condition, and their languages."""

    def route(self, query: str, within: Sequence[Reachable]) -> Route:
        """Choose among two or more targets. Raises `ModelError`, `StoreError`, `TechniqueError`."""
        embedder = self.samples.embedder
        # First, because running a model clears the processor's caches.
        vector = None if embedder is None else embedder.embed([query], role="query")[0]
        names, samples = [item.target.name for item in within], self.samples.of(within)
        by_words, likelihood = self._by_words(query, names, samples, keep=all(item.where is None for item in within))
        # Targets of which nothing but the words is known, because all their chunks wait for their vectors.
        waiting = {
            name: by_words[name]
            for name, one in zip(names, samples, strict=True)
            if name in by_words and one is not None and one.vectors is None
        }
        least = min(CONTENDS, max(by_words.values(), default=0.0))
        contend = [
            (item.target, sample)
            for item, sample in zip(within, samples, strict=True)
            if by_words.get(item.target.name, 1.0) >= least and item.target.name not in waiting
        ]
        if vector is None or not contend:
            fit = 1 / (1 + exp(-likelihood)) if by_words else 0.0
            return decide(self.name, dict.fromkeys(names, 0.0) | by_words, fit, "by words", **self.limits)
        nearness = {target.name: self._nearness(vector, target, sample) for target, sample in contend}
        left = 1 - sum(waiting.values())
        by_vectors = dict.fromkeys(names, 0.0) | {name: left * one for name, one in shares(nearness).items()} | waiting
        # Redistribute the vectors' share of targets with known words by their word scores; other targets keep theirs.
        total = sum([by_vectors[name] for name in by_words])
        divided = {name: (by_vectors[name] + total * share) / 2 for name, share in by_words.items()}
        note = "by vectors and words" if by_words else "by vectors" if self.name == "evidence" else ""
        return decide(self.name, by_vectors | divided, max(nearness.values()), note, **self.limits)

    def _by_words(
        self, query: str, names: list[str], samples: list[Sample | None], *, keep: bool
    ) -> tuple[dict[str, float], float]:
        """Return the share of each target with known words and the best log-likelihood; empty without evidence."""
        known = {name: one.words for name, one in zip(names, samples, strict=True) if one and one.words}
        filled = {name: words for name, words in known.items() if len(words.terms)}
        of, languages = self._spoken
        if of is not samples:
            languages = Languages.of(list(filled.values()), self.samples.vocabulary or {}) if filled else None
            if keep:  # `Samples` returns the same list until something changes
                self._spoken = samples, languages
        values = languages.likelihoods(query) if languages else []
        if not values:
            return {}, 0.0
        return dict.fromkeys(known, 0.0) | dict(zip(filled, word_shares(values), strict=True)), max(values)

    def _nearness(self, query: Vectors, target: Target, sample: Sample | None) -> float:
        """Return the cosine similarity of a query to the sample or the description, 0 to 1; 0 for an empty target."""
        near = [0.0]
        if sample is not None and (held := sample.vectors) is not None:
            if not len(held):
                return 0.0
            # Not `held @ query`: for so few rows, one thread is faster than several that wait for each other.
            similarities = np.vecdot(held, query)
            count = min(NEIGHBOURS, len(held))
            similarities.partition(len(held) - count)
            near.append(sum(similarities[-count:].tolist()) / count)
        if (text := target.description).strip():
            if text not in self._descriptions:
                self._descriptions[text] = self.samples.embedder.embed([text])[0]  # type: ignore[union-attr]
            near.append(float(self._descriptions[text] @ query))
        return float(np.max(near))  # not a number if one is not


def shares(nearness: Mapping[str, float]) -> dict[str, float]:
    """Convert similarities to shares of 1 (softmax); 0 stays 0."""
    best = max(nearness.values(), default=0.0)
    weights = {name: exp((value - best) / TEMPERATURE) if value else 0.0 for name, value in nearness.items()}
    total = sum(weights.values()) or 1.0
    return {name: float(weight / total) for name, weight in weights.items()}
