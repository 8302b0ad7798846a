"""The comparisons that were made in a workspace, as ``ragistry compare`` kept them."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from ragistry.errors import EvaluationError

Report = dict[str, Any]
"""The JSON of a comparison: see `ragistry.evaluation.result.Comparison.to_json`."""

NEEDED = {"dataset", "measure", "techniques", "pairs", "conclusion", "verdicts", "warnings", "notes", "provenance"}


@dataclass(frozen=True, slots=True)
class Listed:
    """A report in the list: its name, when it was made (ISO 8601), what it says in a line, and its warnings."""

    name: str
    made: str
    dataset: str
    techniques: tuple[str, ...]
    verdict: str
    warnings: tuple[str, ...]


def reports(folder: Path) -> list[Listed]:
    """Every report of the folder, newest first; a file that is none is left out."""
    found = []
    for path in folder.glob("*.json") if folder.is_dir() else ():
        with suppress(FileNotFoundError):  # deleted meanwhile
            status = path.stat()
            found.append(_listed(folder, path.stem, (status.st_ino, status.st_mtime_ns, status.st_size)))
    return sorted(filter(None, found), key=lambda listed: (listed.made, listed.name), reverse=True)


@lru_cache(maxsize=1_000)
def _listed(folder: Path, name: str, version: tuple[int, ...]) -> Listed | None:  # noqa: ARG001, part of the key
    """A report is long, and read again only where its file is another ``version``."""
    try:
        report = read_report(folder, name)
    except EvaluationError:
        return None
    made, warnings = str(report["provenance"]["made"]), tuple(map(str, report["warnings"]))
    return Listed(name, made, str(report["dataset"]), tuple(report["techniques"]), report["conclusion"], warnings)


def read_report(folder: Path, name: str) -> Report:
    """One report by its name. Raises `EvaluationError` where there is no such report, or the file is damaged."""
    path = folder / f"{name}.json"
    if path.parent != folder or path not in folder.glob("*.json"):
        raise EvaluationError(f"there is no report {name!r}; it may have been deleted")
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        missing = NEEDED - set(report)
        if not missing:
            datetime.fromisoformat(report["provenance"]["made"])
    except (OSError, ValueError, TypeError, LookupError) as error:
        raise EvaluationError(f"{path}: not readable as a report ({error}); make it again") from error
    if missing:
        raise EvaluationError(f"{path}: no report of `ragistry compare`: it lacks {', '.join(sorted(missing))}")
    return report  # type: ignore[no-any-return]
