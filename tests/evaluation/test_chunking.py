"""Chunk sizes and what widens chunks are compared by the passages that answer."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from ragistry.errors import DatasetError
from ragistry.evaluation import Dataset, Text, compare
from ragistry.evaluation.data.files import read_chunking_set
from ragistry.types import Document
from tests.evaluation.small_sets import hashed_workspace
from tests.messages import refused

CATS = "Cats sleep for most of the day.\r\n\r\nThey hunt mice at night."
SHIPS = "A ship is steered by its rudder.\n\nThe anchor holds it in a storm."


def write(folder: Path, *rows: dict[str, Any]) -> Path:
    lines = "\r\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    (folder / "queries.jsonl").write_bytes(lines.encode())
    for name, text in {"cats": CATS, "ships": SHIPS}.items():
        (folder / f"{name}.md.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "README.md").write_text("not a text of the set", encoding="utf-8")
    return folder


def row(name: str, text: str, corpus: str, *references: list[int]) -> dict[str, Any]:
    return {"_id": name, "text": text, "corpus": corpus, "references": references}


def test_chunk_sizes_are_compared_by_their_passages(tmp_path):
    mice, anchor = CATS.index("They"), SHIPS.index("The anchor")
    cats = row("1", "What do they\u2028hunt?", "cats", [mice, len(CATS)])
    write(tmp_path, cats, row("2", "What does the anchor hold in a storm?", "ships", [anchor, len(SHIPS)]))
    assert read_chunking_set(tmp_path).queries["1"] == cats["text"]
    (tmp_path / "workspace").mkdir()
    with hashed_workspace(tmp_path / "workspace") as workspace:
        options = {"workspace": workspace, "grid": {"chunk_size": ["40/0", "document"]}}
        result = compare(["bm25"], tmp_path, ["SR@1", "SP@1", "nDCG@10"], **options)
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


@pytest.mark.parametrize(
    ("bad", "value"),
    [
        (row("1", "?", "dogs", [0, 3]), "'dogs'"), (row("1", "?", "cats", [0, 999]), "0 to 999 of 'cats'"),
        (row("1", "?", "cats", [5, 5]), "5 to 5 of 'cats'"), (row("1", "?", "cats"), "'references'"),
        (row("1", "?", "cats", [3]), "'references'"), ({"_id": "1"}, "'text'"),
    ],
)  # fmt: skip
def test_bad_questions_are_refused(tmp_path, bad, value):
    with refused(DatasetError, value):
        read_chunking_set(write(tmp_path, bad))
    packed = tmp_path / "cats.md.gz"
    packed.write_bytes(packed.read_bytes()[:-12])
    with refused(DatasetError):
        read_chunking_set(tmp_path)


def test_the_published_set_is_whole(data):
    asked = read_chunking_set(data / "chunking-eval")
    assert len(asked.judged) == 472
    assert {document.id: len(document.text) for document in asked.corpus} == {
        "chatlogs": 40_000, "finance": 737_905, "pubmed": 500_000, "state_of_the_union": 48_051, "wikitexts": 118_372,
    }  # fmt: skip
