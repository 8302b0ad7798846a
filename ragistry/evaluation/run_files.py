"""The files of a comparison: one run a technique, and beside it the answers with what they cost."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragistry.evaluation.answers import AnswerFile
from ragistry.evaluation.dataset import Run
from ragistry.evaluation.trec import write_run

_UNSAFE = re.compile(r"[^\w.,=+\[\]-]")


def answer_file(folder: Path, name: str, identity: dict[str, Any]) -> AnswerFile:
    """Where the answers of a technique are kept, with their times, which differ from run to run."""
    return AnswerFile(folder / f"{file_name(name)}.answers.jsonl", identity)


def write_runs(folder: Path, runs: Mapping[str, Run]) -> list[Path]:
    """Write a TREC run for each technique; the same rankings give the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, run in runs.items():
        path = folder / f"{file_name(name)}.run"
        write_run(run, path, tag=file_name(name))
        paths.append(path)
    return paths


def file_name(name: str) -> str:
    """A technique's name as every system takes it for a file."""
    return _UNSAFE.sub("_", name)
