"""What is known of each target by its words and its vectors, with no search before that of the target itself."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import exp

from ragistry.protocols import Embedder
from ragistry.techniques.routing.embedding import Neighbours, shares
from ragistry.techniques.routing.route import Limits, Route, decide
from ragistry.techniques.routing.samples import Samples
from ragistry.techniques.routing.sampling import Sample
from ragistry.techniques.routing.target import Reachable
from ragistry.techniques.routing.words import Languages, Words, word_shares
from ragistry.types import Where

CONTENDS = 0.1
"""The share by words from which on vectors are compared: those of a target cost more than the words of all."""


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
        self._kept: tuple[list[Words], Languages] | None = None

    def route(self, query: str, within: Sequence[Reachable], where: Where | None) -> Route:  # noqa: ARG002
        """See `Router`. Raises `ModelError`, `StoreError`, `TechniqueError`."""
        names, samples = [item.target.name for item in within], self.samples.of(within)
        whole = all(item.where is None for item in within)
        by_words, likelihood = self._by_words(query, names, samples, keep=whole)
        if self.neighbours is None:
            fit = 1 / (1 + exp(-likelihood)) if by_words else 0.0
            return decide("evidence", dict.fromkeys(names, 0.0) | by_words, fit, self.limits, "by words")
        most = max(by_words.values(), default=0.0)
        contend = [
            (item.target, sample)
            for item, sample in zip(within, samples, strict=True)
            if by_words.get(item.target.name, 1.0) >= min(CONTENDS, most)
        ]
        nearness = self.neighbours.of(query, [target for target, _ in contend], [sample for _, sample in contend])
        by_vectors = dict.fromkeys(names, 0.0) | shares(nearness)
        # Words divide anew what vectors give to the targets whose words are known; of others they know nothing.
        total = sum(by_vectors[name] for name in by_words)
        divided = {name: (by_vectors[name] + total * share) / 2 for name, share in by_words.items()}
        note = "by vectors and words" if by_words else "by vectors"
        return decide("evidence", by_vectors | divided, max(nearness.values()), self.limits, note)

    def _by_words(
        self, query: str, names: Sequence[str], samples: Sequence[Sample | None], *, keep: bool
    ) -> tuple[dict[str, float], float]:
        """The share of each target whose words are known, and the log-likelihood of the best; none if none can tell."""
        known = {name: sample.words for name, sample in zip(names, samples, strict=True) if sample and sample.words}
        filled = {name: words for name, words in known.items() if len(words.terms)}
        values = self._language(list(filled.values()), keep=keep).likelihoods(query) if filled else []
        if not values:
            return {}, 0.0
        return dict.fromkeys(known, 0.0) | dict(zip(filled, word_shares(values), strict=True)), max(values)

    def _language(self, parts: list[Words], *, keep: bool) -> Languages:
        """The languages of samples; those of whole ones are kept as long as they stay the same."""
        kept = self._kept
        if kept is None or len(kept[0]) != len(parts) or not all(map(operator.is_, kept[0], parts)):
            kept = parts, Languages.of(parts, self.samples.vocabulary or {})
            if keep:
                self._kept = kept
        return kept[1]
