"""TREC's files, and that trec_eval sees a written run as it was shown."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.errors import DatasetError
from ragistry.evaluation.data.trec import (
    decreasing,
    read_qrels,
    read_run,
    read_topics,
    write_qrels,
    write_run,
    write_topics,
)

ids = st.text(st.sampled_from("ab %2509CAE38\t\v\x1c\x85\xa0\u202f\u3000"), min_size=1, max_size=8)
LIMIT = 3.4028234663852886e38
"""The largest number of 32 bits."""
scores = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, 1e-30, LIMIT, -LIMIT]), st.floats(allow_nan=False, allow_infinity=False)
)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(ids, scores), unique_by=lambda hit: hit[0], min_size=1))
def test_a_written_run_is_read_in_the_order_shown(
    tmp_path_factory: pytest.TempPathFactory, hits: list[tuple[str, float]]
) -> None:
    path = tmp_path_factory.mktemp("runs") / "run.txt"
    write_run({"query 1": hits}, path)
    assert [document for document, _ in read_run(path)["query 1"]] == [document for document, _ in hits]
    falling = [score for _, score in decreasing(hits)]
    assert all(first > second for first, second in pairwise(falling))


def test_trec_eval_sees_ties_as_they_were_shown(tmp_path: Path) -> None:
    shown = {"q1": [("a", 0.5), ("b", 0.5), ("c", 0.7)]}
    write_run(shown, tmp_path / "run.txt", tag="hybrid")
    lines = (tmp_path / "run.txt").read_text().splitlines()
    assert lines[0] == "q1 Q0 a 1 0.5 hybrid"
    assert [line.split()[2:4] for line in lines] == [["a", "1"], ["b", "2"], ["c", "3"]]
    with (tmp_path / "run.txt").open() as stream:
        theirs = pytrec_eval.parse_run(stream)
    found = pytrec_eval.RelevanceEvaluator({"q1": {"a": 1}}, {"recip_rank"}).evaluate(theirs)
    assert found["q1"]["recip_rank"] == 1.0


def test_scores_that_fall_are_kept() -> None:
    assert decreasing([("a", 2.5), ("b", 1.0), ("c", -0.25)]) == [("a", 2.5), ("b", 1.0), ("c", -0.25)]
    with pytest.raises(DatasetError, match=r"the score of 'b' is nan"):
        decreasing([("a", 1.0), ("b", float("nan"))])


def test_qrels_are_written_and_read(tmp_path: Path) -> None:
    qrels = {"q1": {"Geneva Durben": 2, "b": 0}, "q 2": {"a%20b": 1}}
    write_qrels(qrels, tmp_path / "qrels.txt")
    assert (tmp_path / "qrels.txt").read_text().splitlines()[0] == "q1 0 Geneva%20Durben 2"
    assert read_qrels(tmp_path / "qrels.txt") == qrels
    write_qrels(qrels, tmp_path / "qrels.gz")
    assert read_qrels(tmp_path / "qrels.gz") == qrels
    with (tmp_path / "qrels.txt").open() as stream:
        assert pytrec_eval.parse_qrel(stream)["q1"] == {"Geneva%20Durben": 2, "b": 0}


def test_ids_with_white_space_of_any_kind_are_fields_to_every_reader(tmp_path: Path) -> None:
    blanks = "".join(filter(str.isspace, map(chr, range(sys.maxunicode))))
    qrels = {f"q{blank}": {f"a{blank}%{blank}b": 1} for blank in blanks if blank not in "\r\n"}
    write_qrels(qrels, tmp_path / "qrels.txt")
    assert read_qrels(tmp_path / "qrels.txt") == qrels
    lines = (tmp_path / "qrels.txt").read_text(encoding="utf-8").split("\n")[:-1]
    assert {len(line.split()) for line in lines} == {4}
    (tmp_path / "other.txt").write_text("q1\t0  a\xa0b \t 1 \n", encoding="utf-8")
    assert read_qrels(tmp_path / "other.txt") == {"q1": {"a\xa0b": 1}}, "as another program writes it"


def test_a_title_ends_at_a_tag_and_not_at_a_sign(tmp_path: Path) -> None:
    (tmp_path / "topics.txt").write_text(
        "<top>\n<num> 1\n<title> values of x < 5 and y > 3\n<desc> d\n</top>\n"
        "<top>\n<num> 2\n<title> a<b </title>\n</top>\n"
    )
    assert read_topics(tmp_path / "topics.txt") == {"1": "values of x < 5 and y > 3", "2": "a<b"}


def test_topics_are_read_as_lines_and_as_blocks(tmp_path: Path) -> None:
    queries = {"301": "international organised crime", "302": "poliomyelitis"}
    write_topics(queries, tmp_path / "topics.tsv")
    assert read_topics(tmp_path / "topics.tsv") == queries
    (tmp_path / "topics.txt").write_text(
        "<top>\n<num> Number: 301\n<title> international\n organised crime\n<desc> Description:\nWho?\n</top>\n\n"
        "<top>\n<num>302</num><title>Topic: poliomyelitis</title>\n</top>\n"
    )
    assert read_topics(tmp_path / "topics.txt") == queries


def test_every_wrong_line_is_told(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text("q1 Q0 a 1 0.5 tag\nq1 Q0 a 2 0.4 tag\nq1 Q0 b 3 nan tag\nq1 Q0 c 4 high tag\nq1 a 0.5\n")
    with pytest.raises(DatasetError) as caught:
        read_run(path)
    message = str(caught.value)
    assert "run.txt:2:" in message
    assert "'a' comes twice" in message
    assert "run.txt:3:" in message
    assert "not a finite number" in message
    assert "run.txt:4:" in message
    assert "is not 'query Q0 document rank score tag'" in message
    assert "run.txt:1:" not in message
    path.write_text("q1 0 a 1\nq1 0 a 2\nq1 0 b x\n")
    with pytest.raises(DatasetError, match="grade 1 too"):
        read_qrels(path)
    path.write_text("301\tcrime\n301\tagain\nnameless\n")
    with pytest.raises(DatasetError, match="'301' comes twice"):
        read_topics(path)
    path.write_text("<top><num>1</top>")
    with pytest.raises(DatasetError, match="no <title>"):
        read_topics(path)
    with pytest.raises(DatasetError, match="no file '.*absent'; give the path of one that exists"):
        read_run(tmp_path / "absent")
