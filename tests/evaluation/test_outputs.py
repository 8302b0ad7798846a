"""What cannot be written is said before any work, all of it at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ragistry.errors import EvaluationError
from ragistry.evaluation import compare
from ragistry.evaluation.outputs import check_outputs
from tests.evaluation.small_sets import Answers, first, numbered


def test_every_problem_is_said_at_once_with_its_remedy(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    files = {"html": tmp_path, "json": file / "below.json", "markdown": None, "a": tmp_path / "x", "b": tmp_path / "x"}
    with pytest.raises(EvaluationError) as caught:
        check_outputs(files=files, folders={"runs": file, "cache": "x" * 300}, seed=-1)
    for said in (
        "6 problems:",
        "a and b would both be written to",
        "the html",
        "it is a folder; give a file",
        "a part of its path is not a directory; give another file",
        "it is a file; give a folder for runs",
        "too long; give another folder",
        "the seed is -1; give a whole number from 0",
    ):
        assert said in str(caught.value)


def test_what_can_be_written_is_left_as_it_was(tmp_path: Path) -> None:
    there = tmp_path / "there.html"
    there.write_text("old")
    check_outputs(files={"html": there, "json": tmp_path / "a" / "b.json"}, folders={"runs": tmp_path / "c"}, seed=0)
    assert list(tmp_path.iterdir()) == [there]
    assert there.read_text() == "old"


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(EvaluationError, match="Permission denied; give another file"):
        check_outputs(files={"html": tmp_path / "x"}, folders={}, seed=0)


@pytest.mark.parametrize("wrong", [{"seed": 1.5}, {"runs": "/dev/null/r"}, {"record": "/dev/null/r"}])
def test_nothing_is_asked_before(wrong: dict[str, object]) -> None:
    technique = Answers(first)
    with pytest.raises(EvaluationError, match="give a"):
        compare({"a": technique}, numbered(3), **wrong)
    assert technique.asked == []
