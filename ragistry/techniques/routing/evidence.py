"""The router that compares a query with descriptions and samples of the targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import exp, isnan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ragistry.protocols import Embedder
from ragistry.techniques.routing.route import Limits, Route, decide
from ragistry.techniques.routing.samples import Sample, Samples
from ragistry.techniques.routing.target import Reachable, Target
from ragistry.techniques.routing.words import Languages, word_shares
from ragistry.types import Where

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

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
        samples: The samples; without words, only vectors are compared.
        embedder: The embedder of queries and descriptions; None: only words are compared.
        limits: When a target is chosen.
        name: Name of the router.
    """

    def __init__(self, samples: Samples, embedder: Embedder | None, limits: Limits, *, name: str = "evidence") -> None:
        self.name = name
        self.samples = samples
        self.neighbours = None if embedder is None else Neighbours(embedder)
        self.limits = limits
        self._kept = _LanguageModels([], [], [], [], None)

    def route(self, query: str, within: Sequence[Reachable], where: Where | None) -> Route:  # noqa: ARG002
        """See `Router`. Raises `ModelError`, `StoreError`, `TechniqueError`."""
        # First, because running a model clears the processor's caches.
        vector = None if self.neighbours is None else self.neighbours.embedded(query)
        names, samples = [item.target.name for item in within], self.samples.of(within)
        spoken = self._language_models(names, samples, keep=all(item.where is None for item in within))
        by_words, likelihood = spoken.by_words(query)
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
        if self.neighbours is None or vector is None or not contend:
            fit = 1 / (1 + exp(-likelihood)) if by_words else 0.0
            return decide(self.name, dict.fromkeys(names, 0.0) | by_words, fit, self.limits, "by words")
        nearness = self.neighbours.of(vector, contend)
        left = 1 - sum(waiting.values())
        by_vectors = dict.fromkeys(names, 0.0) | {name: left * one for name, one in shares(nearness).items()} | waiting
        # Redistribute the vectors' share of targets with known words by their word scores; other targets keep theirs.
        total = sum([by_vectors[name] for name in by_words])
        divided = {name: (by_vectors[name] + total * share) / 2 for name, share in by_words.items()}
        note = "by vectors and words" if by_words else "by vectors" if self.name == "evidence" else ""
        return decide(self.name, by_vectors | divided, max(nearness.values()), self.limits, note)

    def _language_models(self, names: list[str], samples: list[Sample | None], *, keep: bool) -> _LanguageModels:
        """Return the languages of samples; those of whole samples are kept until the samples change."""
        kept = self._kept
        if kept.samples is not samples or kept.targets != names:
            known = {name: sample.words for name, sample in zip(names, samples, strict=True) if sample and sample.words}
            filled = {name: words for name, words in known.items() if len(words.terms)}
            languages = Languages.of(list(filled.values()), self.samples.vocabulary or {}) if filled else None
            kept = _LanguageModels(names, samples, list(known), list(filled), languages)
            if keep:
                self._kept = kept
        return kept


class _LanguageModels(NamedTuple):
    """The language models of the samples of targets.

    Attributes:
        targets: Names of the targets.
        samples: Their samples, in the same order.
        known: Targets whose words are known.
        filled: Those of them that have words.
        languages: The models; None without words.
    """

    targets: list[str]
    samples: list[Sample | None]
    known: list[str]
    filled: list[str]
    languages: Languages | None

    def by_words(self, query: str) -> tuple[dict[str, float], float]:
        """Return the share of each target with known words and the best log-likelihood; empty without evidence."""
        values = self.languages.likelihoods(query) if self.languages else []
        if not values:
            return {}, 0.0
        return dict.fromkeys(self.known, 0.0) | dict(zip(self.filled, word_shares(values), strict=True)), max(values)


class Neighbours:
    """The cosine similarity of a query to targets, 0 to 1; 0 for an empty target.

    Only the description is used for a target without a sample.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._descriptions: dict[str, Vectors] = {}

    def embedded(self, query: str) -> Vectors:
        """Embed a query. Raises `ModelError`."""
        vector: Vectors = self.embedder.embed([query], role="query")[0]
        return vector

    def of(self, query: Vectors, targets: Iterable[tuple[Target, Sample | None]]) -> dict[str, float]:
        """Return the similarity of each target, which comes with its sample, by name."""
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
    """Convert similarities to shares of 1 (softmax); 0 stays 0."""
    best = max(nearness.values(), default=0.0)
    weights = {name: exp((value - best) / TEMPERATURE) if value else 0.0 for name, value in nearness.items()}
    total = sum(weights.values()) or 1.0
    return {name: float(weight / total) for name, weight in weights.items()}
