"""What holds of every cut, whatever the text, and where cuts are made."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.chunking.spans import Region, cut_after, cut_before, cut_region
from ragistry.errors import ConfigError
from tests.chunking.span_invariants import check, cut

WORDS = [
    "a",
    "word",
    "Sentence.",
    "Dr.",
    "e.g.",
    "J.",
    "3.",
    "What?",
    '"Yes!"',
    "一个句子。",
    "「好。」",
    "....",
    "x" * 30,
]
BLANKS = [" ", "  ", "\n", "\n\n", "\r\n", "\r\n\r\n", "\n \t\n", "\t", "\u00a0", "\u3000", ""]
GRAPHEMES = ["e\u0301", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\u2764\ufe0f", "\u0301"]
STRUCTURE = ["- item", "| cell |", "# head", "```", "---", "1. first"]

texts = st.one_of(
    st.lists(st.sampled_from(WORDS + BLANKS * 2 + GRAPHEMES + STRUCTURE), max_size=60).map("".join),
    st.text(max_size=200),
)


@st.composite
def sizes(draw: st.DrawFn) -> tuple[int, int]:
    size = draw(st.integers(1, 60))
    return size, draw(st.integers(0, size - 1))


@given(texts, sizes())
@settings(max_examples=400, deadline=None)
def test_invariants_hold_for_any_text(text: str, pair: tuple[int, int]) -> None:
    size, overlap = pair
    spans = cut(text, size, overlap)
    check(text, spans, size, overlap)
    assert spans == cut(text, size, overlap)


@given(texts, sizes(), st.booleans())
@settings(max_examples=200, deadline=None)
def test_invariants_hold_for_lines_and_blocks(text: str, pair: tuple[int, int], lines: bool) -> None:
    size, overlap = pair
    thirds = len(text) // 3
    blocks = [(thirds, thirds + thirds // 2), (2 * thirds, len(text))] if thirds > 2 else []
    blocks = [(first, last) for first, last in blocks if not text[first].isspace()]
    region = Region(0, len(text), body=thirds, blocks=blocks, lines=lines)
    check(text, list(cut_region(text, region, size, overlap)), size, overlap)


@given(texts, sizes())
@settings(max_examples=100, deadline=None)
def test_a_region_is_cut_as_if_it_stood_alone(text: str, pair: tuple[int, int]) -> None:
    size, overlap = pair
    around = "Before the region. " * 3
    start = len(around)
    inside = list(cut_region(around + text + around, Region(start, start + len(text)), size, overlap))
    assert all(start <= first < last <= start + len(text) for first, last in inside)
    check(text, [(first - start, last - start) for first, last in inside], size, overlap)


def pieces(text: str, size: int, overlap: int = 0) -> list[str]:
    return [text[start:end] for start, end in cut(text, size, overlap)]


def test_text_that_fits_is_one_span_without_the_white_space_around_it() -> None:
    assert cut("  short text \n", 10) == [(2, 12)]
    assert cut("x" * 10 + "\n\n", 10) == [(0, 10)]


def test_as_many_paragraphs_as_fit_stay_together() -> None:
    assert pieces("One.\n\nTwo.\n\nThree has more.", 14) == ["One.\n\nTwo.", "Three has", "more."]


@pytest.mark.parametrize("blank_line", ["\n\n", "\r\n\r\n", "\n \t\n", "\n\n\n\n"])
def test_a_paragraph_end_comes_before_a_later_sentence_end(blank_line: str) -> None:
    text = f"The first paragraph.{blank_line}A sentence. Another sentence."
    assert pieces(text, 36) == ["The first paragraph.", "A sentence. Another sentence."]


def test_a_paragraph_end_that_leaves_a_span_nearly_empty_is_passed_over() -> None:
    assert pieces("Short.\n\nA sentence here. Another sentence.", 30) == [
        "Short.\n\nA sentence here.",
        "Another sentence.",
    ]


def test_without_a_sentence_end_a_line_end_is_taken_then_a_word_end_then_the_limit() -> None:
    assert pieces("some words\nand more words", 15) == ["some words", "and more words"]
    assert pieces("some words and more words", 15) == ["some words and", "more words"]
    assert pieces("ab\nsome words and more", 15) == ["ab\nsome words", "and more"]
    assert pieces("unbroken" * 3, 10) == ["unbrokenun", "brokenunbr", "oken"]


def test_the_limit_is_reached_exactly_where_a_word_ends_there() -> None:
    assert pieces("abcde fghij", 5) == ["abcde", "fghij"]
    assert pieces("Abcd. Efgh.", 5) == ["Abcd.", "Efgh."]


def test_lines_are_the_units_of_code() -> None:
    text = "first(1.0). again\nsecond(2)\nthird(3)"
    spans = cut_region(text, Region(0, len(text), lines=True), 30, 12)
    assert [text[start:end] for start, end in spans] == ["first(1.0). again\nsecond(2)", "second(2)\nthird(3)"]


def test_neighbours_on_unbroken_text_share_exactly_the_overlap() -> None:
    text = "".join(chr(ord("a") + at % 26) for at in range(1000))
    spans = cut(text, 100, 20)
    assert [before[1] - after[0] for before, after in pairwise(spans)] == [20] * (len(spans) - 1)
    assert spans[1] == (80, 180)


def test_the_largest_overlap_still_moves_on() -> None:
    assert cut("abcdef", 4, 3) == [(0, 4), (1, 5), (2, 6)]
    assert pieces("a bc   d", 4, 3) == ["a bc", "d"]


def test_a_span_shorter_than_the_overlap_is_not_repeated() -> None:
    assert pieces("好。" + "字" * 14, 10, 5) == ["好。", "字" * 10, "字" * 9]


def test_overlap_repeats_whole_sentences_and_as_many_as_fit() -> None:
    text = "First one. Second one. Third one. Fourth one. Fifth one."
    assert pieces(text, 34, 24) == [
        "First one. Second one. Third one.",
        "Second one. Third one. Fourth one.",
        "Third one. Fourth one. Fifth one.",
    ]
    assert pieces(text, 34, 12)[1].startswith("Third one. Fourth")


def test_overlap_crosses_the_end_of_a_paragraph() -> None:
    assert pieces("A long paragraph. It ends.\n\nThe next one.", 30, 10) == [
        "A long paragraph. It ends.",
        "It ends.\n\nThe next one.",
    ]


def test_where_no_sentence_starts_in_the_overlap_it_starts_at_a_word() -> None:
    assert pieces("one two three four five six seven", 19, 9) == ["one two three four", "four five six seven"]
    assert pieces("wonderful wonderful wonderful", 20, 5) == ["wonderful wonderful", "wonderful"]


def test_overlap_never_keeps_the_next_span_from_growing() -> None:
    text = "A sentence of some length. " + "x" * 40
    assert pieces(text, 30, 28)[1].endswith("xxx")


@pytest.mark.parametrize(
    "cluster",
    [
        "e\u0301",
        "\U0001f44d\U0001f3fd",
        "\u2764\ufe0f",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\u1112\u1161\u11ab",
        "\u0915\u094d\u0937\u093f",
        "\U0001f1e9\U0001f1ea",
    ],
    ids=["accent", "skin tone", "variation", "family", "Hangul", "Devanagari", "flag"],
)
@pytest.mark.parametrize("overlap", [0, 7])
def test_no_grapheme_is_cut(cluster: str, overlap: int) -> None:
    whole = pieces(cluster * 40, 16, overlap)
    assert len(whole) > 2
    assert all(piece.startswith(cluster[0]) and piece.count(cluster) * len(cluster) == len(piece) for piece in whole)


def test_a_grapheme_longer_than_the_limit_is_cut_at_the_limit() -> None:
    assert cut("a" + "\u0301" * 9, 4) == [(0, 4), (4, 8), (8, 10)]


@pytest.mark.parametrize(
    ("size", "overlap", "named"),
    [
        (0, 0, "max_chunk_size"),
        (-1, 0, "max_chunk_size"),
        (2.5, 0, "2.5"),
        (True, 0, "True"),
        (10, -1, "overlap"),
        (10, 10, "10 and 10"),
        (10, None, "None"),
    ],
)
def test_sizes_that_cannot_be_are_refused(size: int, overlap: int, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        cut("text", size, overlap)


def test_a_cluster_of_hundreds_of_marks_is_cut_where_it_was_asked() -> None:
    text = "a" + "\u0301" * 400 + "b"
    assert (cut_before(text, 0, 200), cut_after(text, 0, 200, len(text))) == (200, 200)
    assert (cut_before(text, 0, 20), cut_after(text, 0, 390, len(text))) == (20, 401)
