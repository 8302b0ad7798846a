"""The files of a comparison: one run a technique, and beside it the answers with what they cost."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragistry.errors import EvaluationError
from ragistry.evaluation.answers import AnswerFile
from ragistry.evaluation.dataset import Run
from ragistry.evaluation.trec import write_run

_UNSAFE = re.compile(r"[^\w.,=+\[\]-]")


def answer_files(folder: Path, identities: Mapping[str, dict[str, Any]]) -> dict[str, AnswerFile]:
    """Where the answers of each technique are kept, with their times, which differ from run to run.

    Raises `EvaluationError` where two techniques would share a file, or ``folder`` is one.
    """
    if folder.is_file():
        raise EvaluationError(f"{str(folder)!r} is a file; give a folder for runs")
    names: dict[str, str] = {}
    for name in identities:
        other = names.setdefault(file_name(name).casefold(), name)
        if other != name:
            raise EvaluationError(f"{other!r} and {name!r} would share the file {file_name(name)}.run; rename one")
    return {name: AnswerFile(folder / f"{file_name(name)}.answers.jsonl", identities[name]) for name in identities}


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
