"""Contenders from elsewhere: TREC runs, and retrievers of other libraries."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ragistry.errors import ConfigError, DatasetError, TechniqueError, UnsupportedError
from ragistry.evaluation import as_technique, compare, markdown, page, read_run
from tests.evaluation.small_sets import Answers, first, numbered
from tests.messages import check_message, refused

ROWS = [("q0", "d0", 2.0), ("q0", "d1", 1.0), ("q1", "d0", 3.0), ("q1", "d1", 2.0), ("q2", "d2", 1.0)]


def written(path, rows=ROWS):
    path.write_text("".join(f"{query} Q0 {document} 1 {score} x\n" for query, document, score in rows))
    return path


def test_run_is_a_contender_measured_as_others(tmp_path):
    # Lines are unsorted: scores decide.
    run = read_run(written(tmp_path / "their.run", ROWS[::-1]))
    result = compare(
        {"own": Answers(first), "theirs": run}, numbered(4), ["RR@10"], runs=tmp_path / "runs", progress=False
    )
    theirs = result.techniques["theirs"]
    assert theirs.per_query["RR@10"] == {"q0": 1.0, "q1": 0.5, "q2": 1.0, "q3": 0.0}
    assert not theirs.timed
    assert [(pair.a, pair.b) for pair in result.main_pairs] == [("own", "theirs")]
    assert result.cpu_pairs == []
    assert "The run theirs has no ranking for 1 of 4 queries; it counts as 0." in result.warnings
    for report in (page(result), markdown(result)):
        assert "theirs" in report
    again = compare({"theirs": read_run(tmp_path / "runs" / "theirs.run")}, numbered(4), ["RR@10"], progress=False)
    assert again.techniques["theirs"].per_query == theirs.per_query
    assert result.to_ranx("theirs")["q1"] == {"d0": 3.0, "d1": 2.0}
    assert result.to_pyterrier("theirs")["docid"] == ["d0", "d1", "d0", "d1", "d2"]
    assert result.to_pyterrier("theirs")["rank"] == [0, 1, 0, 1, 0]


def test_depth_and_the_querys_own_document_are_those_of_the_comparison():
    run = {"q0": {"q0": 9, "d1": 5, "d0": 4}, "q1": [("d1", 1)]}
    result = compare({"r": run}, numbered(2), ["RR@2"], depth=2, drop_query=True, progress=False)
    assert result.runs["r"] == {"q0": [("d1", 5.0), ("d0", 4.0)], "q1": [("d1", 1.0)]}


@pytest.mark.parametrize(
    ("run", "named"),
    [
        ({"other": [("d0", 1.0)]}, "other"),
        ({}, "q0"),
        ({"q0": [("x0", 1.0)]}, "x0"),
        ({"q0": ["d0", "d1"]}, "read_run"),
        ({"q0": [("d0", "high")]}, "read_run"),
        ({"q0": 5}, "read_run"),
        ({"q0": [("d0", float("nan"))]}, "nan"),
        ({"q0": [("d0", 2.0), ("d0", 1.0)]}, "twice"),
    ],
)
def test_run_that_does_not_fit_fails_alone(run, named):
    result = compare({"bad": run, "own": Answers(first)}, numbered(3), progress=False)
    assert list(result.techniques) == ["own"]
    check_message(result.failures["bad"].error, named)


@pytest.mark.parametrize("line", ["q0 Q0 d0 1 2.0 x\n", "q1 Q0 d2 1 nan x\n", "q1 Q0 d2\n"])
def test_file_with_duplicate_or_broken_lines_is_refused(tmp_path, line):
    path = written(tmp_path / "their.run")
    path.write_text(path.read_text() + line)
    with refused(DatasetError, "their.run", ":6"):
        read_run(path)


FOUND = ["d1", "d0"]
LANGCHAIN = [SimpleNamespace(page_content="text", metadata={"source": id}, id=None) for id in FOUND]
HAYSTACK = [
    SimpleNamespace(content="text", meta={"file_path": id}, id=f"h{id}", score=score)
    for id, score in zip(FOUND, (0.9, 0.4), strict=True)
]
LLAMA = [SimpleNamespace(node=SimpleNamespace(text="text", metadata={}, id=id), score=None) for id in FOUND]
PLAIN = [{"text": "text", "id": id, "score": 1.0} for id in FOUND]


@pytest.mark.parametrize(
    ("retriever", "scores"),
    [
        (SimpleNamespace(invoke=lambda query: LANGCHAIN), [1.0, 0.5]),
        (SimpleNamespace(run=lambda *, query: {"documents": HAYSTACK}), [0.9, 0.4]),
        (SimpleNamespace(retrieve=lambda query: LLAMA), [1.0, 0.5]),
        (lambda query: {"documents": PLAIN[::-1]}, [1.0, 1.0]),
        (lambda query: (one for one in LANGCHAIN), [1.0, 0.5]),
    ],
)
def test_retriever_of_another_library_is_a_technique(retriever, scores):
    technique = as_technique(retriever)
    documents = technique.retrieve("q")
    assert [document.score for document in documents] == scores
    assert sorted(document.metadata["source_file"] for document in documents) == ["d0", "d1"]
    assert len(technique.retrieve("q", top_k=1)) == 1
    result = compare({"theirs": technique}, numbered(2), ["R@2"], progress=False)
    assert result.techniques["theirs"].measures["R@2"].mean == 1.0


def test_id_of_a_document_may_be_named_or_computed():
    documents = [{"content": "x", "metadata": {"url": "https://example.org/d1"}, "score": 1}]
    named = as_technique(lambda query: documents, id="url").retrieve("q")
    computed = as_technique(lambda query: documents, id=lambda one: one["metadata"]["url"][-2:]).retrieve("q")
    assert [one.metadata["source_file"] for one in (*named, *computed)] == ["https://example.org/d1", "d1"]


@pytest.mark.parametrize("value", [5, dict, SimpleNamespace(search=len), "https://example.org"])
def test_what_cannot_retrieve_is_refused(value):
    with refused(ConfigError, "invoke"):
        as_technique(value)


@pytest.mark.parametrize("found", [{"hits": []}, [{"id": "d0"}], ["d0"]])
def test_what_is_no_document_is_an_error(found):
    with refused(TechniqueError):
        as_technique(lambda query: found).retrieve("q")
    with refused(UnsupportedError):
        as_technique(lambda query: found).retrieve("q", where={"page": 1})
