"""Fusion against its definitions, written out once more; ties, repetitions and odd scores."""

from __future__ import annotations

import copy
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import permutations
from statistics import fmean, pstdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.errors import TechniqueError
from ragistry.techniques import fusion
from ragistry.techniques.fusion import distinct, fused_documents, scaled, scores_of, spreads_of
from ragistry.types import Document, StageScore, ranked
from ragistry.utils.ids import content_id
from tests.messages import refused

IDS = "abcdefghij"
reciprocal_rank_fusion = partial(fused_documents, fusion="rrf")
min_max_fusion = partial(fused_documents, fusion="min_max")
dbsf = partial(fused_documents, fusion="dbsf")


def prominences(rankings: list[list[Document]]) -> list[float]:
    scores = [scores_of(distinct(ranking)) for ranking in rankings]
    return fusion.prominences(scores, spreads_of(scores))


def ranking(scores: dict[str, float], stage: str = "dense") -> list[Document]:
    return ranked(
        Document(f"text of {name}", {"name": name}, score, name, (StageScore(stage, "other", score),))
        for name, score in scores.items()
    )


def by_rank(*names: str) -> list[list[Document]]:
    """Each of the words is a ranking of its letters."""
    return [ranking({letter: -float(rank) for rank, letter in enumerate(word)}) for word in names]


whole = st.integers(-50, 50).map(float)
rankings = st.lists(st.dictionaries(st.sampled_from(IDS), whole, max_size=8).map(ranking), min_size=1, max_size=4)
weights = st.lists(st.sampled_from([0.25, 0.5, 1.0, 2.0]), min_size=4, max_size=4)


def reference_rrf(given: list[list[Document]], k: int, factors: list[float]) -> dict[str, Fraction]:
    """Exact: of every document the sum, over the rankings that have it, of weight / (k + rank)."""
    values: dict[str, Fraction] = {}
    for factor, documents in zip(factors, given, strict=True):
        for position, document in enumerate(documents):
            values[document.id] = values.get(document.id, Fraction(0)) + Fraction(factor) / (k + position + 1)
    return values


def reference_min_max(given: list[list[Document]], factors: list[float]) -> dict[str, Fraction]:
    """Exact: the weighted mean of what is left of each score between the lowest and the highest of its ranking."""
    values = {document.id: Fraction(0) for documents in given for document in documents}
    for factor, documents in zip(factors, given, strict=True):
        scores = [Fraction(document.score) for document in documents]
        for document, score in zip(documents, scores, strict=True):
            width = max(scores) - min(scores)
            scaled = (score - min(scores)) / width if width else Fraction(1)
            values[document.id] += Fraction(factor) * scaled / sum(map(Fraction, factors))
    return values


def completed(given: list[list[Document]]) -> list[list[float]]:
    """The scores of each ranking, with zeros (or the lowest, if that is less) up to the length of the longest."""
    longest = max(map(len, given))
    lists = [[document.score for document in documents] for documents in given]
    return [scores + [min(0.0, *scores, 0.0)] * (longest - len(scores)) for scores in lists]


def reference_dbsf(given: list[list[Document]], factors: list[float]) -> dict[str, float]:
    """The weighted mean of how many standard deviations a score is above the lowest of its ranking."""
    values = {document.id: 0.0 for documents in given for document in documents}
    for factor, documents, scores in zip(factors, given, completed(given), strict=True):
        for document in documents:
            above = (document.score - min(scores)) / pstdev(scores) if len(set(scores)) > 1 else 1.0
            values[document.id] += factor * above / sum(factors)
    return values


def check(fused: list[Document], values: dict[str, Fraction]) -> None:
    assert {document.id: document.score for document in fused} == pytest.approx(
        {name: float(value) for name, value in values.items()}, rel=1e-14, abs=1e-15
    )
    assert fused == ranked(fused)


@given(rankings, weights, st.integers(0, 100))
@settings(max_examples=150, deadline=None)
def test_rrf_is_its_definition(given: list[list[Document]], factors: list[float], k: int) -> None:
    check(reciprocal_rank_fusion(given, k=k), reference_rrf(given, k, [1.0] * len(given)))
    factors = factors[: len(given)]
    check(reciprocal_rank_fusion(given, k=k, weights=factors), reference_rrf(given, k, factors))


