"""Chunks put together again are the text that they were cut from."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.chunking.joined import joined_text, spans
from ragistry.types import Document
from tests.chunking.span_invariants import cut

TEXTS = st.lists(
    st.sampled_from(["word", "Sentence.", "What?", "# head", "一句。", "x" * 20, " ", " ", "\n", "\n\n", "\t"]),
    max_size=60,
).map("".join)


def pieces(text: str, size: int, overlap: int) -> list[Document]:
    return [
        Document(text[start:end], {"chunk_index": index, "start": start, "end": end}, 0.0)
        for index, (start, end) in enumerate(cut(text, size, overlap))
    ]


@given(TEXTS, st.integers(1, 40), st.integers(0, 39), st.data())
@settings(max_examples=200, deadline=None)
def test_consecutive_chunks_become_the_text_again(text: str, size: int, overlap: int, data: st.DataObject) -> None:
    chunks = pieces(text, size, min(overlap, size - 1))
    if not chunks:
        return
    first = data.draw(st.integers(0, len(chunks) - 1))
    last = data.draw(st.integers(first, len(chunks) - 1))
    some = chunks[first : last + 1]
    original = text[some[0].metadata["start"] : some[-1].metadata["end"]]
    joined = joined_text(some)
    assert len(joined) == len(original)
    assert all(one == other or (one == "\n" and other.isspace()) for one, other in zip(joined, original, strict=True))
    assert joined_text(random.Random(size).sample(some, len(some))) == joined


def test_what_chunks_share_comes_once_and_a_paragraph_end_comes_back() -> None:
    text = "One two. Three four.\n\nFive six."
    shared = [Document(text[:20], {"start": 0, "end": 20}, 0.0), Document(text[9:], {"start": 9, "end": 31}, 0.0)]
    assert joined_text(shared) == text
    apart = [Document(text[:20], {"start": 0, "end": 20}, 0.0), Document(text[22:], {"start": 22, "end": 31}, 0.0)]
    assert joined_text(apart) == text


def test_a_chunk_within_another_adds_nothing() -> None:
    wide, small = Document("abcdef", {"start": 0, "end": 6}, 0.0), Document("cd", {"start": 2, "end": 4}, 0.0)
    assert joined_text([small, wide]) == "abcdef"


def test_without_their_places_chunks_are_paragraphs() -> None:
    for metadata in ({}, {"start": 2}, {"start": "2", "end": "4"}, {"start": True, "end": 3}, {"start": 2, "end": 5}):
        chunks = [Document("ab", {"start": 0, "end": 2}, 0.0), Document("cd", metadata, 0.0)]
        assert spans(chunks) is None
        assert joined_text(chunks) == "ab\n\ncd"
