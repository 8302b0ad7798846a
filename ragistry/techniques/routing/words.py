"""How likely a query is in the language of each target, by the words of a sample of what it holds.

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

from ragistry.utils.text.analysis import analyse, query_terms

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
    """Of every word of a vocabulary the log-likelihood in each of several parts.

    It is beside that in all parts together, where each counts the same however much it holds; what is in none is as
    unlikely anywhere, 0. ``absent``, ``(parts,)``: of a word that a part does not have. ``gains``: by how much it is
    more where it has it, the parts of word ``n`` in ``starts[n]:starts[n + 1]``.
    """

    vocabulary: Vocabulary
    absent: NDArray[np.float32]
    starts: NDArray[np.int64]
    parts: NDArray[np.int64]
    gains: NDArray[np.float32]

    @classmethod
    def of(cls, parts: Sequence[Words], vocabulary: Vocabulary) -> Languages:
        """The languages of one part or more, none of which is empty."""
        size, many = len(vocabulary), len(parts)  # once: another thread may add to the vocabulary
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
        """Per word of the query, the log-likelihood of each part; empty where no part has any of the words."""
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
    """Log-likelihoods as shares of 1 (softmax)."""
    best = max(values, default=0.0)
    weights = [exp((value - best) / TEMPERATURE) for value in values]
    total = fsum(weights)
    return [weight / total for weight in weights]
