"""The line of a passage that answers, and its place, on every door."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragistry.chunking.breadcrumb import readable_text
from ragistry.chunking.chunker import chunk_extracted
from ragistry.presentation import answering_line, blocks_of, excerpt_line, excerpt_of, place_of
from ragistry.presentation.hits import citation_of, place_text, spot_of
from ragistry.readers.blocks import Place
from ragistry.readers.extracted import Extracted
from ragistry.types import Document

SECTIONS = """\
# Guide

## Tea

Green tea takes water
of eighty degrees.

## Coffee

Coffee takes water of ninety degrees.

## Cocoa

Cocoa takes milk.
"""


def passages(text: str, name: str = "a.md", size: int = 2_000) -> list[Document]:
    kind = "markdown" if name.endswith(".md") else "text"
    extracted = Extracted(text, name, kind, line_numbers=range(1, text.count("\n") + 2))
    chunks = chunk_extracted(extracted, size)
    return [Document(chunk.text, chunk.metadata | {"source_file": name}, 1.0) for chunk in chunks]


@pytest.mark.parametrize(
    ("query", "section", "line"),
    [
        ("which water for green tea", "Guide > Tea", 5),
        ("what takes eighty degrees", "Guide > Tea", 6),
        ("hot coffee", "Guide > Coffee", 10),
        ("milk", "Guide > Cocoa", 14),
        ("guide", "Guide", 1),
        ("zebra", "Guide", 1),
    ],
)
def test_the_section_and_line_of_the_answer_are_named(query: str, section: str, line: int) -> None:
    [passage] = passages(SECTIONS)
    assert passage.metadata["heading_context"] == "Guide > Tea"
    place = place_of(passage, query)
    assert (place["heading_context"], place["line"]) == (section, line)
    assert spot_of(passage, place) == f"{section} · line {line}"
    assert citation_of(passage, place).endswith(f"line {line} (a.md)")


def test_names_and_numbers_count_more_than_other_words() -> None:
    rows = "".join(f"Land{number} has {number + 100} towns\n" for number in range(40))
    passage = Document(f"The towns and the capital of each\n{rows}Finland has 107 towns\n", {}, 1.0)
    for query in ("what is the capital of Finland", "capital in Finland"):
        assert answering_line(passage, query).number == 41
    assert answering_line(passage, "which capital has land17").number == 18
    assert answering_line(passage, "the capital").number == 0


def test_the_excerpt_contains_the_line_that_answers() -> None:
    filler = "".join(f"## Part {number}\n\nNothing about it in the text of part {number}.\n\n" for number in range(9))
    [passage] = passages(f"{filler}## Last\n\nThe boiler holds\ntwo bar.\n", size=5_000)
    shown = excerpt_of(passage, "pressure of the boiler", "english", 80)
    assert "The boiler holds two bar." in excerpt_line(shown)
    assert shown.place["section"] == "Last"
    assert shown.place["line"] == 39


@pytest.mark.parametrize(
    ("place", "spot"),
    [
        ({"page": 3, "page_label": "iii"}, "p. 3 (printed iii)"),
        ({"sheet": "Costs", "heading_context": "Costs"}, "Costs"),
        ({"chapter": "The sea", "heading_context": "Part one", "line": 4}, "Part one · The sea · line 4"),
        ({"part": "offer.pdf", "page": 2}, "offer.pdf · p. 2"),
        ({}, ""),
    ],
)
def test_a_place_is_described_with_all_that_is_known(place: dict[str, object], spot: str) -> None:
    assert spot_of(Document("", {"page": 1, "line": 9}, 1.0), place) == spot
    assert place_text(place) == spot.replace(" · ", ", ")


PARTS = (
    "word one", "- item two", "1. three `code\n  four` five", "# head six", "| a7 | b8 |\n|---|---|\n| c9 | d10 |", "",
    "```\ncode11\n\n  code12\n```", "> quote13\n> [!NOTE]", "<p>\nhtml14\n</p>", "x15 **b\nold16** y", "    indented17",
)  # fmt: skip
LINES = st.lists(st.sampled_from(PARTS), max_size=12)


@given(LINES, st.sampled_from(["a.md", "a.txt"]))
def test_every_character_of_a_block_is_from_the_line_that_it_says(lines: list[str], name: str) -> None:
    text = "\n\n".join(lines)
    source = text.split("\n")
    for block in blocks_of(text, {"source_file": name}):
        for word in re.finditer(r"[a-z]*\d+", block.text):
            assert word[0] in source[block.line_at(word.start())]


@given(
    st.lists(st.sampled_from(["alpha beta", "gamma, delta.", "## beta gamma", "alpha `delta`", "", "|a|"]), max_size=20)
)
def test_the_answering_line_is_a_line_of_the_passage(lines: list[str]) -> None:
    document = Document("\n".join(lines), {}, 1.0)
    found = answering_line(document, "gamma delta")
    assert found.place == {}
    if document.content.strip():
        assert document.content[: found.start].count("\n") == found.number


def test_a_sentence_on_two_pages_is_readable_and_each_part_names_its_page() -> None:
    text = "Beaches are long. The largest city\n\nof Finland is Helsinki. More."
    extracted = Extracted(text, "a.pdf", "pdf", places=((0, Place(page=1)), (36, Place(page=2))))
    first, second = (Document(chunk.text, chunk.metadata, 1.0) for chunk in chunk_extracted(extracted, 500))
    shown = excerpt_of(first, "which city is the largest", "english", 300)
    assert excerpt_line(shown) == "Beaches are long. The largest city [continues on p. 2] of Finland is Helsinki."
    assert shown.place == {"page": 1}
    assert readable_text(second) == "[from p. 1] The largest city\nof Finland is Helsinki. More."
    assert place_of(second, "largest city Helsinki") == {"page": 2}
