"""The rule that ends a judgement: an exact test, four looks, one error rate."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragistry.evaluation.stopping import FIRST, QUESTIONS, decide, flip_ps, level, looks, raised

VALUES = [0, 1 / 3, 1 / 2, 1]
DIFFERENCES = st.sampled_from(sorted({a - b for a, b in product(VALUES, VALUES)}))


@given(st.lists(DIFFERENCES, min_size=1, max_size=9))
def test_p_value_counts_all_flips(row: list[float]) -> None:
    flips = np.array(list(product([1, -1], repeat=len(row)))) @ row
    assert flip_ps(np.array([row]))[0] == pytest.approx((abs(flips) >= abs(sum(row)) - 1e-9).mean())
    assert flip_ps(-np.array([row, row])).tolist() == pytest.approx([flip_ps(np.array([row]))[0]] * 2)


@given(st.lists(DIFFERENCES, max_size=120), st.integers(1, 100), st.none() | st.sampled_from([0.05, 0.2]))
def test_more_grades_never_change_a_decision(row: list[float], total: int, margin: float | None) -> None:
    found = [decide(row[:count], total, margin) for count in range(len(row) + 1)]
    ended = [one for one in found if one.outcome != "open"]
    assert ended == ended[:1] * len(ended)
    plans = [one.total for one in found]
    assert plans == sorted(plans)
    assert len(set(plans)) <= 2
    for count, one in enumerate(found):
        if one.outcome == "open":
            assert count < (one.next_look or 0) <= one.total
        else:
            assert one.low <= one.difference <= one.high
            assert one.questions in looks(one.total)
            assert one.outcome == "not decided" or (one.difference > 0) == (one.outcome == "challenger")


def test_bounds_and_looks() -> None:
    assert looks(QUESTIONS) == [20, 40, 60, 80]
    assert looks(7) == [7]
    assert [round(level(look, 80), 4) for look in looks(80)] == [0.0001, 0.0042, 0.0194, 0.043]
    assert decide([1.0] * 20).outcome == "challenger"
    assert decide([-1.0] * 20).outcome == "default"
    assert decide([0.0] * 80).outcome == "not decided"


def test_number_of_questions_rises_by_the_squares_alone() -> None:
    rows = np.random.default_rng(0).choice([-1, -1 / 2, 0, 1 / 3], (50, FIRST))
    totals = raised(rows, QUESTIONS, 0.1)
    assert (totals == raised(abs(rows), QUESTIONS, 0.1)).all()
    assert (totals >= QUESTIONS).all()
    assert (raised(rows, QUESTIONS, 0.05) >= totals).all()


def test_no_difference_is_decided_in_one_of_twenty_at_most() -> None:
    draw, count = np.random.default_rng(1), 80
    rows = draw.choice([0, 0, 1 / 6, 1 / 2, 1], (count, 300)) * draw.choice([-1, 1], (count, 300))
    wrong = sum(decide(row.tolist(), margin=0.15).outcome != "not decided" for row in rows)
    assert wrong <= count * 0.05 + 3 * (count * 0.05 * 0.95) ** 0.5
