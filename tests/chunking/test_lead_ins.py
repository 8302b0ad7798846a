"""A line that introduces something stays in one chunk with it."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.chunking.chunker import chunk_extracted, with_lead_ins
from ragistry.readers.extracted import Extracted, Format

ITEMS = "- Compact the history.\n- Defragment each endpoint.\n- Disarm the alarm."
CODE = "```sh\n$ etcdctl snapshot save backup.db\n```"
TABLE = "| size | majority |\n|---|---|\n| 3 | 2 |\n| 5 | 3 |"
PDF_LIST = "• Academic writing: tools such as LaTeX\nset formulas.\n• Screenwriting: tools for film."
SENTENCE = "The cluster agrees on each change before it is stored, and keeps a log of them."


def introduced(text: str, size: int = 300) -> list[str]:
    fences = [one.span() for one in re.finditer(r"```.*?```", text, re.DOTALL)]
    return [text[start:end] for start, end in with_lead_ins(text, 0, len(text), fences, size)]


@pytest.mark.parametrize(
    "what", [ITEMS, CODE, TABLE, PDF_LIST, "    $ etcdctl defrag\n\n    $ etcdctl alarm", "1. One\n2. Two"]
)
@pytest.mark.parametrize("colon", [":", ":**", "："])  # noqa: RUF001 - a wide colon too
def test_a_lead_in_and_what_it_introduces_are_one_span(what: str, colon: str) -> None:
    text = f"{SENTENCE} A snapshot is taken with etcdctl{colon}\n\n{what}\n\n{SENTENCE}"
    assert introduced(text) == [f"A snapshot is taken with etcdctl{colon}\n\n{what}"]


@pytest.mark.parametrize(
    "text",
    ["Recommended values depend on the use:\n\nText.", "Note: a list is below\n- a", "At the end:", "a: b\nc: d\ne f"],
)
def test_other_colons_introduce_nothing(text: str) -> None:
    assert introduced(text) == []


def test_of_a_long_list_the_first_item_stays_with_the_lead_in() -> None:
    text = "Do this:\n\n" + "\n".join(f"- Step {number} of the long work." for number in range(30))
    assert introduced(text) == ["Do this:\n\n- Step 0 of the long work."]


def test_a_fence_that_does_not_fit_with_its_lead_in_stays_whole() -> None:
    assert introduced(f"Run this command:\n\n{CODE}", size=len(CODE)) == [CODE]


@pytest.mark.parametrize("what", [ITEMS, CODE, TABLE])
@pytest.mark.parametrize("kind", ["markdown", "text"])
@pytest.mark.parametrize("before", [3, 4, 5, 6])
def test_no_chunk_ends_with_a_lead_in(what: str, kind: Format, before: int) -> None:
    text = f"{SENTENCE} " * before + f"A snapshot is taken with etcdctl:\n\n{what}\n\n" + f"{SENTENCE} " * 4
    chunks = [chunk.text for chunk in chunk_extracted(Extracted(text, "a.md", kind), 500, 80)]
    assert any(f"etcdctl:\n\n{what}" in chunk for chunk in chunks)
    assert not any(chunk.endswith(":") for chunk in chunks)


pieces = st.sampled_from(
    [SENTENCE, "Do this:", "So:**", ITEMS, TABLE, PDF_LIST, "    code", CODE, "", "# Title", "* :"]
)


@given(st.lists(pieces, max_size=12).map("\n".join), st.integers(20, 400))
@settings(max_examples=300, deadline=None)
def test_spans_are_ordered_and_contain_each_fence(text: str, size: int) -> None:
    fences = [one.span() for one in re.finditer(r"```.*?```", text, re.DOTALL)]
    spans = with_lead_ins(text, 0, len(text), fences, size)
    assert all(start < end for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    for first, last in fences:
        assert any(start <= first and last <= end for start, end in spans)
    assert all(end - start <= size for start, end in spans if (start, end) not in fences)
