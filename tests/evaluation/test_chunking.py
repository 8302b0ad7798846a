"""Chunk sizes and what widens chunks are compared by the passages that answer."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from ragistry import open_workspace
from ragistry.errors import DatasetError
from ragistry.evaluation import Dataset, Text, compare
from ragistry.evaluation.data.chunking import read_chunking_set
from ragistry.types import Document

CATS = "Cats sleep for most of the day.\r\n\r\nThey hunt mice at night."
SHIPS = "A ship is steered by its rudder.\n\nThe anchor holds it in a storm."


def write(folder: Path, rows: list[dict[str, Any]]) -> Path:
    (folder / "queries.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    for name, text in {"cats": CATS, "ships": SHIPS}.items():
        (folder / f"{name}.md.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "README.md").write_text("not a text of the set", encoding="utf-8")
    return folder


def row(name: str, text: str, corpus: str, *references: list[int]) -> dict[str, Any]:
    return {"_id": name, "text": text, "corpus": corpus, "references": references}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    mice, anchor = CATS.index("They"), SHIPS.index("The anchor")
    return write(
        tmp_path,
        [
            row("1", "What do they hunt?", "cats", [mice, len(CATS)]),
            row("2", "What does the anchor hold in a storm?", "ships", [anchor, len(SHIPS)]),
        ],
    )


def test_chunk_sizes_are_compared_by_their_passages(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    with open_workspace(tmp_path / "workspace") as workspace:
        options = {"workspace": workspace, "grid": {"chunk_size": ["40/0", "document"]}}
        result = compare(["bm25"], folder, ["SR@1", "SP@1", "nDCG@10"], **options)
    small, whole = result.techniques.values()
    assert [one.measures["SR@1"].mean for one in (small, whole)] == [1, 1]
    assert small.measures["SP@1"].mean == 1 > whole.measures["SP@1"].mean
    assert small.returned_tokens < whole.returned_tokens
    assert result.controls == {}, "they rank whole documents"


def test_passages_are_told_of_what_a_technique_returns() -> None:
    class Chunks:
        def retrieve(self, query: str, **_: object) -> list[Document]:
            ends = ((0, 4), (4, 12), (20, 30))
            return [Document("x", {"source_file": "d", "start": a, "end": b}, -a, f"{a}") for a, b in ends]

    spans = {"q": {"d": [(6, 10)]}}
    dataset = Dataset("d", [Text("d", "", "x" * 40)], {"q": "what"}, {}, spans=spans)
    result = compare({"chunks": Chunks()}, dataset, ["RR@10", "SR@2", "SP@2"])
    values = {name: one.mean for name, one in result.techniques["chunks"].measures.items()}
    assert values == {"RR@10": 0.5, "SR@2": 1, "SP@2": pytest.approx(4 / 12)}


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (row("1", "?", "dogs", [0, 3]), r"question '1' is on 'dogs'"),
        (row("1", "?", "cats", [0, 999]), r"the span 0 to 999 of 'cats' is outside"),
        (row("1", "?", "cats", [5, 5]), "starts at or after its end"),
        (row("1", "?", "cats"), "has no answer"),
        ({"_id": "1"}, "is not a set of texts and questions"),
        (row("1", "?", "cats", [3]), "is not a set of texts and questions"),
    ],
)
def test_bad_questions_are_refused(tmp_path: Path, bad: dict[str, Any], said: str) -> None:
    with pytest.raises(DatasetError, match=said):
        read_chunking_set(write(tmp_path, [bad]))


@pytest.mark.parametrize("inside", ["\u2028", "\x85"])
def test_other_line_ends_may_be_part_of_a_question(tmp_path: Path, inside: str) -> None:
    write(tmp_path, [])
    line = json.dumps(row("1", f"What do{inside}cats hunt?", "cats", [0, 3]), ensure_ascii=False)
    (tmp_path / "queries.jsonl").write_bytes(f"{line}\r\n".encode())
    assert list(read_chunking_set(tmp_path).queries.values()) == [f"What do{inside}cats hunt?"]


def test_damaged_texts_are_refused(folder: Path) -> None:
    packed = folder / "cats.md.gz"
    packed.write_bytes(packed.read_bytes()[:-12])
    with pytest.raises(DatasetError, match="is not a set of texts and questions"):
        read_chunking_set(folder)


def test_the_published_set_is_whole(data: Path) -> None:
    asked = read_chunking_set(data / "chunking-eval")
    assert len(asked.judged) == 472
    assert {document.id: len(document.text) for document in asked.corpus} == {
        "chatlogs": 40_000, "finance": 737_905, "pubmed": 500_000, "state_of_the_union": 48_051, "wikitexts": 118_372,
    }  # fmt: skip
