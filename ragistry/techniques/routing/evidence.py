"""What searches of words and of vectors find, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import fsum

from ragistry.protocols import TextSearch
from ragistry.techniques.routing.embedding import Neighbours, shares
from ragistry.techniques.routing.route import Limits, Route, decide
from ragistry.techniques.routing.target import Reachable
from ragistry.types import Document, Where

HITS = 20
"""Documents of a search of words that say where a query belongs."""
STEEPNESS = 4
"""A hit counts by this power of its score: one of half the best score a sixteenth of it."""
HALF = 20.0
"""The BM25 score of a query's best hit at which it fits by half."""
SURE, NEAR = 0.9, 0.4
"""The share of the best target, and its cosine similarity, from which on vectors need no words beside them."""


class EvidenceRouter:
    """Votes: the nearest of a sample of vectors, and the best hits of one search of words over everything.

    After Si and Callan, "Relevant Document Distribution Estimation Method for Resource Selection", 2003: the target
    that most of the best documents of a common index come from. Words have that index, the store's own; vectors have
    a sample of the same size of every target. Where vectors are sure, words are not asked. Scores are shares of 1, the
    mean of both; the ``fit`` is the mean of the best target's cosine similarity and of ``s / (s + 20)`` for the best
    BM25 score ``s``, or one of the two where the other was not asked.
    """

    def __init__(self, words: TextSearch | None, neighbours: Neighbours | None, limits: Limits) -> None:
        self.words = words
        self.neighbours = neighbours
        self.limits = limits

    def route(self, query: str, within: Sequence[Reachable], where: Where | None) -> Route:
        """See `Router`. Raises `ModelError`, `StoreError`, `TechniqueError`."""
        nearness = self.neighbours.of(query, within) if self.neighbours else {}
        by_vectors, near = shares(nearness), max(nearness.values(), default=0.0)
        if self.words is None or (near >= NEAR and max(by_vectors.values()) >= SURE):
            return decide("evidence", by_vectors, near, self.limits, "by vectors")
        shared = [item.target.name for item in within if item.target.technique is None]
        hits = [
            hit for hit in self.words.search_text(query, HITS, where=where) if hit.metadata.get("collection") in shared
        ]
        by_words = votes(hits)
        best = max((hit.score for hit in hits), default=0.0)
        found = best / (best + HALF)
        if self.neighbours is None:
            scores = {item.target.name: by_words.get(item.target.name, 0.0) for item in within}
            return replace(decide("evidence", scores, found, self.limits, "by words"), hits=tuple(hits))
        # Words divide anew what vectors give to the targets of one store; of others they know nothing.
        total = fsum(by_vectors[name] for name in shared)
        divided = {name: (by_vectors[name] + total * by_words.get(name, 0.0)) / 2 for name in shared if by_words}
        return decide("evidence", by_vectors | divided, (near + found) / 2, self.limits, "by vectors and words")


def votes(hits: Sequence[Document]) -> dict[str, float]:
    """The share of every collection in hits by BM25, weighted by score; none where nothing was found."""
    best = max((hit.score for hit in hits), default=0.0)
    weights: dict[str, list[float]] = {}
    for hit in hits if best > 0 else ():
        weights.setdefault(hit.metadata["collection"], []).append((hit.score / best) ** STEEPNESS)
    total = fsum(weight for cast in weights.values() for weight in cast)
    return {name: fsum(cast) / total for name, cast in weights.items()}
