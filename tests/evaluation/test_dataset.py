"""A test set is checked when it is made, and its content has a name."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

import ragistry
from ragistry.errors import DatasetError, EvaluationError
from ragistry.evaluation import Dataset, Text, read_ir_datasets, read_library
from ragistry.evaluation.data.dataset import Qrels

CORPUS = [Text("d1", "Tea", "Steep it."), Text("d2", "", "Rain falls.")]
QUERIES = {"q1": "how to make tea", "q2": "weather"}
QRELS = {"q1": {"d1": 2}, "q2": {"d2": 1, "d1": 0}}


def made(
    corpus: list[Text] = CORPUS, queries: dict[str, str] = QUERIES, qrels: Qrels = QRELS, name: str = "tea"
) -> Dataset:
    return Dataset(name, corpus, queries, qrels)


def test_the_hash_is_of_the_content_whatever_its_order_and_name() -> None:
    content = made().content_hash()
    turned = {query: dict(reversed(grades.items())) for query, grades in reversed(QRELS.items())}
    assert made(CORPUS[::-1], dict(reversed(QUERIES.items())), turned, "other").content_hash() == content
    assert len(content) == 64


@pytest.mark.parametrize(
    "other",
    [
        made([Text("d1", "Tea", "Steep it!"), CORPUS[1]]),
        made([Text("d1", "", "Tea Steep it."), CORPUS[1]]),
        made([*CORPUS, Text("d3", "", "More.")]),
        made(queries=QUERIES | {"q1": "how to make coffee"}),
        made(queries=QUERIES | {"q3": "unjudged"}),
        made(qrels={"q1": {"d1": 1}, "q2": QRELS["q2"]}),
        made(qrels={"q1": QRELS["q1"], "q2": {"d2": 1}}),
    ],
)
def test_any_other_content_has_another_hash(other: Dataset) -> None:
    assert other.content_hash() != made().content_hash()


def test_a_document_is_searched_by_title_and_text() -> None:
    assert made().texts == {"d1": "Tea Steep it.", "d2": "Rain falls."}
    assert made(queries=QUERIES | {"q3": "unjudged"}).judged == QUERIES


def test_queries_have_groups_and_kinds() -> None:
    assert made().groups == {"q1": "q1", "q2": "q2"}
    synthetic = {"q1": {"kind": "title"}, "q2": {"kind": "heading"}}
    same = {"q1": {"d1": 1}, "q2": {"d1": 1}}
    found = Dataset("tea", CORPUS, QUERIES, same, synthetic=synthetic, kinds={"q2": "question"})
    assert found.groups == {"q1": "d1", "q2": "d1"}
    assert found.kinds == {"q1": "title", "q2": "question"}
    assert Dataset("tea", CORPUS, QUERIES, same, groups={"q1": "a"}).groups == {"q1": "a", "q2": "q2"}
    assert (made().positives_only, found.positives_only) == (False, True)


def test_every_fault_is_told_at_once_with_its_remedy() -> None:
    corpus = [*CORPUS, Text("d1", "", "again"), Text("d\t9", "", "tab"), Text("d4", "", "half \ud800")]
    qrels = {"q1": {"d1": 1, "gone1": 1, "gone2": 1, "gone3": 1, "gone4": 1}, "q9": {"d1": 1}, "q2": {"d1": 0.5}}
    with pytest.raises(DatasetError) as caught:
        made(corpus, QUERIES | {"q7": "  "}, qrels)  # type: ignore[arg-type]
    for said in (
        "test set 'tea': 7 problems:",
        "1 document has an id that another one has: 'd1'; give it its own",
        "4 documents are judged relevant but not in the corpus: 'gone1', 'gone2', 'gone3' and 1 more; add them",
        "1 query has judgements but no text: 'q9'; add it to the queries, or take its",
        "1 query is empty: 'q7'; write what is asked, or take it out",
        "half a surrogate pair, which no file and no model takes: 'd4'",
        r"a tab or a line end: 'd\t9'; give it another id",
        "a grade that is not a whole number: 'q2'; grade with 0, 1, 2, …",
    ):
        assert said in str(caught.value)
    assert made([*CORPUS, Text("d3", "", "whole \U0001f375")]).problems == []
    with pytest.raises(DatasetError, match="the corpus is empty"):
        made(corpus=[])
    with pytest.raises(DatasetError, match="no query has judgements"):
        made(qrels={})


def test_what_has_only_to_be_known_stops_nothing() -> None:
    corpus = [*CORPUS, Text("d3", "", " ")]
    qrels = {"q1": {"d1": 1, "gone": 0}, "q2": {"d2": 0}}
    found = made(corpus, QUERIES | {"q3": "unjudged"}, qrels)
    problems = "\n".join(found.problems)
    assert "no judgements: no mean counts it: 'q3'" in problems
    assert "no relevant document: everybody scores 0 on it: 'q2'" in problems
    assert "cannot be found: 'd3'" in problems
    assert "not relevant and not in the corpus: 'gone'" in problems
    assert made().problems == []
    assert replace(found, name="copy").problems == found.problems, "a copy says nothing twice"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tmp_path = tmp_path_factory.mktemp("library")
    with ragistry.open_workspace(tmp_path, embed_model="minilm") as workspace:
        for name in ("notes", "weather"):
            workspace.library.create_collection(name)
        workspace.library.ingest_text("# Tea\n\nSteep green tea in hot water. " * 80, "tea.md", "notes")
        workspace.library.ingest_text("Rain falls in the afternoon.", "rain.txt", "notes")
        workspace.library.ingest_text("Rain falls at night.", "rain.txt", "weather")
    return tmp_path


def queries_file(folder: Path, *rows: object) -> Path:
    path = folder / "queries.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def test_a_library_is_a_test_set_with_a_file_of_queries(library: Path) -> None:
    asked = queries_file(
        library,
        {"text": "how hot is the water", "sources": ["tea.md"]},
        {"_id": "wet", "text": "when does it rain", "sources": {"notes/rain.txt": 2, "weather/rain.txt": 1}},
        {"text": "nobody knows"},
    )
    with ragistry.open_workspace(library) as workspace:
        dataset = read_library(workspace, asked)
        found = {
            f"{hit.metadata['collection']}/{hit.metadata['source_file']}" for hit in workspace.search("rain").documents
        }
    assert dataset.qrels["1"] == {"notes/tea.md": 1}
    assert dataset.qrels["wet"] == {"notes/rain.txt": 2, "weather/rain.txt": 1}
    assert dataset.judged.keys() == {"1", "wet"}
    assert dataset.texts["notes/tea.md"].strip() == ("# Tea\n\nSteep green tea in hot water. " * 80).strip()
    assert found <= dataset.texts.keys(), "a hit is told by the same id"


def test_a_query_may_name_its_source_as_a_search_result_does(library: Path) -> None:
    asked = queries_file(
        library,
        {
            "_id": "a",
            "text": "when does it rain",
            "collection": "weather",
            "source_file": "rain.txt",
            "kind": "question",
        },
        {"_id": "b", "text": "how hot is the water", "source_file": "tea.md"},
        {"_id": "c", "text": "who painted the ceiling", "collection": None, "source_file": None},
    )
    with ragistry.open_workspace(library) as workspace:
        dataset = read_library(workspace, asked)
    assert dataset.qrels == {"a": {"weather/rain.txt": 1}, "b": {"notes/tea.md": 1}, "c": {}}
    assert dataset.judged.keys() == {"a", "b"}


def test_a_query_may_name_passages_of_sources(library: Path) -> None:
    asked = queries_file(
        library,
        {"text": "green?", "group": "tea", "spans": [{"document": "tea.md", "text": "Steep green tea"}]},
        {"text": "steep?", "group": "tea", "spans": [{"document": "notes/tea.md", "start": 7, "end": 22}]},
        {"text": "snow?", "sources": ["tea.md"], "spans": [{"document": "tea.md", "text": "snow"}]},
    )
    with ragistry.open_workspace(library) as workspace:
        dataset = read_library(workspace, asked)
    assert dataset.spans == {query: {"notes/tea.md": [(7, 22)]} for query in ("1", "2")}
    assert dataset.groups == {"1": "tea", "2": "tea", "3": "3"}
    assert dataset.problems == ["query '3': 'snow' is not in 'notes/tea.md'; this span is left out"]
    bad = queries_file(library, {"text": "x", "spans": [{"document": "te.md", "text": "a"}]})
    with ragistry.open_workspace(library) as workspace, pytest.raises(DatasetError, match="did you mean 'tea.md'"):
        read_library(workspace, bad)


def test_every_wrong_line_of_a_file_of_queries_is_told(library: Path) -> None:
    asked = queries_file(
        library,
        {"text": "a", "sources": ["te.md"]},
        {"text": "b", "sources": ["rain.txt"]},
        {"sources": []},
        {"text": "c", "sources": {"tea.md": "very"}},
        {"_id": "1", "text": "d"},
        {"text": "e", "collection": "notes"},
        {"text": "f", "collection": "notes", "source_file": 7},
        {"text": "g", "sources": [["tea.md"]]},
        {"text": "h", "sources": [{"tea.md": 1}]},
        {"text": "i", "sources": ["zzz"]},
    )
    with ragistry.open_workspace(library) as workspace, pytest.raises(DatasetError) as caught:
        read_library(workspace, asked)
    message = str(caught.value)
    assert "queries.jsonl:1: no source 'te.md' in the library; did you mean 'tea.md'?" in message
    assert "'notes/rain.txt', 'weather/rain.txt'" in message
    assert "queries.jsonl:3: no query" in message
    assert "'very'" in message
    assert "queries.jsonl:5: the id '1' comes twice" in message
    assert "queries.jsonl:6: the collection 'notes' without a 'source_file'" in message
    assert "queries.jsonl:7: 'collection' and 'source_file' must be text" in message
    assert "queries.jsonl:8: 'sources' must be a list of names, or names with whole grades, got [['tea.md']]" in message
    assert "queries.jsonl:9: 'sources' must be a list of names" in message
    assert "no source 'zzz' in the library; `ragistry sources list` names all that there are" in message


def test_a_file_of_queries_that_says_nothing_is_told_with_the_shape_of_a_line(library: Path, tmp_path: Path) -> None:
    unanswered, path = queries_file(library, {"text": "nobody knows"}), library / "words.jsonl"
    path.write_text("how hot is the water\n", encoding="utf-8")
    (library / "deep.jsonl").write_text(f"{'[' * 100_000}\n", encoding="utf-8")
    with ragistry.open_workspace(library) as workspace:
        with pytest.raises(DatasetError, match=r"queries.jsonl': no query names what answers it; write \{\"text\": "):
            read_library(workspace, unanswered)
        with pytest.raises(
            DatasetError, match=r"words.jsonl:1: no JSON object: 'how hot is the water'; write \{\"text"
        ):
            read_library(workspace, path)
        with pytest.raises(DatasetError, match=r"deep.jsonl:1: no JSON object"):
            read_library(workspace, library / "deep.jsonl")
    with ragistry.open_workspace(tmp_path) as empty, pytest.raises(DatasetError, match="is empty; ingest first"):
        read_library(empty, unanswered)


def test_ir_datasets_is_asked_for_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_datasets", None)  # type: ignore[arg-type]
    with pytest.raises(EvaluationError, match=r"pip install 'ragistry\[datasets\]'"):
        read_ir_datasets("beir/scifact/test")


def test_ir_datasets_gives_a_test_set(tmp_path: Path) -> None:
    ir_datasets: ModuleType = pytest.importorskip("ir_datasets")
    (tmp_path / "docs.tsv").write_text("d1\tSteep green tea.\nd2\tRain falls.\n")
    (tmp_path / "queries.tsv").write_text("q1\thow to make tea\n")
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\nq1 0 d2 0\n")
    local = ir_datasets.create_dataset(
        docs_tsv=str(tmp_path / "docs.tsv"),
        queries_tsv=str(tmp_path / "queries.tsv"),
        qrels_trec=str(tmp_path / "qrels.txt"),
    )
    ir_datasets.registry.register("ragistry-test", local)
    dataset = read_ir_datasets("ragistry-test")
    assert dataset.texts == {"d1": "Steep green tea.", "d2": "Rain falls."}
    assert dataset.queries == {"q1": "how to make tea"}
    assert dataset.qrels == {"q1": {"d1": 1, "d2": 0}}
    with pytest.raises(DatasetError, match="no 'no/such'"):
        read_ir_datasets("no/such")
