"""Lines of a converted text are found in their file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragistry.readers.line_numbers import line_numbers


@pytest.mark.parametrize(
    ("text", "source", "expected"),
    [
        ("", "", [1]),
        ("a b c", "x\n\na b c", [3]),
        ("# Title\n\nSome *words* here.\nMore.", "Title\n=====\n\nSome words here.\nMore.", [1, 2, 4, 5]),
        ("`run` it\n\n[Note 1: see there]", ":func:`run` it\n\n.. [1] see there", [1, 2, 3]),
        ("???\nfound it", "first\nsecond\nfound it", [2, 3]),
        ("nowhere\n\nneither", "other", [1, 1, 1]),
        ("same same\nsame same", "same same\nsame same", [1, 2]),
    ],
)
def test_lines_are_found_by_their_words(text: str, source: str, expected: list[int]) -> None:
    assert line_numbers(text, source) == expected


@given(
    st.lists(st.sampled_from(["", "```", "one two", "three", "four five six seven", "- a", "}"]), max_size=30),
    st.data(),
)
def test_lines_of_an_unchanged_text_are_their_own(lines: list[str], data: st.DataObject) -> None:
    text = "\n".join(f"{line} {number}" if line.isalnum() else line for number, line in enumerate(lines))
    numbers = line_numbers(text, text)
    assert len(numbers) == text.count("\n") + 1
    assert numbers == sorted(numbers)
    source = text.split("\n")
    assert all(
        line.strip() in source[number - 1] for line, number in zip(source, numbers, strict=True) if line.isalnum()
    )
