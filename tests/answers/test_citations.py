"""Citations in the forms in which models write them."""

from __future__ import annotations

import re

import pytest

from ragistry.answers.citations import (
    cited_numbers,
    cited_sentences,
    with_plain_citations,
    without_begun_citation,
)
from ragistry.utils.model_output import parse_answer, stream_without_reasoning, text_of, without_reasoning


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("One. Two [1][2].", [("One.", [1, 2]), ("Two.", [1, 2])]),
        ("One [1]. Two [2, 3]", [("One.", [1]), ("Two", [2, 3])]),
        ("One. [1] Two. [2]", [("One.", [1]), ("Two.", [2])]),
        ("One\n[1]\n\nTwo [2] Three", [("One", [1]), ("Two", [2]), ("Three", [])]),
        ("No marks at all.", [("No marks at all.", [])]),
        ("[1]", []),
        ("One.\n\nTwo [1].", [("One.", []), ("Two.", [1])]),
        ("- One\n- Two [1]", [("One", []), ("Two", [1])]),
        ("Both [1]:\n- One\n- Two [2]\n\nThree", [("Both:", [1]), ("One", [1]), ("Two", [2]), ("Three", [])]),
        ("One [1]:\n```\na[2]. B\n```\n[3]", [("One:", [1]), ("a[2]. B\n", [3])]),
        ("One:\n~~~\na\n\nb [2]", [("One:", []), ("a\n\nb [2]", [])]),
        ("| a |\n|---|\n| b [1] |", [("| a |", []), ("| b |", [1])]),
        ("A ` tick [1]. B [2].", [("A ` tick.", [1]), ("B.", [2])]),
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
        ("As [1] shows, tea is green. It is hot [3].", [("As shows, tea is green.", [1]), ("It is hot.", [3])]),
        ("In [2024] the call `a[1]` fell [2].", [("In [2024] the call `a[1]` fell.", [2])]),
    ],
)
def test_citations_leave_clean_text(answer: str, expected: list[tuple[str, list[int]]]) -> None:
    assert [(one.text, list(one.numbers)) for one in cited_sentences(answer)] == expected


def test_sentences_cover_the_text_in_order() -> None:
    text = "Sure!\n\n1. **One** [1]. More.\n   ```\n   x\n   ```\n2) Two[2]\n***\n> Three [1] Four"
    at = 0
    for one in cited_sentences(text):
        assert not re.search(r"\w", text[at : one.start])
        at = one.end
    assert at == len(text)


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("Tea【1†a.md】,\n\tmilk [2-3], `a[1]`.", "Tea[1],\n\tmilk [2][3], `a[1]`."),
        ("Tea [9].\n[7] Milk (Source 1), [2024].", "Tea.\n Milk [1], [2024]."),
        ("Tea [1] and [2][2].\r\n```\n[^1]\n```", "Tea [1][2].\r\n```\n[^1]\n```"),
        (r"Tea \[1\], milk \\[2\\].", "Tea [1], milk [2]."),
        ("Tea［1］, milk［１，２］.", "Tea[1], milk[1][2]."),  # noqa: RUF001
        ("Tea〔1〕, milk〖2〗, water⟦3⟧.", "Tea[1], milk[2], water[3]."),  # noqa: RUF001
        ("Tea [citation:1][citation:2], milk [[citation:3]].", "Tea [1][2], milk [3]."),
        ("Tea [cite: 1, 2], milk [doc_3], water [ID: 1], ice [来源：2].", "Tea [1][2], milk [3], water [1], ice [2]."),  # noqa: RUF001
        ("Tea [1, p. 2], milk [1, p. 2; 3, pp. 4-5], ice [2 §3.1].", "Tea [1], milk [1][3], ice [2]."),
        ("Tea [1, lines 5-7], milk [2: Seite 3], ice [Source 3, page 1].", "Tea [1], milk [2], ice [3]."),
        ("Tea `[1]`, milk `[1][2]`, ice `[1]`, `[3]`, `a[1]`.", "Tea [1], milk [1][2], ice [1][3], `a[1]`."),
        ("Tea <cite>1</cite>, milk <cite>[1], [2]</cite>.", "Tea [1], milk [1][2]."),
        ('Tea <ref id="1"/>, milk <source>2</source>, m<sup>2</sup>.', "Tea [1], milk [2], m<sup>2</sup>."),
        ("Tea [^1^], milk ^[2]^, ice [1/2].", "Tea [1], milk [2], ice [1][2]."),
        ("A list (no. 3), [p. 3] and <b>1</b> stay.", "A list (no. 3), [p. 3] and <b>1</b> stay."),
    ],
)
def test_citations_are_written_plainly_in_their_place(written: str, plain: str) -> None:
    assert with_plain_citations(written, 3) == plain


@pytest.mark.parametrize("begun", ["[", "[1, p", r"\[1", "[citation:", "<cite>1</c", "`[1", "［1"])  # noqa: RUF001
def test_begun_citation_is_not_shown_yet(begun: str) -> None:
    assert without_begun_citation(f"Tea {begun}") == "Tea "
    assert without_begun_citation("Tea [1].") == "Tea [1]."


@pytest.mark.parametrize("piece", ["[", "[1, ", "<cite ", "[1, p. 2; ", "`[1]", "[1] ", " ", "`"])
def test_long_beginnings_of_citations_take_no_quadratic_time(piece: str) -> None:
    assert len(with_plain_citations(piece * 20_000, 3)) <= 20_000 * max(3, len(piece))


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
    with pytest.raises(ValueError):
        parse_answer("{}", int)
