"""What is known of each target by its words and its vectors, with no search before that of the target itself."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import NamedTuple

from ragistry.protocols import Embedder
from ragistry.techniques.routing.embedding import Neighbours, shares
from ragistry.techniques.routing.route import Limits, Route, decide
from ragistry.techniques.routing.samples import Samples
from ragistry.techniques.routing.sampling import Sample
from ragistry.techniques.routing.target import Reachable
from ragistry.techniques.routing.words import Languages, word_shares
from ragistry.types import Where

CONTENDS = 0.1
"""The share by words from which on vectors are compared: those of a target cost more than the words of all."""


class _Spoken(NamedTuple):
    """The languages of samples: of the targets whose words are known, and of those of them that hold any."""

    targets: list[str]
    samples: list[Sample | None]
    known: list[str]
    filled: list[str]
    languages: Languages | None

    def by_words(self, query: str) -> tuple[dict[str, float], float]:
        """The share of each target whose words are known, and the log-likelihood of the best; none if none can tell."""
        values = self.languages.likelihoods(query) if self.languages else []
        if not values:
            return {}, 0.0
        return dict.fromkeys(self.known, 0.0) | dict(zip(self.filled, word_shares(values), strict=True)), max(values)


class EvidenceRouter:
    """Words and vectors of samples: first the words of every target, then the vectors of those that contend.

    After Si and Callan, "Relevant Document Distribution Estimation Method for Resource Selection", 2003: samples of
    the same size of every target stand for all that they hold. Scores are shares of 1, the mean of both; the ``fit``
    is the best target's cosine similarity, without vectors 0 to 1 by its likelihood.
    """

    def __init__(self, samples: Samples, embedder: Embedder | None, limits: Limits) -> None:
        self.samples = samples
        self.neighbours = None if embedder is None else Neighbours(embedder)
        self.limits = limits
        self._kept = _Spoken([], [], [], [], None)

    def route(self, query: str, within: Sequence[Reachable], where: Where | None) -> Route:  # noqa: ARG002
        """See `Router`. Raises `ModelError`, `StoreError`, `TechniqueError`."""
        # First: a model leaves nothing in the processor's caches, so that whatever is done before is as if done twice.
        vector = None if self.neighbours is None else self.neighbours.embedded(query)
        names, samples = [item.target.name for item in within], self.samples.of(within)
        spoken = self._spoken(names, samples, keep=all(item.where is None for item in within))
        by_words, likelihood = spoken.by_words(query)
        if self.neighbours is None or vector is None:
            fit = 1 / (1 + exp(-likelihood)) if by_words else 0.0
            return decide("evidence", dict.fromkeys(names, 0.0) | by_words, fit, self.limits, "by words")
        least = min(CONTENDS, max(by_words.values(), default=0.0))
        contend = [
            (item.target, sample)
            for item, sample in zip(within, samples, strict=True)
            if by_words.get(item.target.name, 1.0) >= least
        ]
        nearness = self.neighbours.of(vector, contend)
        by_vectors = dict.fromkeys(names, 0.0) | shares(nearness)
        # Words divide anew what vectors give to the targets whose words are known; of others they know nothing.
        total = sum([by_vectors[name] for name in by_words])
        divided = {name: (by_vectors[name] + total * share) / 2 for name, share in by_words.items()}
        note = "by vectors and words" if by_words else "by vectors"
        return decide("evidence", by_vectors | divided, max(nearness.values()), self.limits, note)

    def _spoken(self, names: list[str], samples: list[Sample | None], *, keep: bool) -> _Spoken:
        """The languages of samples; those of whole ones are kept as long as they stay the same."""
        kept = self._kept
        if kept.samples is not samples or kept.targets != names:
            known = {name: sample.words for name, sample in zip(names, samples, strict=True) if sample and sample.words}
            filled = {name: words for name, words in known.items() if len(words.terms)}
            languages = Languages.of(list(filled.values()), self.samples.vocabulary or {}) if filled else None
            kept = _Spoken(names, samples, list(known), list(filled), languages)
            if keep:
                self._kept = kept
        return kept
