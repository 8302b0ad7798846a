"""The tasks of background jobs: ingest uploaded sources, and compare techniques."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragistry.config.folder import EVALUATION
from ragistry.errors import SourceError
from ragistry.library.ingest.methods import IngestObserver
from ragistry.library.ingest.plan import IngestPlan
from ragistry.library.ingest.report import IngestReport, report_as_mapping
from ragistry.library.ingest.source import IngestSource, ReadOptions, SourceFile, SourceText, hash_of
from ragistry.library.ingest.source_metadata import SourceMetadata
from ragistry.readers.extracted import Extracted, ExtractLimits
from ragistry.server.jobs import RunningJob
from ragistry.server.path_ingest import ingest_paths
from ragistry.workspace import Workspace

if TYPE_CHECKING:
    from ragistry.evaluation.data.dataset import Dataset

REPORTS = {"json": "report.json", "markdown": "report.md", "html": "report.html"}
"""File names of a comparison's report, by format."""
QUERIES = "queries.jsonl"
SENT_FROM = "sent_from"
"""Metadata key of a source: the id of the client's folder that it was sent from."""
FOLDER_ID = r"^[0-9a-f]{16}$"


@dataclass(frozen=True, slots=True)
class UploadedFile(SourceFile):
    """An uploaded file.

    Like a text, it has no path: files of one name are the same source, also from different clients.

    Attributes:
        kept: Path of the file until its job ends.
        folder: Id of the client's folder that contains the file; empty for none.
    """

    kept: str = ""
    folder: str = ""

    def digest(self, limits: ExtractLimits) -> bytes | None:
        return SourceFile(self.kept, self.source_file).digest(limits)

    def hash_of(self, digest: bytes, reading: ReadOptions) -> str:
        """Combine the hash with the folder, so that a source from another folder is written again, but not embedded."""
        content = hash_of(digest, reading, self.kept)
        return sha256(f"{self.folder}/{content}".encode()).hexdigest() if self.folder else content

    def read(self, reading: ReadOptions) -> tuple[Extracted, bytes]:
        try:
            extracted, digest = SourceFile(self.kept, self.source_file).read(reading)
        except SourceError as error:
            raise type(error)(str(error).replace(self.kept, self.source_file)) from error
        sent_from = {SENT_FROM: self.folder} if self.folder else {}
        return replace(extracted, source=self.source_file, metadata=extracted.metadata | sent_from), digest


def ingest(workspace: Workspace, running: RunningJob) -> dict[str, Any]:
    """Ingest the files of a job into its collection; for files and folders of this machine, see `ingest_paths`.

    The request of the job is ``{"replace": …, "sources": [{"name", "file", "text", "folder", "metadata"}]}``. ``text``
    is true for a text, which has no ``folder``. ``metadata``: the fields of `SourceMetadata`.
    """
    job, library, report = running.job, workspace.library, IngestReport()
    try:
        if "paths" in job.request:
            ingest_paths(library, running, report)
        else:
            sources: list[IngestSource] = [_source(one, running.files) for one in job.request["sources"]]
            plan = IngestPlan(job.collection or "", sources, report=report, replace=bool(job.request["replace"]))
            library.carry_out(plan, observer=_JobObserver(running))
    finally:
        job.report = report_as_mapping(report, job.collection or "")
    return job.report


class _JobObserver(IngestObserver):
    """Record the progress of a job, and end it when it is cancelled."""

    def __init__(self, running: RunningJob) -> None:
        self._running = running

    def progress(self, source_file: str, done: int, total: int) -> None:
        self._running.progress(source_file, done, total)

    def check(self) -> None:
        self._running.check()


def _source(sent: Mapping[str, Any], folder: Path) -> SourceFile | SourceText:
    path, metadata = folder / sent["file"], SourceMetadata(**sent["metadata"])
    if sent["text"]:
        return SourceText(path.read_bytes().decode("utf-8"), sent["name"], metadata=metadata)
    return UploadedFile("", sent["name"], str(path), sent["folder"], metadata=metadata)


def compare(workspace: Workspace, running: RunningJob) -> dict[str, Any]:
    """Compare techniques on uploaded queries, or on queries that are generated from the library.

    The report is written to the folder of the job in every format of `REPORTS`. The request of the job is a
    `ComparisonRequest`; the page adds ``file``, the name of the file of queries, so that its report is also kept with
    those of `ragistry compare`.

    Returns:
        The verdict, the errors of failed techniques, and the name of a report that is kept.
    """
    from ragistry.evaluation import compare as run_comparison
    from ragistry.evaluation import markdown, page, read_library
    from ragistry.evaluation.comparison import MEASURES
    from ragistry.evaluation.outputs import keep_report

    request = running.job.request
    uploaded = running.files / request.get("file", QUERIES)
    dataset = (
        read_library(workspace, uploaded)
        if uploaded.exists()
        else _generated_queries(workspace, request["made"], running)
    )
    comparison = run_comparison(
        request["techniques"],
        dataset,
        request["measures"] or MEASURES,
        request["baseline"],
        workspace=workspace,
        chunk_size="library" if uploaded.exists() and not dataset.synthetic else None,
        seed=request["seed"],
        progress=running.progress,
    )
    as_json = json.dumps(comparison.to_json(), ensure_ascii=False, indent=2) + "\n"
    for kind, text in (("json", as_json), ("markdown", markdown(comparison)), ("html", page(comparison))):
        (running.folder / REPORTS[kind]).write_text(text, encoding="utf-8")
    failures = {name: failure.error for name, failure in comparison.failures.items()}
    report = {"verdict": str(comparison.verdict), "failures": failures}
    if "file" in request:
        folder = workspace.path_of(workspace.settings.data_dir) / EVALUATION / "reports"
        report["name"] = keep_report(folder, comparison.to_json()).stem
    return report


def _generated_queries(workspace: Workspace, options: Mapping[str, Any], running: RunningJob) -> Dataset:
    from ragistry.evaluation.data.testsets import library_queries

    running.progress("generating queries", 0, 1)
    seed = running.job.request["seed"]
    return library_queries(workspace, options["limit"], collection=options["collection"], seed=seed)
