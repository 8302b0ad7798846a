"""Comparisons that are started on the page, and the reports of all comparisons of the workspace."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from time import time

from ragistry.errors import EvaluationError
from ragistry.evaluation import Comparison
from ragistry.evaluation.systems.systems import comparable
from ragistry.server.access import LOCAL_CALLER
from ragistry.server.jobs import FILES, SavedJob, SavedJobs
from ragistry.server.schemas import ComparisonRequest, MadeQueries
from ragistry.workspace import Workspace

QUESTIONS = 50
"""Default number of generated questions."""


@dataclass(frozen=True, slots=True)
class ComparisonQueries:
    """The queries of a comparison.

    Attributes:
        content: Content of a file of queries; None: questions are generated from the library.
        name: Name of the file.
        number: Maximum number of generated questions.
    """

    content: bytes | None = None
    name: str = "queries.jsonl"
    number: int = QUESTIONS


class ComparisonJobs:
    """The comparisons among the saved jobs. They run one at a time."""

    def __init__(self, workspace: Workspace, saved: SavedJobs) -> None:
        self._workspace = workspace
        self._saved = saved
        self._opened = time()

    @property
    def last(self) -> SavedJob | None:
        """The last comparison that was started, unless it had ended before this start of the page."""
        found = [job for job in self._saved.visible(LOCAL_CALLER) if job.kind == "comparison"]
        return next((job for job in found if job.finished is None or job.finished >= self._opened), None)

    def choices(self, *, generated: bool) -> list[str]:
        """Return the techniques whose models are configured.

        With ``generated`` questions, techniques that choose between collections are left out.
        """
        return comparable(self._workspace.registry, on_library=not generated)[0]

    def start(self, techniques: list[str], queries: ComparisonQueries) -> None:
        """Start a comparison in the background.

        Raises:
            EvaluationError: Another comparison is running, or there are fewer than two techniques.
        """
        if any(job.kind == "comparison" for job in self._saved.unfinished()):
            raise EvaluationError("another comparison is running; wait for it, or stop it")
        if len(techniques) < 2:
            raise EvaluationError("a comparison needs two techniques; choose another one")
        made = MadeQueries(limit=queries.number)
        request = ComparisonRequest(techniques=techniques, made=made).model_dump(exclude={"queries"})
        with self._saved.new_folder() as folder:
            if queries.content is not None:
                (folder / FILES / queries.name).write_bytes(queries.content)
            self._saved.add(folder, "comparison", LOCAL_CALLER, None, request | {"file": queries.name})

    def cancel_last(self) -> None:
        """End the running comparison before its next query."""
        if self.last is not None and not self.last.ended:
            self._saved.cancel(self.last)


def failure_of(job: SavedJob) -> str:
    """Return why a comparison has no report; empty if it is not known yet, or if it has one."""
    if job.state == "cancelled":
        return "the comparison was stopped; start it again"
    return job.error["message"] if job.error else ""


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
