"""Scores of retrieved ranges, against what a set of characters says."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.errors import EvaluationError
from ragistry.evaluation.chunking import Piece, chunk_scores, intersection, token_ranges, total, union


@st.composite
def pieces(draw, least=0):
    found = []
    for _ in range(draw(st.integers(least, 6))):
        start = draw(st.integers(0, 30))
        found.append(Piece(draw(st.sampled_from("ab")), start, start + draw(st.integers(1, 12))))
    return found


def characters(ranges):
    return {(text, at) for text, start, end in ranges for at in range(start, end)}


def as_ranges(*ends):
    return [Piece("a", start, end) for start, end in ends]


def test_a_chunk_that_is_the_answer_scores_one_everywhere():
    chunks = as_ranges((0, 10), (10, 20), (20, 30))
    assert chunk_scores(as_ranges((10, 20)), [chunks[1]], chunks) == (1, 1, 1, 1)


def test_half_an_answer_among_other_text():
    chunks = as_ranges((0, 10), (10, 20), (20, 30))
    scores = chunk_scores(as_ranges((15, 25)), chunks[:2], chunks)
    assert scores == pytest.approx((0.5, 5 / 20, 10 / 20, 5 / 25))


def test_what_two_retrieved_chunks_share_counts_twice_in_precision_and_iou_and_once_in_recall():
    chunks = as_ranges((0, 10), (5, 15))
    scores = chunk_scores(as_ranges((5, 10)), chunks, chunks)
    assert scores == pytest.approx((1, 5 / 20, 5 / 15, 5 / 20))


def test_the_same_place_in_another_text_is_no_answer():
    scores = chunk_scores([Piece("a", 0, 10)], [Piece("b", 0, 10)], [Piece("a", 0, 20), Piece("b", 0, 10)])
    assert scores == pytest.approx((0, 0, 0.5, 0))


def test_nothing_retrieved_scores_zero():
    assert chunk_scores(as_ranges((0, 4)), [], []) == (0, 0, 0, 0)


def test_a_part_of_the_answer_that_no_chunk_holds_lowers_precision_omega():
    assert chunk_scores(as_ranges((0, 10)), [], as_ranges((0, 5))).precision_omega == 0.5


@settings(max_examples=150, deadline=None)
@given(answer=pieces(least=1), chunks=pieces(), chosen=st.integers(0, 6))
def test_scores_equal_those_of_sets_of_characters(answer, chunks, chosen):
    retrieved = chunks[:chosen]
    wanted, shown = characters(answer), total(retrieved)
    found = len(wanted & characters(retrieved))
    touching = characters(chunk for chunk in chunks if characters([chunk]) & wanted)
    scores = chunk_scores(answer, retrieved, chunks)
    assert scores.recall == found / len(wanted)
    assert scores.precision == (found / shown if shown else 0)
    assert scores.iou == found / (shown + len(wanted) - found)
    assert scores.precision_omega == len(wanted & touching) / len(wanted | touching)
    assert all(0 <= score <= 1 for score in scores)


@settings(max_examples=100, deadline=None)
@given(a=pieces(), b=pieces())
def test_union_and_intersection_hold_the_same_characters_as_sets_do(a, b):
    joined = union(a)
    assert characters(joined) == characters(a)
    assert total(joined) == len(characters(a))
    assert characters(intersection(joined, union(b))) == characters(a) & characters(b)


@pytest.mark.parametrize("answer", [[], [Piece("a", 3, 3)]])
def test_an_answer_without_length_is_refused(answer):
    with pytest.raises(EvaluationError, match="empty"):
        chunk_scores(answer, [], [])


def test_a_range_that_runs_backwards_is_refused():
    with pytest.raises(EvaluationError, match="ends before it starts"):
        union([Piece("a", 5, 3)])


TOKENS = {"a": [(0, 3), (4, 7), (8, 11), (11, 12)]}  # "the cat sat."


@pytest.mark.parametrize(
    ("characters_", "tokens"),
    [((0, 12), (0, 4)), ((4, 7), (1, 2)), ((5, 9), (1, 3)), ((3, 4), (1, 1)), ((7, 12), (2, 4)), ((12, 14), (4, 4))],
)
def test_a_range_takes_the_tokens_of_which_it_holds_a_character(characters_, tokens):
    assert token_ranges([Piece("a", *characters_)], TOKENS) == [Piece("a", *tokens)]


def test_a_text_without_token_offsets_is_refused():
    with pytest.raises(EvaluationError, match="no token offsets of text 'b'"):
        token_ranges([Piece("b", 0, 1)], TOKENS)
