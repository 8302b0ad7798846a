"""The reports of all comparisons of the workspace."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from ragistry.errors import EvaluationError
from ragistry.evaluation import Comparison


@dataclass(frozen=True, slots=True)
class ReportRow:
    """A report in the list. ``made``: ISO 8601."""

    name: str
    made: str
    dataset: str
    techniques: tuple[str, ...]
    verdict: str
    warnings: tuple[str, ...]


def list_reports(folder: Path) -> list[ReportRow]:
    """List the reports of a folder, newest first. Files that are not reports are ignored."""
    found = []
    for path in folder.glob("*.json") if folder.is_dir() else ():
        with suppress(FileNotFoundError):  # deleted meanwhile
            status = path.stat()
            found.append(_report_row(folder, path.stem, (status.st_ino, status.st_mtime_ns, status.st_size)))
    return sorted(filter(None, found), key=lambda row: (row.made, row.name), reverse=True)


@lru_cache(maxsize=1_000)
def _report_row(folder: Path, name: str, version: tuple[int, ...]) -> ReportRow | None:  # noqa: ARG001, part of the key
    """Read a report. It is large, so it is cached until its file has another ``version``."""
    try:
        report = read_report(folder, name)
    except EvaluationError:
        return None
    made, warnings = str(report.provenance["made"]), tuple(report.warnings[:1])
    return ReportRow(name, made, report.name, tuple(report.techniques), " ".join(report.first_lines), warnings)


def read_report(folder: Path, name: str) -> Comparison:
    """Read a report by its name.

    Raises:
        EvaluationError: The report does not exist, or the file is damaged.
    """
    path = folder / f"{name}.json"
    if path.parent != folder or path not in folder.glob("*.json"):
        raise EvaluationError(f"report {name!r} does not exist; it may have been deleted")
    try:
        report = Comparison.from_json(path)
        datetime.fromisoformat(report.provenance["made"])
    except (EvaluationError, ValueError, KeyError) as error:
        reason = str(error).partition("\n")[0]
        raise EvaluationError(f"{path} is not a report of `ragistry compare` ({reason}); delete it") from error
    return report
