"""The language of what each target holds: by a formula, within a condition, and as the only evidence."""

from __future__ import annotations

from collections import Counter
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.techniques.routing.words import PRIOR, SHARE, Languages, Vocabulary, WordCounts, word_shares
from ragistry.text.analysis import analyse, query_terms

WORDS = st.sampled_from(["oven", "dough", "brake", "pads", "rose", "soil", "water", "oil"])
TEXT = st.lists(WORDS, min_size=1, max_size=12).map(" ".join)
PARTS = st.lists(st.lists(TEXT, min_size=1, max_size=4), min_size=2, max_size=4)


def by_formula(query: str, parts: list[list[str]]) -> list[float]:
    """A collection language model with a Dirichlet prior, word by word."""
    counts = [Counter(term for text in texts for term in analyse(text)) for texts in parts]
    sizes = [counted.total() for counted in counts]
    values = [0.0] * len(parts)
    for term, times in query_terms(query).items():
        common = sum(counted[term] / size for counted, size in zip(counts, sizes, strict=True)) / len(parts)
        for place, (counted, size) in enumerate(zip(counts, sizes, strict=True)):
            if common:
                prior = min(PRIOR, SHARE * size)
                values[place] += times * log((counted[term] + prior * common) / (size + prior) / common)
    return [value / sum(query_terms(query).values()) for value in values]


@settings(max_examples=30, deadline=None)
@given(TEXT, PARTS)
def test_likelihood_is_that_of_the_formula(query, parts):
    vocabulary: Vocabulary = {}
    found = Languages.of([WordCounts.of(texts, vocabulary) for texts in parts], vocabulary).likelihoods(query)
    if any(term in vocabulary for term in query_terms(query)):
        assert found == pytest.approx(by_formula(query, parts), abs=1e-4)
    else:
        assert found == []


@settings(max_examples=30, deadline=None)
@given(TEXT, PARTS, st.data())
def test_what_is_left_of_texts_is_as_if_the_others_had_never_been(query, parts, data):
    vocabulary: Vocabulary = {}
    words = [WordCounts.of(texts, vocabulary) for texts in parts]
    kept = [data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)).filter(any)) for texts in parts]
    left = [each.within(np.array(some)) for each, some in zip(words, kept, strict=True)]
    rest = [
        [text for text, keep in zip(texts, some, strict=True) if keep] for texts, some in zip(parts, kept, strict=True)
    ]
    alone: Vocabulary = {}
    expected = Languages.of([WordCounts.of(texts, alone) for texts in rest], alone).likelihoods(query)
    assert Languages.of(left, vocabulary).likelihoods(query) == pytest.approx(expected, abs=1e-4)


def test_word_that_came_later_is_unknown_to_languages_made_before():
    vocabulary: Vocabulary = {}
    languages = Languages.of(
        [WordCounts.of(["oven dough"], vocabulary), WordCounts.of(["brake pads"], vocabulary)], vocabulary
    )
    WordCounts.of(["trowel"], vocabulary)
    assert languages.likelihoods("trowel") == languages.likelihoods("xylophone") == []
    oven, brake = languages.likelihoods("a trowel and an oven")
    assert oven > brake


@given(st.lists(st.floats(-20, 5), min_size=1, max_size=6))
def test_shares_sum_to_one_in_the_order_of_the_likelihoods(values):
    shares = word_shares(values)
    assert sum(shares) == pytest.approx(1)
    assert shares[int(np.argmax(values))] == max(shares)
