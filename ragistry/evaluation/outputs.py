"""Files that a comparison writes: a TREC run for each technique, reports, and checks of their paths."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from ragistry.errors import EvaluationError
from ragistry.evaluation.data.dataset import Run
from ragistry.evaluation.data.trec import file_name, write_run

Paths = Mapping[str, str | Path | None]
"""Output → its path; None if not requested."""


def check_outputs(*, files: Paths, folders: Paths, seed: int) -> None:
    """Check outputs at the beginning of a comparison instead of the end. Nothing is created.

    Args:
        files: Output → path of its file.
        folders: Output → path of its folder.
        seed: The seed of the comparison.

    Raises:
        EvaluationError: A path cannot be written, or the seed is not valid.
    """
    for name, asked in {**files, **folders}.items():
        path, kind = Path(asked or "."), "folder" if name in folders else "file"
        above = next(part for part in (path, *path.absolute().parents) if os.path.lexists(part))
        fits = path.is_dir() == (kind == "folder") if above == path else above.is_dir()
        if asked is not None and not (fits and os.access(above, os.W_OK)):
            raise EvaluationError(f"cannot write the {name} to {str(path)!r}; choose another {kind}")
    if type(seed) is not int or seed < 0:
        raise EvaluationError(f"seed is {seed!r}; it must be a whole number from 0")


def write_runs(folder: Path, runs: Mapping[str, Run], failed: Iterable[str] = ()) -> None:
    """Write a TREC run for each technique, and delete the runs of failed ones. Equal rankings give equal bytes.

    Raises:
        EvaluationError: The runs of two techniques would be the same file; none is written.
    """
    names: dict[str, str] = {}
    for name in runs:
        other = names.setdefault(file_name(name).casefold(), name)
        if other != name:
            raise EvaluationError(f"{other!r} and {name!r} would share the file {file_name(name)}.run; rename one")
    folder.mkdir(parents=True, exist_ok=True)
    for name in failed:
        (folder / f"{file_name(name)}.run").unlink(missing_ok=True)
    for name, run in runs.items():
        write_run(run, folder / f"{file_name(name)}.run", tag=file_name(name))


def keep_report(folder: Path, report: Mapping[str, Any]) -> Path:
    """Write the JSON of a comparison to a file named by time, test set and a hash.

    Args:
        folder: The folder of reports; created if missing.
        report: Result of `Comparison.to_json`.

    Returns:
        The path of the file.

    Raises:
        EvaluationError: The file cannot be written.
    """
    text = json.dumps(report, ensure_ascii=False, indent=2) + "\n"
    made = re.sub(r"[^0-9T]", "", report["provenance"]["made"].split("+")[0])
    name = re.sub(r"[^\w.-]+", "-", report["dataset"])[:60]
    path = folder / f"{made}-{name}-{sha256(text.encode()).hexdigest()[:8]}.json"
    write_text(path, text)
    return path


def write_text(path: Path, text: str) -> None:
    """Write a report. Raises `EvaluationError`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise EvaluationError(
            f"cannot write {str(path)!r}: {error.strerror}; free disk space, or choose another file"
        ) from error
