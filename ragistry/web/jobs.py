"""Jobs that are started on the page, ingests and comparisons. All windows show them, also after a restart."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from time import time
from typing import Any

from ragistry.errors import EvaluationError
from ragistry.server.access import LOCAL_CALLER
from ragistry.server.jobs import SavedJob, SavedJobs
from ragistry.server.path_ingest import has_lines, summary
from ragistry.server.schemas import ComparisonRequest, MadeQueries
from ragistry.server.tasks import QUERIES
from ragistry.workspace import Workspace

KEPT = 20
"""Number of ended ingests that are shown."""
QUESTIONS = 50
"""Default number of generated questions."""


class PageJobs:
    """The jobs of the page among the saved jobs.

    Args:
        workspace: The open workspace.
        saved: The jobs of the workspace.
    """

    def __init__(self, workspace: Workspace, saved: SavedJobs) -> None:
        self._workspace = workspace
        self._saved = saved
        self._opened = time()

    def ingest(
        self,
        collection: str,
        paths: Sequence[Path],
        label: str,
        *,
        prune: bool = False,
        replace: bool = False,
        refused: Sequence[tuple[str, str]] = (),
        uploaded: Path | None = None,
    ) -> SavedJob:
        """Save a job that ingests files and folders after the ingests that were added before; see `ingest_paths`.

        ``uploaded``: the folder of the files that were uploaded for it, from `SavedJobs.new_folder`.

        Raises:
            ServerBusyError: Too many jobs have not ended.
            StoreError: The sources that uploaded files replace cannot be listed.
        """
        request: dict[str, Any] = {
            "paths": [str(path) for path in paths], "label": label, "prune": prune, "replace": replace,
            "refused": list(refused), "unneeded": self._replaced(collection, paths) if replace else [],
        }  # fmt: skip
        with self._saved.new_folder() if uploaded is None else nullcontext(uploaded) as folder:
            return self._saved.add(folder, "ingest", LOCAL_CALLER, collection, request)

    def _replaced(self, collection: str, paths: Sequence[Path]) -> list[str]:
        """Return the uploaded files of sources with the names of these files, or from zip files of these names."""
        names = {path.name for path in paths}
        known = self._workspace.library.sources(collection)
        found = {info.source_path for info in known if info.source_file.partition("/")[0] in names}
        return sorted(path for path in found if self._saved.uploads.file_of(path))

    def compare(
        self, techniques: list[str], *, questions: int = QUESTIONS, name: str = QUERIES, queries: bytes | None = None
    ) -> SavedJob:
        """Save a job that compares techniques.

        Args:
            techniques: Names of the techniques.
            questions: Maximum number of questions to generate.
            name: Name of a file of queries.
            queries: Its content; None: questions are generated from the library.

        Raises:
            EvaluationError: Another comparison is running, or there are fewer than two techniques.
        """
        if any(job.kind == "comparison" for job in self._saved.unfinished()):
            raise EvaluationError("another comparison is running; wait for it, or stop it")
        if len(techniques) < 2:
            raise EvaluationError("a comparison needs two techniques; choose another one")
        made = MadeQueries(limit=questions)
        request = ComparisonRequest(techniques=techniques, made=made).model_dump(exclude={"queries"})
        with self._saved.new_folder() as files:
            if queries is not None:
                (files / name).write_bytes(queries)
            return self._saved.add(files, "comparison", LOCAL_CALLER, None, request | {"file": name})

    def ingests(self, collection: str | None = None) -> list[SavedJob]:
        """Return the ingests into a collection or all, newest first."""
        found = [job for job in self._shown() if "paths" in job.request and collection in (None, job.collection)]
        latest = [job for job in found if job.ended][:KEPT]
        return [job for job in found if not job.ended or job in latest]

    def comparisons(self) -> list[SavedJob]:
        """Return the last comparison, if there is one."""
        return [job for job in self._shown() if job.kind == "comparison"][:1]

    def _shown(self) -> list[SavedJob]:
        """Return all jobs, newest first, without those that ended before this start."""
        found = self._saved.visible(LOCAL_CALLER)
        return [job for job in found if job.finished is None or job.finished >= self._opened]

    def pending(self, collection: str) -> list[str]:
        """Return the names of the files that are not yet ingested into a collection."""
        waiting = [job.request for job in self._saved.unfinished() if job.collection == collection]
        sent = [source["name"] for request in waiting for source in request.get("sources", ())]
        return sent + [Path(path).name for request in waiting for path in request.get("paths", ())]


def label(job: SavedJob) -> str:
    """Return the files or the techniques of a job in a few words."""
    return str(job.request["label"]) if job.kind == "ingest" else f"Comparing {', '.join(job.request['techniques'])}"


def share(job: SavedJob) -> float:
    """Return the progress of a job, 0 to 1."""
    return min(1.0, (job.done + job.inside) / max(1, job.total))


def status(job: SavedJob) -> str:
    """Return the state of a job: its stage while it runs, and at the end the numbers of an ingest."""
    if job.kind == "comparison":
        stage = f"{job.current} {job.done:,} of {job.total:,}" if job.current else "preparing"
        return job.state if job.ended else stage
    paths, refused = job.request["paths"], job.request["refused"]
    if job.state == "running" and paths:
        return f"{job.done} of {len(paths)} files" if len(paths) > 1 else job.current
    if paths and (job.state != "done" or job.report is None):
        return job.state
    counts = [summary(job.report)] if paths and job.report else []
    return ", ".join([*counts, *([f"{len(refused)} not added"] if refused else [])])


def files(job: SavedJob) -> list[tuple[str, str]]:
    """Return name and stage of each file of an ingest, if there are several."""
    if job.kind == "comparison" or not has_lines(job):
        return []
    names = [Path(path).name for path in job.request["paths"]]
    lines = [(name, _stage(job, place, name)) for place, name in enumerate(names)]
    return lines + [(name, f"not added: {reason}") for name, reason in job.request["refused"]]


def failures(job: SavedJob) -> list[str]:
    """Return the error of a job, or the errors and warnings that no line of a file has."""
    if job.error:
        return [job.error["message"]]
    if job.kind == "comparison":
        return ["the comparison was stopped; start it again"] if job.state == "cancelled" else []
    refused = () if has_lines(job) else job.request["refused"]
    return [*(f"not added: {reason}" for _, reason in refused), *job.notes]


def _stage(job: SavedJob, place: int, name: str) -> str:
    if name in job.stages:
        return job.stages[name]
    if job.ended:
        return "not added"
    return job.current if job.state == "running" and place == job.done else "waiting"
