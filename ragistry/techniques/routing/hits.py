"""Where one search of words over everything finds its best hits, which may be the answer as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import fsum

from ragistry.protocols import TextSearch
from ragistry.techniques.routing.evidence import EvidenceRouter
from ragistry.techniques.routing.route import Limits, Route, decide
from ragistry.techniques.routing.target import Reachable
from ragistry.types import Document, Where
from ragistry.utils.analysis import query_terms

HITS = 20
"""Documents that say where a query belongs."""
STEEPNESS = 4
"""A hit counts by this power of its score: one of half the best score a sixteenth of it."""
FITTING = 5
"""The best hits of the best target by which a query fits: one alone may be there by chance."""
FLATTENING = 0.25
"""Scores are sums over the words of a query; of twice the words few more are found in one document."""
HALF = 10.0
"""The mean score of these hits, over that power of the number of words, at which a query fits by half."""


class HitsRouter:
    """Votes: the best hits of one search of words over the store that all targets share.

    After Si and Callan, "Relevant Document Distribution Estimation Method for Resource Selection", 2003: the target
    that most of the best documents of a common index come from. Scores are shares of 1. The ``fit`` is ``s / (s + 10)``
    for the mean ``s`` of the five best BM25 scores of the best target over the fourth root of the number of words
    asked for: a sum over more words is larger by chance, but not by as many times. Where a target has a store of its
    own, the ``samples`` router decides, since the store knows nothing of that target's words.
    """

    def __init__(self, words: TextSearch, samples: EvidenceRouter, limits: Limits) -> None:
        self.words = words
        self.samples = samples
        self.limits = limits

    def route(self, query: str, within: Sequence[Reachable], where: Where | None) -> Route:
        """See `Router`. Raises `StoreError`, `TechniqueError`."""
        names = [item.target.name for item in within]
        if any(item.target.technique is not None for item in within):
            return self.samples.route(query, within, where)
        hits = [
            hit for hit in self.words.search_text(query, HITS, where=where) if hit.metadata.get("collection") in names
        ]
        shares = dict.fromkeys(names, 0.0) | votes(hits)
        best = max(shares, key=lambda name: shares[name])
        route = decide(
            "evidence", shares, _fit(query, [hit for hit in hits if _name(hit) == best]), self.limits, "by words"
        )
        return replace(route, hits=tuple(hits))


def votes(hits: Sequence[Document]) -> dict[str, float]:
    """The share of every collection in hits by BM25, weighted by score; none where nothing was found."""
    best = max((hit.score for hit in hits), default=0.0)
    weights: dict[str, float] = {}
    for hit in hits if best > 0 else ():
        weights[_name(hit)] = weights.get(_name(hit), 0.0) + (hit.score / best) ** STEEPNESS
    total = fsum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def _name(hit: Document) -> str:
    return str(hit.metadata["collection"])


def _fit(query: str, hits: Sequence[Document]) -> float:
    mean: float = fsum(hit.score for hit in hits[:FITTING]) / FITTING
    words = sum(query_terms(query).values())
    strength = mean / float(max(1, words) ** FLATTENING)
    return strength / (strength + HALF)
