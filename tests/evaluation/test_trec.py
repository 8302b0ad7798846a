"""TREC's files, and that trec_eval sees a written run as it was shown."""

from __future__ import annotations

import sys
from itertools import pairwise
from types import ModuleType

import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.errors import DatasetError, EvaluationError
from ragistry.evaluation import (
    read_ir_datasets,
    read_qrels,
    read_run,
    write_qrels,
    write_run,
)
from tests.messages import refused

ids = st.text(st.sampled_from("ab %2509CAE38\t\v\x1c\x85\xa0\u202f\u3000"), min_size=1, max_size=8)
LIMIT = 3.4028234663852886e38
"""The largest number of 32 bits."""
scores = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, 1e-30, LIMIT, -LIMIT]), st.floats(allow_nan=False, allow_infinity=False)
)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(ids, scores), unique_by=lambda hit: hit[0], min_size=1))
def test_a_written_run_is_read_in_the_order_shown(tmp_path_factory, hits):
    path = tmp_path_factory.mktemp("runs") / "run.txt"
    write_run({"query 1": hits}, path)
    found = read_run(path)["query 1"]
    assert [document for document, _ in found] == [document for document, _ in hits]
    assert all(first > second for (_, first), (_, second) in pairwise(found))


def test_trec_eval_sees_ties_as_they_were_shown(tmp_path):
    write_run({"q1": [("a", 0.5), ("b", 0.5), ("c", 0.7)]}, tmp_path / "run.txt", tag="hybrid")
    assert (tmp_path / "run.txt").read_text().splitlines()[0] == "q1 Q0 a 1 0.5 hybrid"
    with (tmp_path / "run.txt").open() as stream:
        theirs = pytrec_eval.parse_run(stream)
    assert pytrec_eval.RelevanceEvaluator({"q1": {"a": 1}}, {"recip_rank"}).evaluate(theirs)["q1"]["recip_rank"] == 1
    write_run({"q": [("a", 2.5), ("b", 1.0), ("c", -0.25)]}, tmp_path / "run.txt")
    assert read_run(tmp_path / "run.txt")["q"] == [("a", 2.5), ("b", 1.0), ("c", -0.25)], "scores that fall are kept"
    with refused(DatasetError):
        write_run({"q": [("a", 1.0), ("b", float("nan"))]}, tmp_path / "run.txt")
    with refused(DatasetError, "run.txt"):
        write_run("run.txt", {"q": [("a", 1.0)]})


def test_qrels_with_white_space_of_any_kind_are_read_by_every_reader(tmp_path):
    blanks = "".join(filter(str.isspace, map(chr, range(sys.maxunicode))))
    qrels = {f"q{blank}": {f"a{blank}%{blank}b": 1, "c%20": 0} for blank in blanks if blank not in "\r\n"}
    for name in ("qrels.txt", "qrels.gz"):
        write_qrels(qrels, tmp_path / name)
        assert read_qrels(tmp_path / name) == qrels
    with (tmp_path / "qrels.txt").open(encoding="utf-8") as stream:
        assert len(pytrec_eval.parse_qrel(stream)) == len(qrels)
    (tmp_path / "other.txt").write_text("q1\t0  a\xa0b \t 1 \n", encoding="utf-8")
    assert read_qrels(tmp_path / "other.txt") == {"q1": {"a\xa0b": 1}}, "as another program writes it"


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (read_run, "q1 Q0 a 1 0.5 t\nq1 Q0 a 2 0.4 t\nq1 Q0 b 3 nan t\nq1 a 0.5\n"),
        (read_qrels, "q1 0 a 1\nq1 0 a 2\nq1 0 b x\nq1 0 c .5\n"),
    ],
)
def test_every_wrong_line_is_named(read, text, tmp_path):
    (tmp_path / "file").write_text(text)
    with refused(DatasetError) as caught:
        read(tmp_path / "file")
    assert "file:1:" not in str(caught.value)
    with refused(DatasetError, "absent"):
        read(tmp_path / "absent")


def test_ir_datasets_gives_a_test_set(tmp_path, monkeypatch):
    ir_datasets: ModuleType = pytest.importorskip("ir_datasets")
    (tmp_path / "docs.tsv").write_text("d1\tSteep green tea.\nd2\tRain falls.\n")
    (tmp_path / "queries.tsv").write_text("q1\thow to make tea\n")
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\nq1 0 d2 0\n")
    files = {"docs_tsv": "docs.tsv", "queries_tsv": "queries.tsv", "qrels_trec": "qrels.txt"}
    local = ir_datasets.create_dataset(**{key: str(tmp_path / name) for key, name in files.items()})
    ir_datasets.registry.register("ragistry-test", local)
    dataset = read_ir_datasets("ragistry-test")
    assert dataset.texts == {"d1": "Steep green tea.", "d2": "Rain falls."}
    assert dataset.queries == {"q1": "how to make tea"}
    assert dataset.qrels == {"q1": {"d1": 1, "d2": 0}}
    with refused(DatasetError):
        read_ir_datasets("no/such")
    monkeypatch.setitem(sys.modules, "ir_datasets", None)  # type: ignore[arg-type]
    with refused(EvaluationError):
        read_ir_datasets("beir/scifact/test")
