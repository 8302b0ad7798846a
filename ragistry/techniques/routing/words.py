"""Language models of samples: the likelihood of a query in the words of each target.

Si, Jin, Callan and Ogilvie, "A Language Modeling Framework for Resource Selection and Results Merging", 2002; smoothed
as in Zhai and Lafferty, "A Study of Smoothing Methods for Language Models Applied to Information Retrieval", 2004.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from math import exp, fsum
from typing import NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from ragistry.text.analysis import analyse, query_terms

PRIOR, SHARE = 1_000, 0.1
"""Dirichlet prior: the number of words of the common language that are added to each target's, and their maximum as a
share of the target's own, so that a small collection keeps its language."""
TEMPERATURE = 0.5
"""Difference of log-likelihoods, per word of the query, that makes one target e times as likely as another."""

Vocabulary = dict[str, int]
"""The number of every word. It is shared by all compared samples, and only grows."""


class WordCounts(NamedTuple):
    """The words of some texts in sequence; ``sizes`` has the number of different words of each text."""

    terms: NDArray[np.int32]
    counts: NDArray[np.int32]
    sizes: NDArray[np.int32]

    @classmethod
    def of(cls, texts: Iterable[str], vocabulary: Vocabulary) -> WordCounts:
        """Count the words of texts, analysed like those of a query; add new words to the vocabulary."""
        counted = [Counter(analyse(text)) for text in texts]
        terms = [vocabulary.setdefault(term, len(vocabulary)) for counts in counted for term in counts]
        counts = np.fromiter(chain.from_iterable(each.values() for each in counted), dtype=np.int32, count=len(terms))
        sizes = np.array([len(each) for each in counted], dtype=np.int32)
        return cls(np.array(terms, dtype=np.int32), counts, sizes)

    def within(self, kept: NDArray[np.bool_]) -> WordCounts:
        """Select the words of the texts that are kept."""
        rows = np.repeat(kept, self.sizes)
        return WordCounts(self.terms[rows], self.counts[rows], self.sizes[kept])


class Languages(NamedTuple):
    """The log-likelihood of every word in each of several parts, relative to its likelihood in all parts together.

    Each part counts the same in the common language, independent of its size. A word that no part has is equally
    unlikely in all, 0.

    Attributes:
        vocabulary: The numbers of the words.
        absent: The value of a word that a part does not have, by part, ``(parts,)``.
        starts: The parts that have word ``n`` are ``parts[starts[n]:starts[n + 1]]``.
        parts: See ``starts``.
        gains: By how much the value exceeds ``absent`` there.
    """

    vocabulary: Vocabulary
    absent: NDArray[np.float32]
    starts: NDArray[np.int64]
    parts: NDArray[np.int64]
    gains: NDArray[np.float32]

    @classmethod
    def of(cls, parts: Sequence[WordCounts], vocabulary: Vocabulary) -> Languages:
        """Compute the languages of one or more parts, none of which is empty."""
        size, many = len(vocabulary), len(parts)  # read once: another thread may add to the vocabulary
        each = np.concatenate([words.terms.astype(np.int64) * many + part for part, words in enumerate(parts)])
        cells, place = np.unique(each, return_inverse=True)
        counts = np.bincount(place, weights=np.concatenate([words.counts for words in parts]))
        term, part = np.divmod(cells, many)
        sizes = np.bincount(part, weights=counts, minlength=many)
        prior = np.minimum(PRIOR, SHARE * sizes)
        common = np.bincount(term, weights=counts / sizes[part], minlength=size) / many
        gains = np.log1p(counts / common[term] / prior[part])
        starts = np.searchsorted(term, np.arange(size + 1))
        absent = np.log(prior / (sizes + prior))
        return cls(vocabulary, absent.astype(np.float32), starts, part, gains.astype(np.float32))

    def likelihoods(self, query: str) -> list[float]:
        """Compute the log-likelihood of a query in each part, per word; empty if no part has any of the words."""
        terms = query_terms(query)
        known = [(place, times) for term, times in terms.items() if self._is_known(place := self.vocabulary.get(term))]
        if not known:
            return []
        sums = self.absent * sum(times for _, times in known)
        for place, times in known:
            cells = slice(*self.starts[place : place + 2])
            sums[self.parts[cells]] += self.gains[cells] * times
        values: list[float] = (sums / sum(terms.values())).tolist()
        return values

    def _is_known(self, place: int | None) -> TypeGuard[int]:
        return place is not None and place + 1 < len(self.starts) and self.starts[place] < self.starts[place + 1]


def word_shares(values: Sequence[float]) -> list[float]:
    """Convert log-likelihoods to shares of 1 (softmax)."""
    best = max(values, default=0.0)
    weights = [exp((value - best) / TEMPERATURE) for value in values]
    total = fsum(weights)
    return [weight / total for weight in weights]
