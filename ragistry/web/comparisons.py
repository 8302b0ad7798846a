"""Comparisons that are started on the page, and the reports of all comparisons of the workspace."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cache, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import TypeAdapter

from ragistry.errors import EvaluationError
from ragistry.evaluation import Comparison, compare, read_library
from ragistry.evaluation.data.dataset import Dataset
from ragistry.evaluation.data.testsets import library_queries
from ragistry.evaluation.figures import IndexCost
from ragistry.evaluation.outputs import keep_report
from ragistry.evaluation.systems.systems import comparable
from ragistry.http.jobs import Job, JobRunner, State, error_text
from ragistry.workspace import Workspace

QUESTIONS = 50
"""Default number of generated questions."""
CLOSE_SECONDS = 10.0
"""Maximum wait for a running comparison when the page stops."""


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


@dataclass(slots=True, eq=False)
class ComparisonJob(Job):
    """A comparison with its progress (``stage``; ``share``: 0 to 1) and, at its end, the name of its ``report``."""

    techniques: list[str]
    queries: ComparisonQueries
    stage: str = "preparing"
    share: float = 0.0
    error: str = ""
    report: str = ""


class ComparisonJobs(JobRunner[ComparisonJob]):
    """Run comparisons one at a time, and write their reports to a folder."""

    def __init__(self, workspace: Workspace, reports: Path) -> None:
        super().__init__(kept=1)
        self._workspace = workspace
        self._reports = reports

    @property
    def last(self) -> ComparisonJob | None:
        """The last comparison that was started."""
        return next(reversed(self.all()), None)

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
        if self.open():
            raise EvaluationError("another comparison is running; wait for it, or stop it")
        if len(techniques) < 2:
            raise EvaluationError("a comparison needs two techniques; choose another one")
        self.submit(ComparisonJob(techniques, queries))

    def cancel_last(self) -> None:
        """End the running comparison before its next query."""
        if self.last is not None:
            self.cancel(self.last)

    def work(self, job: ComparisonJob, check: Callable[[], None]) -> None:
        """Compare the techniques, and write the report."""

        def progress(stage: str, done: int, total: int) -> None:
            check()
            job.stage = f"{stage} {done:,} of {total:,}"
            job.share = done / total if total else 0.0

        dataset = _dataset(self._workspace, job.queries)
        chunking = "library" if job.queries.content is not None else None
        result = compare(job.techniques, dataset, workspace=self._workspace, chunk_size=chunking, progress=progress)
        job.report = keep_report(self._reports, result.to_json()).stem

    def end(self, job: ComparisonJob, state: State, error: Exception | None) -> None:
        """Record the end of a comparison."""
        if state == "cancelled":
            job.error = "the comparison was stopped; start it again"
        elif error is not None:
            job.error = error_text(error)
        super().end(job, state, error)


def _dataset(workspace: Workspace, queries: ComparisonQueries) -> Dataset:
    if queries.content is None:
        return library_queries(workspace, queries.number)
    with TemporaryDirectory() as folder:
        file = Path(folder) / queries.name
        file.write_bytes(queries.content)
        return read_library(workspace, file)


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
    made, warnings = str(report.provenance["made"]), tuple(report.warnings)
    return ReportRow(name, made, report.name, tuple(report.techniques), report.conclusion(), warnings)


def read_report(folder: Path, name: str) -> Comparison:
    """Read a report by its name.

    Raises:
        EvaluationError: The report does not exist, or the file is damaged.
    """
    path = folder / f"{name}.json"
    if path.parent != folder or path not in folder.glob("*.json"):
        raise EvaluationError(f"report {name!r} does not exist; it may have been deleted")
    try:
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        known = {one.name for one in fields(Comparison)}
        kept = {key: value for key, value in values.items() if key in known}
        indexes = {name: IndexCost(**cost) for name, cost in values["indexes"].items()}
        kept |= {"name": values["dataset"], "indexes": indexes, "runs": {}}
        report = _comparison_type().validate_python(kept)
        datetime.fromisoformat(report.provenance["made"])
    except (OSError, ValueError, TypeError, AttributeError, LookupError) as error:
        raise EvaluationError(
            f"{path} is not a report of `ragistry compare` ({_first_line(error)}); delete it"
        ) from error
    return report


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


@cache
def _comparison_type() -> TypeAdapter[Comparison]:
    return TypeAdapter(Comparison)
