"""Listwise reranking by a generator: several orders of the list."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ragistry.techniques.llm_rerank import LLMRerankTechnique, reordered, starting_orders
from tests.messages import check_message
from tests.techniques.doubles import Facts, Says, degraded, names, traced

LETTERS = {f"d{number:02}": f"passage of relevance {number}" for number in range(1, 31)}


def base(count: int) -> Facts:
    """The least relevant passage first."""
    return Facts(*list(LETTERS)[:count], texts=LETTERS)


def relevances(prompt: str) -> list[int]:
    return [int(number) for number in re.findall(r"relevance (\d+)", prompt)]


def perfect(prompt: str) -> Any:
    found = relevances(prompt)
    return {"ranking": sorted(range(1, len(found) + 1), key=lambda number: -found[number - 1])}


def as_shown(prompt: str) -> Any:
    """A model that prefers whatever stands first."""
    return {"ranking": list(range(1, len(relevances(prompt)) + 1))}


@pytest.mark.parametrize("orders", [1, 2, 3])
def test_best_come_first_whatever_the_order(orders):
    generator = Says(perfect)
    documents = LLMRerankTechnique({"orders": orders}, base=base(12), generator=generator).retrieve("q", top_k=3)
    assert names(documents) == ["d12", "d11", "d10"]
    assert [document.score for document in documents] == [1, 1 / 2, 1 / 3]
    assert documents[0].scores[-1].kind == "rank"
    assert len(generator.prompts) == orders


def test_model_that_prefers_the_first_place_changes_nothing():
    documents = LLMRerankTechnique({}, base=base(9), generator=Says(as_shown)).retrieve("q", top_k=9)
    assert names(documents) == list(LETTERS)[:9]


def test_second_order_evens_out_a_preference_for_the_first_place():
    def biased(prompt: str) -> Any:
        return {"ranking": [1, *(number for number in perfect(prompt)["ranking"] if number != 1)]}

    one, two = (
        LLMRerankTechnique({"orders": orders}, base=base(9), generator=Says(biased)).retrieve("q", top_k=9)
        for orders in (1, 2)
    )
    assert names(one)[:2] == ["d01", "d09"]
    assert names(two)[:3] == ["d09", "d08", "d07"]


def test_numbers_that_are_repeated_invented_or_forgotten_lose_no_passage():
    assert reordered([10, 11, 12, 13], [3, 3, 0, -1, 99, 1]) == [12, 10, 11, 13]
    assert reordered([10, 11], []) == [10, 11]


def test_orders_are_that_of_the_base_its_reverse_and_then_random_but_always_the_same():
    orders = starting_orders(6, 4, seed="q")
    assert orders[:2] == [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0]]
    assert all(sorted(order) == list(range(6)) for order in orders)
    assert orders == starting_orders(6, 4, seed="q") != starting_orders(6, 4, seed="other")


def test_candidates_after_fetch_keep_their_places_below():
    documents = LLMRerankTechnique({"fetch": 3}, base=base(6), generator=Says(perfect)).retrieve("q", top_k=5)
    assert names(documents) == ["d03", "d02", "d01", "d04", "d05"]


def test_order_without_an_answer_does_not_count():
    def reply(prompt: str) -> Any:
        return perfect(prompt) if relevances(prompt)[0] == 1 else "?"

    documents, stages = traced(LLMRerankTechnique({}, base=base(4), generator=Says(reply)), "q")
    assert names(documents) == ["d04", "d03", "d02", "d01"]
    check_message(degraded(stages), "1 of 2")


def test_one_candidate_costs_no_call():
    generator = Says(perfect)
    assert names(LLMRerankTechnique({}, base=base(1), generator=generator).retrieve("q")) == ["d01"]
    assert generator.prompts == []
