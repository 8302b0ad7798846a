"""What cannot be written is said before any work, all of it at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragistry.errors import EvaluationError
from ragistry.evaluation.outputs import check_outputs


def test_every_problem_is_listed_at_once_and_nothing_is_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    files = {"html": tmp_path, "json": file / "below.json", "a": tmp_path / "x", "b": tmp_path / "x"}
    with pytest.raises(EvaluationError) as caught:
        check_outputs(files=files, folders={"runs": file, "cache": None}, seed=-1)
    for problem in (
        "5 problems:",
        "a and b would both be written to",
        "it is a folder; give a file that",
        "a part of its path is not a folder; give a file that",
        "it is a file; give a folder that",
        "the seed is -1; give a whole number from 0",
    ):
        assert problem in str(caught.value)
    check_outputs(files={"html": file, "json": tmp_path / "a" / "b.json"}, folders={"runs": tmp_path / "c"}, seed=0)
    assert list(tmp_path.iterdir()) == [file]
