"""What is wrong with a test set is said with what to do about it."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry import open_workspace
from ragistry.errors import DatasetError
from ragistry.evaluation import Dataset, Text, read_library, read_qrels, read_run, write_run
from ragistry.evaluation.trec import decreasing

CORPUS = [Text("d0", "", "tea"), Text("d1", "", "rain")]
LIMIT = 3.4028234663852886e38
"""The largest number of 32 bits."""


@pytest.mark.parametrize(
    ("corpus", "queries", "qrels", "remedy"),
    [
        ([*CORPUS, CORPUS[0]], {"q": "tea"}, {"q": {"d0": 1}}, "another one has: 'd0'; give it its own"),
        (CORPUS, {"q": "tea"}, {"q": {"d2": 1}}, "'d2'; add it, or take out what is said of it in the qrels"),
        (CORPUS, {"q": "tea"}, {"p": {"d0": 1}, "q": {"d0": 1}}, "'p'; add it to the queries, or take its"),
        (CORPUS, {"q": " "}, {"q": {"d0": 1}}, "'q'; write what is asked, or take it out"),
        ([Text("a\tb", "", "x")], {"q": "x"}, {"q": {"a\tb": 1}}, "give it another id"),
        (CORPUS, {"q": "tea"}, {"q": {"d0": 1.5}}, "'q'; grade with 0, 1, 2, …"),
    ],
)
def test_every_fault_has_a_remedy(corpus: list[Text], queries: dict, qrels: dict, remedy: str) -> None:
    with pytest.raises(DatasetError) as caught:
        Dataset("set", corpus, queries, qrels)
    assert remedy in str(caught.value)


def test_an_empty_library_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_text('{"text": "tea", "sources": ["tea.md"]}\n')
    with open_workspace(tmp_path) as workspace, pytest.raises(DatasetError) as caught:
        read_library(workspace, tmp_path / "queries.jsonl")
    assert "is empty; ingest first: ragistry ingest" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_source_is_told_with_the_nearest_or_where_to_look(tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl").write_text(
        '{"text": "tea", "sources": ["tee.md"]}\n{"text": "x", "sources": ["zzz"]}\n'
    )
    with open_workspace(tmp_path) as workspace:
        workspace.library.create_collection("notes", "Notes")
        workspace.library.ingest_text("Tea is steeped.", "tea.md", "notes")
        with pytest.raises(DatasetError) as caught:
            read_library(workspace, tmp_path / "queries.jsonl")
    assert "no source 'tee.md' in the library; did you mean 'tea.md'?" in str(caught.value)
    assert "no source 'zzz' in the library; `ragistry sources list` names all that there are" in str(caught.value)


def test_a_whole_grade_may_be_written_with_a_point(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("1 0 d1 1.0\n1 0 d2 0\n")
    assert read_qrels(tmp_path / "qrels") == {"1": {"d1": 1, "d2": 0}}
    (tmp_path / "qrels").write_text("1 0 d1 1.5\n")
    with pytest.raises(DatasetError, match=r"the grade '1.5' is no whole number"):
        read_qrels(tmp_path / "qrels")


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([LIMIT, -LIMIT, 0.0]), max_size=8))
def test_a_run_is_finite_and_falls_wherever_its_scores_are(scores: list[float]) -> None:
    hits = decreasing([(f"d{at}", score) for at, score in enumerate(scores)])
    assert [name for name, _ in hits] == [f"d{at}" for at in range(len(scores))]
    assert all(math.isfinite(score) for _, score in hits)
    assert all(above > below for (_, above), (_, below) in pairwise(hits))


def test_scores_at_the_end_of_32_bits_keep_their_order_in_a_file(tmp_path: Path) -> None:
    hits = [("a", -LIMIT), ("b", -LIMIT), ("c", -LIMIT)]
    write_run({"q": hits}, tmp_path / "x.run")
    assert [name for name, _ in read_run(tmp_path / "x.run")["q"]] == ["a", "b", "c"]
