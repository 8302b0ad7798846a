"""Route by the query's vector: compare it with descriptions and samples of the targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import exp, isnan
from typing import TYPE_CHECKING

import numpy as np

from ragistry.protocols import Embedder
from ragistry.techniques.routing.route import Limits, Route, decide
from ragistry.techniques.routing.samples import Samples
from ragistry.techniques.routing.sampling import Sample
from ragistry.techniques.routing.target import Reachable, Target
from ragistry.types import Where

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

NEIGHBOURS = 3
"""Number of nearest chunks of a sample to average; a single one may be near by chance."""
TEMPERATURE = 0.05
"""A difference of cosines that makes one target e times as likely as another."""


class EmbeddingRouter:
    """Nearest neighbours: a target scores by the nearest chunks of its sample, or by its description.

    All samples have the same size, so that large targets have no advantage. Scores sum to 1; ``fit`` is the best
    target's cosine similarity.
    """

    def __init__(self, samples: Samples, embedder: Embedder, limits: Limits) -> None:
        self.samples = samples
        self.neighbours = Neighbours(embedder)
        self.limits = limits

    def route(self, query: str, within: Sequence[Reachable], where: Where | None) -> Route:  # noqa: ARG002
        """See `Router`. Raises `ModelError`, `StoreError`, `TechniqueError`."""
        vector = self.neighbours.embedded(query)
        targets = [item.target for item in within]
        nearness = self.neighbours.of(vector, zip(targets, self.samples.of(within), strict=True))
        return decide("embedding", shares(nearness), max(nearness.values()), self.limits)


class Neighbours:
    """The cosine similarity of a query to each target, 0 to 1; 0 for an empty target.

    Without a sample, only the description of a target is used.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._descriptions: dict[str, Vectors] = {}

    def embedded(self, query: str) -> Vectors:
        """The query's vector. Raises `ModelError`."""
        vector: Vectors = self.embedder.embed([query], role="query")[0]
        return vector

    def of(self, query: Vectors, targets: Iterable[tuple[Target, Sample | None]]) -> dict[str, float]:
        """By the name of each target, which comes with its sample."""
        return {
            target.name: self._nearness(query, target, None if sample is None else sample.vectors)
            for target, sample in targets
        }

    def _nearness(self, query: Vectors, target: Target, held: Vectors | None) -> float:
        if held is not None and not len(held):
            return 0.0
        # Not `held @ query`: for so few rows, one thread is faster than several that wait for each other.
        near = [] if held is None else [_mean_of_best(np.vecdot(held, query))]
        if target.description.strip():
            near.append(float(self._description(target.description) @ query))
        return next((value for value in near if isnan(value)), max(0.0, *near)) if near else 0.0

    def _description(self, text: str) -> Vectors:
        if text not in self._descriptions:
            self._descriptions[text] = self.embedder.embed([text])[0]
        return self._descriptions[text]


def _mean_of_best(similarities: Vectors) -> float:
    count = min(NEIGHBOURS, len(similarities))
    similarities.partition(len(similarities) - count)
    best: list[float] = similarities[-count:].tolist()
    return sum(best) / count


def shares(nearness: Mapping[str, float]) -> dict[str, float]:
    """Similarities as shares of 1 (softmax); 0 stays 0."""
    best = max(nearness.values(), default=0.0)
    weights = {name: exp((value - best) / TEMPERATURE) if value else 0.0 for name, value in nearness.items()}
    total = sum(weights.values()) or 1.0
    return {name: float(weight / total) for name, weight in weights.items()}
