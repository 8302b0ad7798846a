"""Fusion against its definitions, written out once more; ties, repetitions and odd scores."""

from __future__ import annotations

import copy
from itertools import permutations
from statistics import fmean, pstdev
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.errors import TechniqueError
from ragistry.techniques import fusion
from ragistry.techniques.fusion import Fusion, distinct, fused_documents, scores_of, spreads_of
from ragistry.types import Document, StageScore, ranked
from ragistry.utils.ids import content_id
from tests.messages import refused

IDS = "abcdefghij"
FUSIONS: tuple[Fusion, ...] = ("rrf", "min_max", "dbsf")
every_fusion = pytest.mark.parametrize("fusion", FUSIONS)


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
rankings = st.lists(st.dictionaries(st.sampled_from(IDS), whole, max_size=8).map(ranking), max_size=4)
weights = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0]), min_size=4, max_size=4)


def completed(given: list[list[Document]]) -> list[list[float]]:
    """The scores of each ranking, with zeros (or the lowest, if that is less) up to the length of the longest."""
    longest = max(map(len, given), default=0)
    lists = [[document.score for document in documents] for documents in given]
    return [scores + [min(0.0, *scores, 0.0)] * (longest - len(scores)) for scores in lists]


def shares(fusion: str, documents: list[Document], scores: list[float], k: int) -> list[float]:
    """What a ranking gives to each of its documents by the definition, before weights."""
    if fusion == "rrf" or not documents:
        return [1 / (k + rank) for rank, _ in enumerate(documents, 1)]
    own = [document.score for document in documents]
    low, unit = (min(own), max(own) - min(own)) if fusion == "min_max" else (min(scores), pstdev(scores))
    return [(score - low) / unit if unit else 1.0 for score in own]


@every_fusion
@settings(max_examples=150, deadline=None)
@given(rankings, st.none() | weights, st.integers(0, 100))
def test_fusion_is_its_definition(fusion: Fusion, given: list[list[Document]], factors: Any, k: int) -> None:
    before = copy.deepcopy(given)
    factors = None if factors is None else factors[: len(given)]
    found = fused_documents(given, fusion, weights=factors, k=k)
    expected: dict[str, float] = {}
    for factor, documents, scores in zip(factors or [1.0] * len(given), given, completed(given), strict=True):
        total = 1 if fusion == "rrf" else sum(factors or [1.0] * len(given))
        for document, share in zip(
            documents, shares(fusion, documents, scores, k) if factor and documents else (), strict=False
        ):
            if factor:
                expected[document.id] = expected.get(document.id, 0.0) + factor * share / total
    assert {document.id: document.score for document in found} == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert found == ranked(found)
    assert fused_documents(given, fusion, weights=factors, k=k, top_k=2) == found[:2]
    for document in found:
        document.metadata.clear()
    assert given == before


@given(rankings)
@settings(max_examples=150, deadline=None)
def test_a_prominence_is_the_z_score_of_the_best_document(given: list[list[Document]]) -> None:
    for found, documents, scores in zip(prominences(given), given, completed(given), strict=True):
        if len(set(scores)) > 1:
            assert found == pytest.approx((max(scores) - fmean(scores)) / pstdev(scores), rel=1e-12)
        else:
            assert found == (1 if documents else 0)


def test_the_constant_of_the_paper_is_60_and_the_first_rank_is_1() -> None:
    first, second, third = fused_documents(by_rank("ab", "ca"), "rrf")
    assert [document.id for document in (first, second, third)] == ["a", "c", "b"]
    assert first.score == pytest.approx(1 / 61 + 1 / 62, rel=1e-15)
    assert (second.score, third.score) == (1 / 61, 1 / 62)


def test_the_same_ranks_in_another_order_are_a_tie() -> None:
    assert len({a + b + c for a, b, c in permutations((1 / 61, 1 / 62, 1 / 67))}) > 1, "plain sums depend on the order"
    for order in permutations(by_rank("abdefgc", "cahijkb", "bclmnoa")):
        best = fused_documents(order, "rrf", top_k=3)
        assert [document.id for document in best] == ["a", "b", "c"]
        assert len({document.score for document in best}) == 1


def test_a_document_keeps_what_every_stage_gave_it() -> None:
    [document] = fused_documents([ranking({"a": 0.5}), ranking({"a": 12.0}, "bm25")], "min_max", stage="hybrid")
    assert document.scores == (
        StageScore("dense", "other", 0.5),
        StageScore("bm25", "other", 12.0),
        StageScore("hybrid", "min_max", 1.0),
    )
    [document] = fused_documents([ranking({"a": 0.5})], "rrf", stage="hybrid")
    assert document.scores[-1] == StageScore("hybrid", "rrf", document.score)


def test_of_a_repetition_the_first_counts_and_a_document_without_an_id_is_known_by_its_text() -> None:
    nameless = [[Document("same", {"from": 1}, 0.9)] * 2, [Document("same", {"from": 2}, 3.0), Document("b", {}, 2.0)]]
    first, second = fused_documents(nameless, "rrf")
    assert (first.id, first.metadata, first.score) == (content_id("same"), {"from": 1}, 2 / 61)
    assert (second.id, second.score) == (content_id("b"), 1 / 62)


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -float("inf")])
def test_scores_that_are_no_numbers_are_fused_by_rank_alone(score: float) -> None:
    strange = [Document("text", {}, score, "a"), Document("text", {}, 0.0, "b")]
    assert [document.id for document in fused_documents([strange], "rrf")] == ["a", "b"]
    for by_score in FUSIONS[1:]:
        with refused(TechniqueError, score):
            fused_documents([strange], by_score)
    with refused(TechniqueError):
        prominences([strange])
