"""How likely a query is in the language of each target, by the words of a sample of what it holds.

Si, Jin, Callan and Ogilvie, "A Language Modeling Framework for Resource Selection and Results Merging", 2002; smoothed
as in Zhai and Lafferty, "A Study of Smoothing Methods for Language Models Applied to Information Retrieval", 2004.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from math import exp, fsum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragistry.utils.analysis import analyse, query_terms

PRIOR, SHARE = 1_000, 0.1
"""Words of the language of all targets together that are added to those of each (Dirichlet prior), and the share of its
own that they are at most: a small collection is not to drown in them."""
TEMPERATURE = 0.5
"""A difference of log-likelihoods, per word of the query, that makes one target e times as likely as another."""


Vocabulary = dict[str, int]
"""The number of every word, shared by all whose words are compared; it only grows."""


class Words(NamedTuple):
    """The words of some texts, one after the other: ``sizes`` has how many different ones each text has."""

    terms: NDArray[np.int32]
    counts: NDArray[np.int32]
    sizes: NDArray[np.int32]

    @classmethod
    def of(cls, texts: Iterable[str], vocabulary: Vocabulary) -> Words:
        """The words of some texts, analysed as those of a query are; new ones join the vocabulary."""
        counted = [Counter(analyse(text)) for text in texts]
        terms = [vocabulary.setdefault(term, len(vocabulary)) for counts in counted for term in counts]
        counts = np.fromiter(chain.from_iterable(each.values() for each in counted), dtype=np.int32, count=len(terms))
        sizes = np.array([len(each) for each in counted], dtype=np.int32)
        return cls(np.array(terms, dtype=np.int32), counts, sizes)

    def within(self, kept: NDArray[np.bool_]) -> Words:
        """The words of the texts that are kept."""
        rows = np.repeat(kept, self.sizes)
        return Words(self.terms[rows], self.counts[rows], self.sizes[kept])


class Languages(NamedTuple):
    """Of every word of a vocabulary the log-likelihood in each of several parts, ``(words, parts)``.

    It is beside that in all parts together, where each counts the same however much it holds. ``known``: whether a word
    is in any of them; what is in none is as unlikely anywhere, 0.
    """

    vocabulary: Vocabulary
    ratios: NDArray[np.float32]
    known: bytes

    @classmethod
    def of(cls, parts: Sequence[Words], vocabulary: Vocabulary) -> Languages:
        """The languages of one part or more, none of which is empty."""
        size = len(vocabulary)  # once: another thread may add to it
        counts = np.empty((size, len(parts)), dtype=np.float32)
        for column, part in enumerate(parts):
            counts[:, column] = np.bincount(part.terms, weights=part.counts, minlength=size)
        sizes = counts.sum(axis=0, dtype=np.float64).astype(np.float32)
        prior = np.minimum(PRIOR, SHARE * sizes)
        common = (counts / sizes).mean(axis=1)
        known = common > 0
        ratios = np.zeros_like(counts)
        ratios[known] = np.log((counts[known] / common[known, None] + prior) / (sizes + prior))
        return cls(vocabulary, ratios, known.tobytes())

    def likelihoods(self, query: str) -> list[float]:
        """Per word of the query, the log-likelihood of each part; empty where no part has any of the words."""
        terms = query_terms(query)
        places: list[int] = []
        for term, times in terms.items():
            place = self.vocabulary.get(term, -1)
            if 0 <= place < len(self.known) and self.known[place]:
                places += [place] * times
        if not places:
            return []
        sums: list[float] = self.ratios[places].sum(axis=0).tolist()
        length = sum(terms.values())
        return [value / length for value in sums]


def word_shares(values: Sequence[float]) -> list[float]:
    """Log-likelihoods as shares of 1 (softmax)."""
    best = max(values, default=0.0)
    weights = [exp((value - best) / TEMPERATURE) for value in values]
    total = fsum(weights)
    return [weight / total for weight in weights]