@given(rankings, weights)
@settings(max_examples=150, deadline=None)
def test_min_max_is_its_definition(given: list[list[Document]], factors: list[float]) -> None:
    check(min_max_fusion(given), reference_min_max(given, [1.0] * len(given)))
    factors = factors[: len(given)]
    fused = min_max_fusion(given, weights=factors)
    check(fused, reference_min_max(given, factors))
    assert all(0 <= document.score <= 1 for document in fused)


@given(rankings, weights)
@settings(max_examples=150, deadline=None)
def test_dbsf_is_its_definition(given: list[list[Document]], factors: list[float]) -> None:
    factors = factors[: len(given)]
    for fused, values in (
        (dbsf(given), reference_dbsf(given, [1.0] * len(given))),
        (dbsf(given, weights=factors), reference_dbsf(given, factors)),
    ):
        assert {one.id: one.score for one in fused} == pytest.approx(values, rel=1e-12, abs=1e-12)
        assert fused == ranked(fused)
        assert all(document.score >= 0 for document in fused)


@given(rankings)
@settings(max_examples=150, deadline=None)
def test_a_prominence_is_the_z_score_of_the_best_document(given: list[list[Document]]) -> None:
    for found, documents, scores in zip(prominences(given), given, completed(given), strict=True):
        if len(set(scores)) > 1:
            assert found == pytest.approx((max(scores) - fmean(scores)) / pstdev(scores), rel=1e-12)
        else:
            assert found == (1 if documents else 0)


def test_a_short_ranking_is_far_above_what_it_did_not_find() -> None:
    rare_word = ranking({"a": 9.0, "b": 8.0, "c": 7.0}, "bm25")
    vectors = ranking({f"v{number}": 0.5 - number / 1000 for number in range(100)})
    assert prominences([rare_word])[0] < 1.3
    assert prominences([rare_word, vectors])[0] > 5
    assert [document.id for document in dbsf([rare_word, vectors], top_k=3)] == ["a", "b", "c"]


def test_a_best_score_that_stands_out_is_more_prominent_than_one_of_many_alike() -> None:
    alike = ranking({letter: 0.9 - number / 100 for number, letter in enumerate(IDS)})
    outstanding = ranking({letter: 9.0 if letter == "a" else 1.0 for letter in IDS})
    low, high = prominences([alike, outstanding])
    assert low < 1.6
    assert high == pytest.approx(3)
    scores = [document.score for document in alike]
    assert prominences([ranking({letter: 70 * score + 5 for letter, score in zip(IDS, scores, strict=True)})]) == (
        pytest.approx([low])
    ), "neither the unit nor the zero of the scores counts"


@pytest.mark.parametrize(
    ("scores", "expected"), [([], []), ([3.0], [1.0]), ([2.0, 2.0], [1.0, 1.0]), ([-4.0, 0.0, -2.0], [0.0, 1.0, 0.5])]
)
def test_scaled_scores_are_0_to_1(scores: list[float], expected: list[float]) -> None:
    assert scaled(scores) == expected


def test_the_constant_of_the_paper_is_60_and_the_first_rank_is_1() -> None:
    first, second, third = reciprocal_rank_fusion(by_rank("ab", "ca"))
    assert [document.id for document in (first, second, third)] == ["a", "c", "b"]
    assert first.score == pytest.approx(1 / 61 + 1 / 62, rel=1e-15)
    assert (second.score, third.score) == (1 / 61, 1 / 62)


def test_scores_of_different_kinds_are_never_compared() -> None:
    words = ranking({"a": 17.3, "b": 16.9, "c": 4.0}, "bm25")
    vectors = ranking({"d": 0.93, "b": 0.91, "e": 0.2})
    for fuse in (reciprocal_rank_fusion, min_max_fusion, dbsf):
        assert [document.id for document in fuse([words, vectors])][:3] == ["b", "a", "d"]
        larger = ranking({document.id: document.score * 1000 for document in words}, "bm25")
        assert [document.score for document in fuse([larger, vectors])] == pytest.approx(
            [document.score for document in fuse([words, vectors])]
        )


def test_equal_scores_are_in_the_order_of_their_ids() -> None:
    assert [document.id for document in reciprocal_rank_fusion(by_rank("ba", "ab"))] == ["a", "b"]
    assert [document.id for document in min_max_fusion(by_rank("zab", "yba"))] == ["y", "z", "a", "b"]


