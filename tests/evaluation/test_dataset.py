"""A test set is checked when it is made, its content has a hash, and a library with a file of queries is one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ragistry
from ragistry.errors import DatasetError
from ragistry.evaluation import Dataset, Text, read_library

CORPUS = [Text("d1", "Tea", "Steep it."), Text("d2", "", "Rain falls.")]
QUERIES = {"q1": "how to make tea", "q2": "weather"}
QRELS = {"q1": {"d1": 2}, "q2": {"d2": 1, "d1": 0}}
TEA = Dataset("tea", CORPUS, QUERIES, QRELS)


def test_the_hash_is_of_the_content_in_any_order() -> None:
    turned = {query: dict(reversed(grades.items())) for query, grades in reversed(QRELS.items())}
    other = Dataset("other", CORPUS[::-1], dict(reversed(QUERIES.items())), turned)
    assert other.content_hash() == TEA.content_hash()
    changes: list[dict[str, Any]] = [
        {"corpus": [Text("d1", "", "Tea Steep it."), CORPUS[1]]},
        {"queries": QUERIES | {"q1": "how to make coffee"}},
        {"qrels": {"q1": QRELS["q1"], "q2": {"d2": 1}}},
        {"spans": {"q1": {"d1": [(0, 3)]}}},
    ]
    assert len({replace(TEA, **change).content_hash() for change in [*changes, {}]}) == 5


def test_queries_have_groups_and_kinds() -> None:
    assert TEA.texts == {"d1": "Tea Steep it.", "d2": "Rain falls."}
    assert TEA.groups == {"q1": "q1", "q2": "q2"}
    synthetic = {"q1": {"kind": "title"}, "q2": {"kind": "heading"}}
    same = {"q1": {"d1": 1}, "q2": {"d1": 1}}
    found = Dataset("tea", CORPUS, QUERIES, same, synthetic=synthetic, kinds={"q2": "question"})
    assert found.groups == {"q1": "d1", "q2": "d1"}
    assert found.kinds == {"q1": "title", "q2": "question"}
    assert replace(TEA, groups={"q1": "a"}).groups == {"q1": "a", "q2": "q2"}
    assert (TEA.positives_only, found.positives_only) == (False, True)


def test_every_fault_is_listed_at_once_with_its_remedy() -> None:
    corpus = [*CORPUS, Text("d1", "", "again"), Text("d\t9", "", "tab")]
    qrels = {"q1": {"d1": 1, "gone1": 1, "gone2": 1, "gone3": 1, "gone4": 1}, "q9": {"d1": 1}, "q2": {"d1": 0.5}}
    with pytest.raises(DatasetError) as caught:
        Dataset("tea", corpus, QUERIES | {"q7": "  "}, qrels)  # type: ignore[arg-type]
    for fault in (
        "test set 'tea': 6 problems:",
        "1 document has an id that another one has: 'd1'; give it its own",
        "4 documents are judged relevant but not in the corpus: 'gone1', 'gone2', 'gone3' and 1 more; add them",
        "1 query has judgements but no text: 'q9'; add it to the queries",
        "1 query is empty: 'q7'; write what is asked, or take it out",
        r"a tab or a line end: 'd\t9'; rename it",
        "a grade that is not a whole number: 'q2'; grade with 0, 1, 2, …",
    ):
        assert fault in str(caught.value)
    with pytest.raises(DatasetError, match="the corpus is empty"):
        Dataset("tea", [], QUERIES, QRELS)
    with pytest.raises(DatasetError, match="no query has judgements"):
        Dataset("tea", CORPUS, QUERIES, {})


def test_a_reader_is_told_what_no_measure_shows() -> None:
    qrels = {"q1": {"d1": 1, "gone": 0}, "q2": {"d2": 0}}
    found = Dataset("tea", [*CORPUS, Text("d3", "", " ")], QUERIES | {"q3": "unjudged"}, qrels)
    for caution in (
        "no judgements: no mean counts it: 'q3'",
        "no relevant document: every technique scores 0: 'q2'",
        "cannot be found: 'd3'",
        "not relevant and not in the corpus: 'gone'",
    ):
        assert caution in "\n".join(found.problems)
    assert TEA.problems == []
    assert replace(found, name="copy").problems == found.problems, "a copy says nothing twice"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    with ragistry.open_workspace(folder, embed_model="minilm") as workspace:
        for name in ("notes", "weather"):
            workspace.library.create_collection(name)
        workspace.library.ingest_text("# Tea\n\nSteep green tea in hot water. " * 80, "tea.md", "notes")
        workspace.library.ingest_text("Rain falls in the afternoon.", "rain.txt", "notes")
        workspace.library.ingest_text("Rain falls at night.", "rain.txt", "weather")
    return folder


def read(library: Path, *rows: object) -> Dataset:
    path = library / "queries.jsonl"
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with ragistry.open_workspace(library) as workspace:
        return read_library(workspace, path)


def test_a_library_is_a_test_set_with_a_file_of_queries(library: Path) -> None:
    dataset = read(
        library,
        {"text": "how hot is the water", "sources": ["tea.md"]},
        {"_id": "wet", "text": "when does it rain", "sources": {"notes/rain.txt": 2, "weather/rain.txt": 1}},
        {"text": "unknown"},
        {"text": "does it rain", "collection": "weather", "source_file": "rain.txt", "kind": "question"},
        {"text": "how green is the tea", "source_file": "tea.md"},
        {"text": "who painted the ceiling", "collection": None, "source_file": None},
    )
    assert dataset.qrels == {
        "1": {"notes/tea.md": 1},
        "wet": {"notes/rain.txt": 2, "weather/rain.txt": 1},
        "3": {},
        "4": {"weather/rain.txt": 1},
        "5": {"notes/tea.md": 1},
        "6": {},
    }
    assert dataset.judged.keys() == {"1", "wet", "4", "5"}
    assert dataset.kinds == {"4": "question"}
    assert dataset.texts["notes/tea.md"].strip() == ("# Tea\n\nSteep green tea in hot water. " * 80).strip()


def test_a_query_may_name_passages_of_sources(library: Path) -> None:
    dataset = read(
        library,
        {"text": "green?", "group": "tea", "spans": [{"document": "tea.md", "text": "Steep green tea"}]},
        {"text": "steep?", "group": "tea", "spans": [{"document": "notes/tea.md", "start": 7, "end": 22}]},
        {"text": "snow?", "sources": ["tea.md"], "spans": [{"document": "tea.md", "text": "snow"}]},
    )
    assert dataset.spans == {query: {"notes/tea.md": [(7, 22)]} for query in ("1", "2")}
    assert dataset.groups == {"1": "tea", "2": "tea", "3": "3"}
    assert dataset.problems == ["query '3': 'snow' is not in 'notes/tea.md'; this span is left out"]


def test_every_wrong_line_of_a_file_of_queries_is_named(library: Path, tmp_path: Path) -> None:
    wrong: dict[object, str] = {
        '{"text": "a", "sources": ["te.md"]}': "no source 'te.md' in the library; did you mean 'tea.md'?",
        '{"text": "b", "sources": ["rain.txt"]}': "'notes/rain.txt', 'weather/rain.txt'",
        '{"sources": []}': "'text': Field required",
        '{"text": "c", "sources": {"tea.md": "very"}}': "'sources'",
        '{"_id": "1", "text": "d"}': "the id '1' comes twice",
        '{"text": "e", "collection": "notes"}': "the collection 'notes' without a 'source_file'",
        '{"text": "f", "sources": [["tea.md"]]}': "'sources'",
        '{"text": "g", "sources": ["zzz"]}': "`ragistry sources list` names all that there are",
        '{"text": "h", "spans": [{"document": "te.md", "text": "a"}]}': "did you mean 'tea.md'",
        "how hot is the water": "Invalid JSON",
        "[" * 100_000: "Invalid JSON",
    }
    with pytest.raises(DatasetError) as caught:
        read(library, *wrong)
    for number, (line, problem) in enumerate(zip(str(caught.value).splitlines()[1:], wrong.values(), strict=True), 1):
        assert f"queries.jsonl:{'' if number > 9 else number}" in line
        assert problem in line
    with pytest.raises(DatasetError, match=r'no query names what answers it; write \{"text": '):
        read(library, {"text": "unknown"})
    with ragistry.open_workspace(tmp_path) as empty, pytest.raises(DatasetError, match="is empty; ingest first"):
        read_library(empty, library / "queries.jsonl")
