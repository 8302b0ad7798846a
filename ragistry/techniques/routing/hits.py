"""Where one search of words over everything finds its best hits, which may be the answer as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from math import fsum
from typing import Protocol, runtime_checkable

from ragistry.techniques.routing.evidence import EvidenceRouter
from ragistry.techniques.routing.route import Hits, Limits, Route, decide
from ragistry.techniques.routing.target import Reachable
from ragistry.types import Where
from ragistry.utils.analysis import query_terms

HITS = 20
"""Chunks that say where a query belongs."""
STEEPNESS = 4
"""A hit counts by this power of its score: one of half the best score a sixteenth of it."""
FITTING = 5
"""The best hits of the best target by which a query fits: one alone may be there by chance."""
FLATTENING = 0.25
"""Scores are sums over the words of a query; of twice the words few more are found in one document."""
HALF = 10.0
"""The mean score of these hits, over that power of the number of words, at which a query fits by half."""


@runtime_checkable
class HitSearch(Protocol):
    """A store that says where it finds words without reading what it found."""

    def text_hits(self, query: str, top_k: int, *, where: Where | None = None) -> Hits:
        """The ``top_k`` best chunks by BM25, and those that score the same as the last. Raises `StoreError`."""
        ...


class HitsRouter:
    """Votes: the best hits of one search of words over the store that all targets share.

    After Si and Callan, "Relevant Document Distribution Estimation Method for Resource Selection", 2003: the target
    that most of the best documents of a common index come from. Scores are shares of 1. The ``fit`` is ``s / (s + 10)``
    for the mean ``s`` of the five best BM25 scores of the best target over the fourth root of the number of words
    asked for: a sum over more words is larger by chance, but not by as many times. Where a target has a store of its
    own, or is only a part of a collection, the ``samples`` router decides: such hits do not tell what is that target's.
    """

    def __init__(self, words: HitSearch, samples: EvidenceRouter, limits: Limits) -> None:
        self.words = words
        self.samples = samples
        self.limits = limits

    def route(self, query: str, within: Sequence[Reachable], where: Where | None) -> Route:
        """See `Router`. Raises `StoreError`, `TechniqueError`."""
        names = [item.target.name for item in within]
        if any(item.target.technique is not None or item.target.where for item in within):
            return self.samples.route(query, within, where)
        hits = self.words.text_hits(query, HITS, where=where)
        scores: dict[str, list[float]] = {name: [] for name in names}
        for name, score in zip(hits.collections, hits.scores, strict=True):
            if name in scores:
                scores[name].append(score)
        shares = votes(scores)
        best = max(shares, key=shares.__getitem__)
        return decide("evidence", shares, _fit(query, scores[best]), self.limits, "by words", hits)


def votes(scores: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The share of every collection in hits by BM25, weighted by score; 0 where nothing was found."""
    best = max(chain.from_iterable(scores.values()), default=0.0)
    if best <= 0:
        return dict.fromkeys(scores, 0.0)
    weights = {name: fsum([(score / best) ** STEEPNESS for score in found]) for name, found in scores.items()}
    total = fsum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def _fit(query: str, scores: Sequence[float]) -> float:
    """``scores``: those of the best target, the highest first."""
    mean = fsum(scores[:FITTING]) / FITTING
    words = sum(query_terms(query).values())
    strength = mean / float(max(1, words) ** FLATTENING)
    return strength / (strength + HALF)
