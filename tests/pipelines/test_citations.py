"""Citations in the forms in which models write them."""

from __future__ import annotations

import pytest

from ragistry.pipelines.answer import cited_numbers, cited_sentences
from ragistry.utils.model_output import parse_answer, stream_without_reasoning, text_of, without_reasoning


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Tea is green [1, 2].", [("Tea is green.", [1, 2])]),
        ("Tea is green [1-3].", [("Tea is green.", [1, 2, 3])]),
        ("Tea is green [1] and [2].", [("Tea is green.", [1, 2])]),
        ("Tea is green [1]–[3].", [("Tea is green.", [1, 3])]),  # noqa: RUF001
        ("Tea【1】. Milk【2†source】.", [("Tea.", [1]), ("Milk.", [2])]),
        ("Tea【4:0†notes.pdf】.", [("Tea.", [4])]),
        ("Tea is green.[^1]", [("Tea is green.", [1])]),
        ("Tea is green [Source 1].", [("Tea is green.", [1])]),
        ("Tea is green (Passage 2).", [("Tea is green.", [2])]),
        ("Tea is green **[1]**. It is hot.", [("Tea is green.", [1]), ("It is hot.", [])]),
        ("Tea is green [[1]](http://host/1).", [("Tea is green.", [1])]),
        ("Tea is green <sup>[1]</sup>.", [("Tea is green.", [1])]),
        ("As [1] shows, tea is green. It is hot [3].", [("As shows, tea is green.", [1, 3]), ("It is hot.", [3])]),
        ("In [2024] the call `a[1]` fell [2].", [("In [2024] the call `a[1]` fell.", [2])]),
    ],
)
def test_citations_leave_clean_text(answer: str, expected: list[tuple[str, list[int]]]) -> None:
    assert cited_sentences(answer) == expected


def test_range_of_citations_is_limited() -> None:
    assert len(cited_numbers("[1-999]")) <= 51


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("<think>a {x} [1]</think>\n\nYes [1].", "Yes [1]."),
        ("<think></think>No", "No"),
        ("<think>it never ends {", ""),
        ("It began in the prompt [2].</think> Fine", "Fine"),
        ("Hello\n<think>x</think>\nworld", "Hello\nworld"),
        ("A tag <think> in a line is text", "A tag <think> in a line is text"),
        ("◁think▷hm◁/think▷ Yes", "Yes"),
        ("  - a\n  - b\n", "  - a\n  - b\n"),
    ],
)
def test_reasoning_is_removed(text: str, clean: str) -> None:
    assert without_reasoning(text) == clean
    assert "".join(stream_without_reasoning(text, hold=True)) == clean


@pytest.mark.parametrize("text", ["<think>a</think>Yes, it is.", "Yes <b>it</b> is.\n<thinking>b</thinking>No.", "a<b"])
def test_stream_gives_the_same_without_waiting_for_the_end(text: str) -> None:
    pieces = list(stream_without_reasoning(text))
    assert "".join(pieces) == without_reasoning(text)
    assert len(pieces) > 1


@pytest.mark.parametrize(
    "content", ["tea", [{"type": "text", "text": "tea"}], ["t", {"text": "ea"}, {"type": "image"}]]
)
def test_text_of_a_message_is_read_in_every_form(content: object) -> None:
    assert text_of(content) == "tea"
    assert text_of(None) == ""


def test_json_is_found_beside_braces() -> None:
    text = 'Use {x} or [y].\n```json\n{"a": [1, 2]}\n```\nNot {"b": 1}.'
    assert parse_answer(text, lambda value: value if value.startswith('{"a"') else int(value)) == '{"a": [1, 2]}'
    with pytest.raises(ValueError, match="invalid"):
        parse_answer("{}", int)
