"""Contenders from elsewhere: TREC runs, functions and search endpoints."""

from __future__ import annotations

import gzip
from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ragistry import connect
from ragistry.errors import ConfigError, ModelError, TechniqueError, UnsupportedError
from ragistry.evaluation import Text, as_technique, compare, markdown, page, read_library, read_run
from ragistry.evaluation.outputs import write_runs
from ragistry.testing.loopback import Failure, LoopbackServer
from ragistry.testing.wire import Reply
from ragistry.types import Document
from tests.evaluation.small_sets import Answers, first, hashed_workspace, numbered, topics
from tests.messages import check_message, refused
from tests.serving import served

ROWS = [("q0", "d0", 2.0), ("q0", "d1", 1.0), ("q1", "d0", 3.0), ("q1", "d1", 2.0), ("q2", "d2", 1.0)]


def written(path, rows=ROWS):
    path.write_text("".join(f"{query} Q0 {document} 1 {score} x\n" for query, document, score in rows))
    return path


def test_run_is_a_contender_measured_as_others(tmp_path):
    # Lines are unsorted: scores decide.
    run = read_run(written(tmp_path / "their.run", ROWS[::-1]))
    result = compare({"own": Answers(first), "theirs": run}, numbered(4), ["RR@10"], progress=False)
    write_runs(tmp_path / "runs", result.runs)
    theirs = result.techniques["theirs"]
    assert theirs.per_query["RR@10"] == {"q0": 1.0, "q1": 0.5, "q2": 1.0, "q3": 0.0}
    assert not theirs.timed
    assert [(pair.a, pair.b) for pair in result.main_pairs] == [("theirs", "own")]
    assert "The run theirs has no ranking for 1 of 4 queries; it counts as 0." in result.warnings
    for report in (page(result), markdown(result)):
        assert "theirs" in report
    again = compare({"theirs": read_run(tmp_path / "runs" / "theirs.run")}, numbered(4), ["RR@10"], progress=False)
    assert again.techniques["theirs"].per_query == theirs.per_query
    assert result.runs["theirs"]["q1"] == [("d0", 3.0), ("d1", 2.0)]


@pytest.mark.parametrize("name", ["their.run.gz", "their.run"])
def test_compressed_run_is_recognised_by_its_content(tmp_path, name):
    (tmp_path / name).write_bytes(gzip.compress(written(tmp_path / "plain").read_bytes()))
    assert read_run(tmp_path / name) == read_run(tmp_path / "plain")


def test_depth_and_the_querys_own_document_are_those_of_the_comparison():
    run = {"q0": {"q0": 9, "d1": 5, "d0": 4}, "q1": [("d1", 1)]}
    dataset = numbered(2)
    dataset = replace(dataset, corpus=[*dataset.corpus, Text("q0", "", "query 0")])
    result = compare({"r": run}, dataset, ["RR@2"], depth=2, progress=False)
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


@pytest.mark.parametrize(
    ("function", "scores"),
    [
        (lambda query: ["d1", "d0"], [1.0, 0.5]),
        (lambda query, top_k=None: ["d1", "d0"][:top_k], [1.0, 0.5]),
        (lambda query: [("d0", 0.5), ("d1", 2)], [2.0, 0.5]),
        (lambda query: [["d1", np.float32(0.5)], ["d0", np.int64(0)]], [0.5, 0.0]),
        (lambda query: iter({"d0": Decimal("0.5"), "d1": Decimal(2)}.items()), [2.0, 0.5]),
        (lambda query: [("d1", 2), "d0"], [1.0, 0.5]),
        (lambda query: [Document("", {"source_file": name}, 1.0, f"{name} 7") for name in ("d0", "d1")], [1.0, 1.0]),
        (lambda query: {"results": [["d0", 0.5], ["d1", 2]]}, [2.0, 0.5]),
        (lambda query: {"documents": [{"id": name, "text": "text"} for name in ("d1", "d0")]}, [1.0, 0.5]),
        (lambda query: [{"id": "7", "metadata": {"source_file": n}, "score": 1} for n in ("d0", "d1")], [1.0, 1.0]),
    ],
)
def test_function_is_a_technique(function, scores):
    technique = as_technique(function)
    documents = technique.retrieve("q")
    assert [document.score for document in documents] == scores
    assert sorted(document.metadata["source_file"] for document in documents) == ["d0", "d1"]
    assert len(technique.retrieve("q", top_k=1)) == 1


TEXTS = {document.id: document.whole for document in topics().corpus}


