"""The comparisons that were made in a workspace, as ``ragistry compare`` kept them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ragistry.errors import EvaluationError

Report = dict[str, Any]
"""The JSON of a comparison: see `ragistry.evaluation.result.Comparison.to_json`."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A report in the list: its name, when it was made (ISO 8601), and what it says in a line."""

    name: str
    made: str
    dataset: str
    techniques: tuple[str, ...]
    verdict: str


def reports(folder: Path) -> list[Listed]:
    """Every report of the folder, newest first; a file that is none is left out."""
    found = []
    for path in folder.glob("*.json") if folder.is_dir() else ():
        try:
            report = read_report(folder, path.stem)
        except EvaluationError:
            continue
        verdicts = report["verdicts"]
        said = f"{report['winner']} is best" if report["winner"] else "; ".join(verdicts[:2])
        made = str(report["provenance"]["made"])
        found.append(Listed(path.stem, made, str(report["dataset"]), tuple(report["techniques"]), said))
    return sorted(found, key=lambda listed: (listed.made, listed.name), reverse=True)


def read_report(folder: Path, name: str) -> Report:
    """One report by its name. Raises `EvaluationError` where there is no such report, or the file is damaged."""
    path = folder / f"{name}.json"
    if path.parent != folder or path not in folder.glob("*.json"):
        raise EvaluationError(f"there is no report {name!r}; it may have been deleted")
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        missing = {"dataset", "measure", "techniques", "pairs", "verdicts", "winner", "provenance"} - set(report)
        if not missing:
            datetime.fromisoformat(report["provenance"]["made"])
    except (OSError, ValueError, TypeError, LookupError) as error:
        raise EvaluationError(f"{path}: not readable as a report ({error}); make it again") from error
    if missing:
        raise EvaluationError(f"{path}: no report of `ragistry compare`: it lacks {', '.join(sorted(missing))}")
    return report  # type: ignore[no-any-return]
