"""The tasks of background jobs: ingest uploaded sources, and compare techniques for the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

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

    The request of the job is ``{"techniques": [NAME], "made": {"limit": …}, "file": NAME}``: the maximum number of
    generated queries, and the name of the file of queries. The report is kept with those of `ragistry compare`.

    Returns:
        The verdict, the errors of failed techniques, and the name of the report.
    """
    from ragistry.evaluation import compare as run_comparison
    from ragistry.evaluation import read_library
    from ragistry.evaluation.data.testsets import library_queries
    from ragistry.evaluation.outputs import keep_report

    request = running.job.request
    uploaded = running.files / request["file"]
    if uploaded.exists():
        dataset = read_library(workspace, uploaded)
    else:
        running.progress("generating queries", 0, 1)
        dataset = library_queries(workspace, request["made"]["limit"])
    comparison = run_comparison(
        request["techniques"],
        dataset,
        workspace=workspace,
        chunk_size="library" if uploaded.exists() and not dataset.synthetic else None,
        progress=running.progress,
    )
    folder = workspace.path_of(workspace.settings.data_dir) / EVALUATION / "reports"
    failures = {name: failure.error for name, failure in comparison.failures.items()}
    name = keep_report(folder, comparison.to_json()).stem
    return {"verdict": str(comparison.verdict), "failures": failures, "name": name}
