"""A test set is checked when it is made, its content has a hash, and a library with a file of queries is one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ragistry.errors import DatasetError
from ragistry.evaluation import Dataset, Text, read_library
from tests.evaluation.small_sets import hashed_workspace
from tests.messages import check_message, refused

CORPUS = [Text("d1", "Tea", "Steep it."), Text("d2", "", "Rain falls.")]
QUERIES = {"q1": "how to make tea", "q2": "weather"}
QRELS = {"q1": {"d1": 2}, "q2": {"d2": 1, "d1": 0}}
TEA = Dataset("tea", CORPUS, QUERIES, QRELS)


def test_hash_is_of_the_content_in_any_order():
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


def test_queries_have_groups_and_kinds():
    assert TEA.texts == {"d1": "Tea Steep it.", "d2": "Rain falls."}
    assert TEA.groups == {"q1": "q1", "q2": "q2"}
    synthetic = {"q1": {"kind": "title"}, "q2": {"kind": "heading"}}
    same = {"q1": {"d1": 1}, "q2": {"d1": 1}}
    found = Dataset("tea", CORPUS, QUERIES, same, synthetic=synthetic, kinds={"q2": "question"})
    assert found.groups == {"q1": "d1", "q2": "d1"}
    assert found.kinds == {"q1": "title", "q2": "question"}
    assert replace(TEA, groups={"q1": "a"}).groups == {"q1": "a", "q2": "q2"}
    assert (TEA.positives_only, found.positives_only) == (False, True)


def test_every_fault_is_listed_at_once_with_its_remedy():
    corpus = [*CORPUS, Text("d1", "", "again"), Text("d\t9", "", "tab")]
    qrels = {"q1": {"d1": 1, "gone1": 1, "gone2": 1, "gone3": 1, "gone4": 1}, "q9": {"d1": 1}, "q2": {"d1": 0.5}}
    with refused(DatasetError, "6 problems", "'d1'", "'gone1', 'gone2', 'gone3'", "'q9'", "'q7'", r"'d\t9'", "'q2'"):
        Dataset("tea", corpus, QUERIES | {"q7": "  "}, qrels)  # type: ignore[arg-type]
    with refused(DatasetError):
        Dataset("tea", [], QUERIES, QRELS)
    with refused(DatasetError):
        Dataset("tea", CORPUS, QUERIES, {})


def test_reader_is_told_what_no_measure_shows():
    qrels = {"q1": {"d1": 1, "gone": 0}, "q2": {"d2": 0}}
    found = Dataset("tea", [*CORPUS, Text("d3", "", " ")], QUERIES | {"q3": "unjudged"}, qrels)
    for problem, value in zip(found.problems, ("'q3'", "'q2'", "'d3'", "'gone'"), strict=True):
        check_message(problem, value)
    assert TEA.problems == []
    assert replace(found, name="copy").problems == found.problems, "a copy says nothing twice"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    with hashed_workspace(folder) as workspace:
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
    with hashed_workspace(library) as workspace:
        return read_library(workspace, path)


def test_library_is_a_test_set_with_a_file_of_queries(library):
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


def test_query_may_name_passages_of_sources(library):
    dataset = read(
        library,
        {"text": "green?", "group": "tea", "spans": [{"document": "tea.md", "text": "Steep green tea"}]},
        {"text": "steep?", "group": "tea", "spans": [{"document": "notes/tea.md", "start": 7, "end": 22}]},
        {"text": "snow?", "sources": ["tea.md"], "spans": [{"document": "tea.md", "text": "snow"}]},
    )
    assert dataset.spans == {query: {"notes/tea.md": [(7, 22)]} for query in ("1", "2")}
    assert dataset.groups == {"1": "tea", "2": "tea", "3": "3"}
    assert dataset.problems == ["query '3': 'snow' is not in 'notes/tea.md'; this span is left out"]


def test_every_wrong_line_of_a_file_of_queries_is_named(library, tmp_path):
    wrong = [
        '{"text": "a", "sources": ["te.md"]}',
        '{"text": "b", "sources": ["rain.txt"]}',
        '{"sources": []}',
        '{"text": "c", "sources": {"tea.md": "very"}}',
        '{"_id": "1", "text": "d"}',
        '{"text": "e", "collection": "notes"}',
        '{"text": "f", "sources": [["tea.md"]]}',
        '{"text": "g", "sources": ["zzz"]}',
        '{"text": "h", "spans": [{"document": "te.md", "text": "a"}]}',
        "how hot is the water",
        "[" * 100_000,
    ]
    with refused(DatasetError, "'tea.md'", "'notes/rain.txt', 'weather/rain.txt'", "'zzz'") as caught:
        read(library, *wrong)
    problems = str(caught.value).splitlines()[1:]
    places = [f"queries.jsonl:{number if number < 10 else ''}" for number in range(1, len(wrong) + 1)]
    assert [place in problem for place, problem in zip(places, problems, strict=True)] == [True] * len(wrong)
    with refused(DatasetError):
        read(library, {"text": "unknown"})
    with hashed_workspace(tmp_path) as empty, refused(DatasetError):
        read_library(empty, library / "queries.jsonl")
