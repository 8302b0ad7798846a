"""The files of a comparison: one run a technique, and beside it the answers with what they cost."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from ragistry.errors import EvaluationError
from ragistry.evaluation.answer_file import AnswerFile
from ragistry.evaluation.dataset import Run
from ragistry.evaluation.trec import write_run

LONGEST = 120
"""Bytes of a name, of the 255 that systems allow."""
_UNSAFE = re.compile(r"[^\w.,=+\[\]-]")


def answer_files(
    folder: Path, identities: Mapping[str, dict[str, Any]], begin_anew: Container[str] = ()
) -> dict[str, AnswerFile]:
    """Where the answers of each technique are kept, with their times, which differ from run to run.

    ``begin_anew``: techniques that nothing is resumed of. Raises `EvaluationError` where two would share a file.
    """
    names: dict[str, str] = {}
    for name in identities:
        other = names.setdefault(file_name(name).casefold(), name)
        if other != name:
            raise EvaluationError(f"{other!r} and {name!r} would share the file {file_name(name)}.run; rename one")
    return {
        name: AnswerFile(folder / f"{file_name(name)}.answers.jsonl", identity, begin_anew=name in begin_anew)
        for name, identity in identities.items()
    }


def write_runs(folder: Path, runs: Mapping[str, Run], failed: Iterable[str] = ()) -> list[Path]:
    """Write a TREC run for each technique; the same rankings give the same bytes. One that failed has none any more."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in failed:
        (folder / f"{file_name(name)}.run").unlink(missing_ok=True)
    paths = []
    for name, run in runs.items():
        path = folder / f"{file_name(name)}.run"
        write_run(run, path, tag=file_name(name))
        paths.append(path)
    return paths


def file_name(name: str) -> str:
    """A technique's name as every system takes it for a file; a long one is cut and told apart by its hash."""
    safe = _UNSAFE.sub("_", name)
    if len(safe.encode()) <= LONGEST:
        return safe
    return f"{safe.encode()[:LONGEST].decode(errors='ignore')}-{sha256(name.encode()).hexdigest()[:12]}"
