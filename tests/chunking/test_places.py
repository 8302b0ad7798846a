"""Each line of each chunk is in the place that is named for it."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.chunking.chunker import chunk_document
from ragistry.chunking.places import PLACES, joined_places, place_at, places_in
from ragistry.types import Document
from tests.readers import placed_files


@pytest.mark.parametrize("kind", placed_files.MAKERS)
@settings(max_examples=4, deadline=None)
@given(counts=st.lists(st.integers(0, 30), min_size=1, max_size=8), size=st.sampled_from([60, 300, 1_500]))
def test_each_line_of_a_file_is_in_the_place_named_for_it(kind: str, counts: list[int], size: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"a.{kind}"
        places = placed_files.MAKERS[kind](path, [*counts, 1])
        chunks = chunk_document(path, size, size // 8)
        assert chunks
        assert list(placed_files.misplaced(path, places, chunks)) == []


def test_places_of_pieces_are_those_of_their_lines() -> None:
    first = Document("a\nb\nc", {"page": 1, "line": 5}, 1.0)
    parts = [{"start": 0, "section": "X", "line": 1}, {"start": 2, "section": "Y", "line": 9}]
    second = Document("d\ne\nf", {PLACES: json.dumps(parts)}, 1.0)
    joined = Document("b\nc\n\nd\ne\nf", joined_places([(0, first, 2, 5), (5, second, 0, 5)]), 1.0)
    assert [place_at(joined, at) for at in (0, 2, 5, 7, 9)] == [
        {"page": 1, "line": 6}, {"page": 1, "line": 7},
        {"section": "X", "line": 1}, {"section": "Y", "line": 9}, {"section": "Y", "line": 10},
    ]  # fmt: skip


STRANGE = ("", "[]", "no JSON", "[1]", '[{"page": 1}]', '[{"start":"x"}]', '[{"start":', 7, ["a"])


@pytest.mark.parametrize("value", STRANGE)
def test_metadata_of_that_name_from_elsewhere_are_no_places(value: object) -> None:
    assert places_in({PLACES: value, "page": 3, "line": True}) == [(0, {"page": 3, "line": True})]
    assert place_at(Document("a\nb", {PLACES: value, "page": 3, "line": True}, 1.0), 2) == {"page": 3, "line": True}
