"""Where a sentence, a line and a word end."""

from __future__ import annotations

import pytest

from ragistry.text import boundaries


def sentences(text: str) -> list[str]:
    """The text taken apart at every end of a sentence, from behind."""
    parts: list[str] = []
    padded = text + " "
    end = len(text)
    while end > 0:
        before = max(0, boundaries.last_sentence_end(padded, 0, end - 1))
        parts.insert(0, text[before:end].strip())
        end = before
    return parts


@pytest.mark.parametrize(
    "text",
    [
        "It ends. It begins.",
        "Does it end? It does!",
        "It trails off… Then it goes on.",
        'He said "stop." Then he left.',
        "(In brackets.) And outside.",
        "**Bold.** And plain.",
        "It ends .\nThe next line begins.",
        "It cost 3.50 in 1999. The next year more.",
        "See example.org. It helps.",
        "这是一句。 这是另一句。",
        "यह एक वाक्य है। यह दूसरा है।",
        "ما هذا؟ هذا كتاب.",
    ],
)
def test_a_mark_and_white_space_end_a_sentence(text: str) -> None:
    assert len(sentences(text)) == 2


def test_a_wide_mark_needs_no_white_space_and_keeps_its_closing_marks() -> None:
    assert sentences("「好。」他说。什么？？走") == ["「好。」", "他说。", "什么？？", "走"]  # noqa: RUF001


@pytest.mark.parametrize(
    "text",
    [
        "Ask Dr. Smith about it.",
        "Use a tool, e.g. a hammer.",
        "Smith et al. found it, cf. Fig. 3 in Vol. 2.",
        "J. R. R. Tolkien wrote it.",
        "The U.S. Army came.",
        "Nr. 5 gilt bzw. galt, z.B. am 3. Oktober.",
        "1. The first item",
        "Chapter one ........ 12",
        "Chapter one . . . . . 12",
        "Version 2.0.1 is out",
        "No mark at all",
    ],
)
def test_a_full_stop_that_ends_no_sentence(text: str) -> None:
    assert sentences(text) == [text]


@pytest.mark.parametrize(
    "item", ["- second", "* second", "• second", "2. second", "2) second", "| second |", "> second"]
)
def test_items_and_rows_are_kept_apart(item: str) -> None:
    assert sentences(f"the first\n  {item}") == ["the first", item]


def test_a_line_end_inside_a_sentence_ends_nothing() -> None:
    assert sentences("a sentence that\ngoes on - and on") == ["a sentence that\ngoes on - and on"]


def test_an_end_lies_inside_the_window() -> None:
    text = "One. Two. Three."
    assert boundaries.last_sentence_end(text, 0, 9) == 9
    assert boundaries.last_sentence_end(text, 0, 8) == 4
    assert boundaries.last_sentence_end(text, 4, 8) == -1
    assert boundaries.last_word_end("one two\u3000three", 0, 9) == 7
    assert boundaries.last_word_end("one two", 0, 2) == -1
    assert boundaries.last_line_end("one\ntwo\n", 0, 6) == 3
    assert boundaries.last_paragraph_end("one\n\ntwo", 0, 3) == 3
    assert boundaries.last_paragraph_end("one\n\ntwo", 0, 2) == -1


def test_a_start_lies_inside_the_window() -> None:
    text = "One. Two.\nThree four"
    assert boundaries.first_sentence_start(text, 1, 12) == 5
    assert boundaries.first_sentence_start(text, 5, 12) == 5
    assert boundaries.first_sentence_start(text, 6, 10) == -1
    assert boundaries.first_line_start(text, 1, 12) == 10
    assert boundaries.first_line_start(text, 11, 15) == -1
    assert boundaries.first_word_start(text, 11, 20) == 16
    assert boundaries.first_word_start(text, 17, 20) == -1