def test_the_same_ranks_in_another_order_are_a_tie() -> None:
    assert len({a + b + c for a, b, c in permutations((1 / 61, 1 / 62, 1 / 67))}) > 1, "plain sums depend on the order"
    for order in permutations(by_rank("abdefgc", "cahijkb", "bclmnoa")):
        best = reciprocal_rank_fusion(order, top_k=3)
        assert [document.id for document in best] == ["a", "b", "c"]
        assert len({document.score for document in best}) == 1


def test_a_document_keeps_what_every_stage_gave_it() -> None:
    [document] = min_max_fusion([ranking({"a": 0.5}), ranking({"a": 12.0}, "bm25")], stage="hybrid")
    assert document.scores == (
        StageScore("dense", "other", 0.5),
        StageScore("bm25", "other", 12.0),
        StageScore("hybrid", "min_max", 1.0),
    )
    [document] = reciprocal_rank_fusion([ranking({"a": 0.5})], stage="hybrid")
    assert document.scores[-1] == StageScore("hybrid", "rrf", document.score)


def test_what_is_given_is_not_changed() -> None:
    given = [ranking({"a": 0.5, "b": 0.25}), ranking({"a": 12.0}, "bm25")]
    before = copy.deepcopy(given)
    for fuse in (reciprocal_rank_fusion, min_max_fusion, dbsf):
        for document in fuse(given):
            document.metadata.clear()
        assert given == before


def test_a_document_without_an_id_is_known_by_what_it_says() -> None:
    nameless = [[Document("same", {"from": 1}, 0.9)], [Document("same", {"from": 2}, 3.0), Document("other", {}, 2.0)]]
    first, second = reciprocal_rank_fusion(nameless)
    assert (first.id, first.metadata, first.score) == (content_id("same"), {"from": 1}, 2 / 61)
    assert (second.id, second.score) == (content_id("other"), 1 / 62)


def test_of_a_repetition_the_first_counts() -> None:
    a, b = ranking({"a": 2.0, "b": 1.0})
    assert [document.score for document in reciprocal_rank_fusion([[a, a, b]])] == [1 / 61, 1 / 62]


@pytest.mark.parametrize("fuse", [reciprocal_rank_fusion, min_max_fusion, dbsf])
def test_a_ranking_of_weight_0_gives_no_documents(fuse: Callable[..., list[Document]]) -> None:
    both, alone = fuse(by_rank("abc", "cde"), weights=[0.0, 1.0]), fuse(by_rank("cde"))
    assert [(document.id, document.score) for document in both] == [(one.id, one.score) for one in alone]
    assert fuse(by_rank("ab", ""), weights=[0.0, 1.0]) == [], "in the order of ids they would be a matter of chance"


def test_equal_scores_of_a_ranking_are_all_its_best() -> None:
    fused = min_max_fusion([ranking({"a": 0.3, "b": 0.3}), ranking({"c": 9.0})])
    assert [(document.id, document.score) for document in fused] == [("a", 0.5), ("b", 0.5), ("c", 0.5)]


def test_nothing_fused_is_nothing() -> None:
    for fuse in (reciprocal_rank_fusion, min_max_fusion, dbsf):
        assert fuse([]) == []
        assert fuse([[], []]) == []
        assert [document.id for document in fuse([*by_rank("ab"), []])] == ["a", "b"]


def test_only_so_many_as_asked_for() -> None:
    for fuse in (reciprocal_rank_fusion, min_max_fusion, dbsf):
        assert fuse(by_rank("abcd", "ecb"), top_k=2) == fuse(by_rank("abcd", "ecb"))[:2]


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -float("inf")])
def test_scores_that_are_no_numbers_are_fused_by_rank_alone(score: float) -> None:
    strange = [Document("text", {}, score, "a"), Document("text", {}, 0.0, "b")]
    assert [document.id for document in reciprocal_rank_fusion([strange])] == ["a", "b"]
    with pytest.raises(TechniqueError, match=f"a score to fuse is {score}, not a finite number"):
        min_max_fusion([strange])
    with refused(TechniqueError):
        dbsf([strange])
    with refused(TechniqueError):
        prominences([strange])
