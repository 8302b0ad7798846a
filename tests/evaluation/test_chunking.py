"""Chunk sizes and what widens chunks are compared by the passages that answer."""

from __future__ import annotations

import pytest

from ragistry.evaluation import Dataset, Text, compare
from ragistry.types import Document
from tests.evaluation.small_sets import hashed_workspace

CATS = "Cats sleep for most of the day.\r\n\r\nThey hunt mice at night."
SHIPS = "A ship is steered by its rudder.\n\nThe anchor holds it in a storm."


def test_chunk_sizes_are_compared_by_their_passages(tmp_path):
    spans = {"1": {"cats": [(CATS.index("They"), len(CATS))]}, "2": {"ships": [(SHIPS.index("The a"), len(SHIPS))]}}
    queries = {"1": "What do they\u2028hunt?", "2": "What does the anchor hold in a storm?"}
    dataset = Dataset("passages", [Text("cats", "", CATS), Text("ships", "", SHIPS)], queries, {}, spans=spans)
    with hashed_workspace(tmp_path) as workspace:
        options = {"workspace": workspace, "grid": {"chunk_size": ["40/0", "document"]}}
        result = compare(["bm25"], dataset, ["SR@1", "SP@1", "nDCG@10"], **options)
    small, whole = result.techniques.values()
    assert [one.measures["SR@1"].mean for one in (small, whole)] == [1, 1]
    assert small.measures["SP@1"].mean == 1 > whole.measures["SP@1"].mean
    assert small.returned_tokens < whole.returned_tokens
    assert result.controls == {}, "they rank whole documents"


def test_passages_are_those_that_a_technique_returns():
    class Chunks:
        def retrieve(self, query: str, **_: object) -> list[Document]:
            ends = ((0, 4), (4, 12), (20, 30))
            return [Document("x", {"source_file": "d", "start": a, "end": b}, -a, f"{a}") for a, b in ends]

    dataset = Dataset("d", [Text("d", "", "x" * 40)], {"q": "what"}, {}, spans={"q": {"d": [(6, 10)]}})
    result = compare({"chunks": Chunks()}, dataset, ["RR@10", "SR@2", "SP@2"])
    values = {name: one.mean for name, one in result.techniques["chunks"].measures.items()}
    assert values == {"RR@10": 0.5, "SR@2": 1, "SP@2": pytest.approx(4 / 12)}
