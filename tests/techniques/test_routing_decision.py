"""From scores to a decision: best, several, or none."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.errors import TechniqueError
from ragistry.techniques.routing.route import Limits, decide


def test_the_best_alone_where_it_is_far_ahead() -> None:
    route = decide("evidence", {"a": 0.1, "b": 0.7, "c": 0.2}, 0.6, Limits(margin=0.2, threshold=0.3))
    assert (route.rule, route.chosen, list(route.scores)) == ("best", ("b",), ["b", "c", "a"])
    assert route.margin == pytest.approx(0.5)


def test_those_within_the_margin_and_no_more_than_the_most() -> None:
    scores = {"a": 0.25, "b": 0.3, "c": 0.22, "d": 0.21, "e": 0.02}
    assert decide("evidence", scores, 1, Limits(margin=0.1)).chosen == ("b", "a", "c")
    assert decide("evidence", scores, 1, Limits(margin=0.1)).rule == "small margin"
    assert decide("evidence", scores, 1, Limits(margin=0.1, most=5)).chosen == ("b", "a", "c", "d")
    assert decide("evidence", scores, 1, Limits(margin=0)).chosen == ("b",)


def test_none_where_the_fit_is_below_the_threshold() -> None:
    route = decide("evidence", {"a": 0.9, "b": 0.1}, 0.29, Limits(threshold=0.3))
    assert (route.rule, route.chosen, route.fit) == ("nothing fits", (), 0.29)
    assert decide("evidence", {"a": 0.9, "b": 0.1}, 0.3, Limits(threshold=0.3)).chosen == ("a",)


def test_without_evidence_nobody_is_preferred() -> None:
    route = decide("evidence", {"b": 0.0, "a": 0.0}, 0.0, Limits(most=1))
    assert (route.rule, route.chosen) == ("no evidence", ("a", "b"))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_score_that_is_no_number_is_told_and_never_chosen(bad: float) -> None:
    with pytest.raises(TechniqueError, match="the score of 'b' is not a finite number"):
        decide("embedding", {"a": 0.5, "b": bad}, 0.5, Limits())
    with pytest.raises(TechniqueError, match="the score of 'fit'"):
        decide("embedding", {"a": 0.5, "b": 0.2}, bad, Limits())


SHARES = st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 1), min_size=2)


@settings(max_examples=200, deadline=None)
@given(SHARES, st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.integers(1, 4))
def test_a_decision_keeps_to_its_limits(
    scores: dict[str, float], fit: float, margin: float, threshold: float, most: int
) -> None:
    route = decide("evidence", scores, fit, Limits(margin, threshold, most))
    assert set(route.scores) == set(scores)
    assert set(route.chosen) <= set(scores)
    assert bool(route.chosen) == (fit >= threshold)
    if route.chosen and route.rule != "no evidence":
        assert scores[route.chosen[0]] == max(scores.values())
        assert len(route.chosen) <= most
        assert all(max(scores.values()) - scores[name] <= margin for name in route.chosen)