def test_ranx_evaluates_a_run_to_the_same_values():
    ranx = pytest.importorskip("ranx")
    result = compare({"own": Answers(first)}, numbered(4), ["nDCG@10", "RR@10"], progress=False)
    run = ranx.Run({query: dict(ranking) for query, ranking in result.runs["own"].items()})
    means = ranx.evaluate(ranx.Qrels(numbered(4).qrels), run, ["ndcg@10", "mrr@10"])
    own = result.techniques["own"].measures
    assert [float(value) for value in means.values()] == pytest.approx([own["nDCG@10"].mean, own["RR@10"].mean])


class Endpoint(LoopbackServer):
    """A search endpoint with the documents of `topics`."""

    def answer(self, request: Any, flaw: Failure | None) -> Reply:
        words = set(request.body["query"].split())
        found = sorted(TEXTS, key=lambda name: -len(words & set(TEXTS[name].split())))
        found = found[: request.body.get("top_k")]
        return Reply(200, {"results": [{"id": name, "text": TEXTS[name]} for name in found]})

    def refusal(self, status: int) -> Any:
        return {"detail": f"refused with {status}"}


def test_endpoint_is_a_technique_by_its_address(tmp_path):
    with Endpoint() as server:
        theirs = as_technique(f"{server.url}/api/search?index=tea")
        [found, *_] = theirs.retrieve("tea steeped", top_k=3)
        assert (found.metadata["source_file"], found.content) == ("d-tea", TEXTS["d-tea"])
        assert compare({"theirs": theirs}, topics(), ["R@5"], progress=False).failures == {}
        assert {request.path.partition("?")[0] for request in server.requests} == {"/api/search"}
        assert {request.body["top_k"] for request in server.requests} == {3, 5, 100}, "also where a search is timed"
        as_technique(f"{server.url}/s", api_key="k3y").retrieve("tea", top_k=1)
        assert server.requests[-1].headers["Authorization"] == "Bearer k3y"
        for failure, named in {404: "404", "garbage": "search endpoint"}.items():
            server.fail_next(failure)
            with refused(ModelError, named):
                as_technique(f"{server.url}/s").retrieve("tea", top_k=1)
    result = compare({"gone": as_technique(server.url)}, numbered(2), progress=False)
    check_message(result.failures["gone"].error, "cannot be reached")


def test_server_of_this_program_is_a_technique_by_its_address_and_by_a_function(tmp_path):
    (tmp_path / "queries.jsonl").write_text('{"text": "how long is tea steeped", "sources": ["tea.md"]}\n')
    with hashed_workspace(tmp_path) as own:
        own.library.create_collection("teas")
        for name, text in (("tea", "Tea is steeped for two minutes."), ("bread", "Bread is baked for an hour.")):
            own.library.ingest_text(text, f"{name}.md", "teas")
        dataset = read_library(own, tmp_path / "queries.jsonl")
        with served(own) as url, connect(url) as remote:
            contenders = {
                "address": as_technique(f"{url}/v1/search"),
                "function": as_technique(lambda query, top_k: remote.search(query, "hybrid", top_k=top_k)),
            }
            result = compare({**contenders, "hybrid": None}, dataset, workspace=own, chunk_size="library")
    assert result.failures == {}
    rankings = [[document for document, _ in run["1"]] for run in result.runs.values()]
    assert rankings == [["teas/tea.md", "teas/bread.md"]] * 3


async def later(query):
    return []


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (5, "5"), (dict, "dict"), (SimpleNamespace(invoke=len), "invoke"), ("example.org/search", "example.org"),
        (lambda query, index: [], "index"), (lambda: [], "<lambda>()"), (later, "later"),
    ],
)  # fmt: skip
def test_what_cannot_retrieve_is_refused(value, named):
    with refused(ConfigError, named):
        as_technique(value)


def test_number_is_an_id():
    for found in ([0], [np.int64(0)], [(0, 2.5)]):
        assert as_technique(lambda query, found=found: found).retrieve("q")[0].metadata["source_file"] == "0"


@pytest.mark.parametrize(
    "found",
    [{"hits": []}, {"documents": None}, [{"score": 1.0}], [{"id": "d0", "score": "high"}], "d0", b"d0", None, [None],
     [SimpleNamespace(id="d0", score=1.0)], [("d0", "high")], [""], [0.5], [{"docno": "d0"}], {"d0": 1.0},
     [("d0", float("nan"))], SimpleNamespace(columns=["docno"], __iter__=iter)],
)  # fmt: skip
def test_what_is_no_document_is_an_error(found):
    with refused(TechniqueError):
        as_technique(lambda query: found).retrieve("q")
    with refused(UnsupportedError):
        as_technique(lambda query: found).retrieve("q", where={"page": 1})
