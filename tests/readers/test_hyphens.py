from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.readers.pdf_letters import BROKEN
from ragistry.readers.pdf_reader import rejoin


@pytest.mark.parametrize("end", ["-\n", "\u2010\n", "\u00ad\n", BROKEN])
def test_a_broken_word_is_joined(end: str) -> None:
    assert rejoin(f"about retrie{end}val of text") == "about retrieval of text"


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("task-\noriented and task-oriented", "task-oriented and task-oriented"),
        ("data-\nbase, database and data-base, database", "database, database and data-base, database"),
        ("state-of-the-\nart", "state-of-the-art"),
        ("the Jean-\nPaul case", "the Jean-Paul case"),
        ("an X-\nray of it", "an X-ray of it"),
        ("an ATP-\ndependent one", "an ATP-dependent one"),
        ("non-\nlinear but non-negative", "non-linear but non-negative"),
        ("token-\nbased and rule-based", "token-based and rule-based"),
        ("high-\nspeed at high and low speed", "high-speed at high and low speed"),
        ("pre-\nand post-war", "pre- and post-war"),
        ("high-\nlighted, a high-quality highlight", "highlighted, a high-quality highlight"),
        ("pre-\ndict, pre-trained, predicting", "predict, pre-trained, predicting"),
        ("Grund-\nform, Grund-Idee, Grundformen", "Grundform, Grund-Idee, Grundformen"),
        ("pre-\ntrain and pre-trained", "pre-train and pre-trained"),
        ("inter-\nnatio-\nnal", "international"),
        ("Übungs-\naufgaben", "Übungsaufgaben"),
        ("RESULTS: our RE-\nSULTS", "RESULTS: our RESULTS"),
    ],
)
def test_the_document_decides_about_the_hyphen(text: str, joined: str) -> None:
    assert rejoin(text) == joined


@pytest.mark.parametrize(
    "text", ["a dash -\nthen text", "pages 3-\n4", "- item\n- item", "well-known", "end-\n", "a-\n\nb"]
)
def test_what_is_no_broken_word_is_left_alone(text: str) -> None:
    assert rejoin(text) == text


def test_a_mark_beside_a_digit_becomes_a_hyphen() -> None:
    assert rejoin(f"pages 3{BROKEN}4") == "pages 3-4"


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["re", "val", "Paul", "-", "-\n", BROKEN, "\n", " ", "é", "中", "3"]), max_size=30))
def test_nothing_but_hyphens_and_line_ends_is_lost(parts: list[str]) -> None:
    text = "".join(parts)
    joined = rejoin(text)

    def rest(of: str) -> str:
        return "".join(character for character in of if character not in f"-{BROKEN}" and not character.isspace())

    assert rest(joined) == rest(text)
    assert BROKEN not in joined


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text", ["a" * 1_000_000, "中" * 1_000_000 + "-\nx", "pre-\n" + "a" * 1_000_000, "a-\n" * 100_000, "a-" * 300_000]
)
def test_hard_shapes_take_linear_time(text: str) -> None:
    assert len(rejoin(text)) <= len(text)
