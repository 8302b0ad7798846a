"""What jobs do: take uploaded sources into a collection, and compare techniques."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from ragistry.errors import DatasetError, RagistryError, SourceError
from ragistry.library.ingest.methods import IngestObserver
from ragistry.library.ingest.plan import IngestPlan
from ragistry.library.ingest.report import report_as_mapping
from ragistry.library.ingest.source import IngestSource, Reading, SourceFile, SourceText
from ragistry.server.jobs import FILES, Running
from ragistry.utils.documents.extracted import Extracted
from ragistry.workspace import Workspace

REPORTS = {"json": "report.json", "markdown": "report.md", "html": "report.html"}
"""The files of a comparison's report, by format."""
QUERIES = "queries.jsonl"
SENT_FROM = "sent_from"
"""In the metadata of a source: the id of the folder of a client that it was sent from."""
FOLDER_ID = r"^[0-9a-f]{16}$"


@dataclass(frozen=True, slots=True)
class UploadedFile(SourceFile):
    """A file that a program sent. ``kept``: where it lies until its job ends.

    Like a text, it has no path: the same name is the same source, whoever sends it and from wherever. ``folder``: the
    id of the sender's folder, which the source then belongs to.
    """

    kept: str = ""
    folder: str = ""

    def content_hash(self, reading: Reading) -> str:
        return self._of_folder(SourceFile(self.kept, self.source_file).content_hash(reading))

    def read(self, reading: Reading, content: str) -> tuple[Extracted, str]:
        try:
            extracted, content = SourceFile(self.kept, self.source_file).read(reading, content)
        except SourceError as error:
            raise type(error)(str(error).replace(self.kept, self.source_file)) from error
        sent_from = {SENT_FROM: self.folder} if self.folder else {}
        extracted = replace(extracted, source=self.source_file, metadata=extracted.metadata | sent_from)
        return extracted, self._of_folder(content)

    def _of_folder(self, content: str) -> str:
        """A hash by which a source that another folder sent is written again, though not embedded again."""
        return sha256(f"{self.folder}/{content}".encode()).hexdigest() if self.folder and content else content


def ingest(workspace: Workspace, running: Running) -> dict[str, Any]:
    """Take the files of a job into its collection.

    ``request``: ``{"replace": …, "sources": [{"name", "file", "text", "folder"}]}``; ``text``: whether the file is a
    text that was sent as such, which has no ``folder``.
    """
    job = running.job
    sources: list[IngestSource] = [_source(one, running.folder / FILES) for one in job.request["sources"]]
    plan = IngestPlan(job.collection or "", sources, replace=bool(job.request["replace"]))
    try:
        workspace.library.carry_out(plan, observer=_JobObserver(running))
    except RagistryError:
        job.report = report_as_mapping(plan.report, plan.collection)
        raise
    return report_as_mapping(plan.report, plan.collection)


class _JobObserver(IngestObserver):
    """Records the progress of a job, and ends it when it is cancelled."""

    def __init__(self, running: Running) -> None:
        self._running = running

    def progress(self, source_file: str, done: int, total: int) -> None:
        self._running.progress(source_file, done, total)

    def check(self) -> None:
        self._running.check()


def _source(sent: Mapping[str, Any], folder: Path) -> SourceFile | SourceText:
    path = folder / sent["file"]
    if sent["text"]:
        return SourceText(path.read_bytes().decode("utf-8"), sent["name"])
    return UploadedFile("", sent["name"], str(path), sent["folder"])


def compare(workspace: Workspace, running: Running) -> dict[str, Any]:
    """Compare techniques on uploaded queries, or on queries that are made from the library.

    The reports are written beside the job, in every format of `REPORTS`. Returns the conclusion and the failures.
    """
    from ragistry.evaluation import compare as run_comparison
    from ragistry.evaluation import markdown, page, read_library
    from ragistry.evaluation.comparison import MEASURES

    asked, uploaded = running.job.request, running.folder / FILES / QUERIES
    dataset = read_library(workspace, uploaded) if uploaded.exists() else _made(workspace, asked["made"], running)
    comparison = run_comparison(
        asked["techniques"],
        dataset,
        asked["measures"] or MEASURES,
        asked["baseline"],
        workspace=workspace,
        chunk_size="library" if uploaded.exists() else None,
        seed=asked["seed"],
        progress=running.progress,
    )
    found = comparison.to_json()
    texts: dict[str, Callable[[], str]] = {
        "json": lambda: json.dumps(found, ensure_ascii=False, indent=2) + "\n",
        "markdown": lambda: markdown(comparison),
        "html": lambda: page(comparison),
    }
    for kind, text in texts.items():
        (running.folder / REPORTS[kind]).write_text(text(), encoding="utf-8")
    failures = {name: failure.error for name, failure in comparison.failures.items()}
    return {"conclusion": found["conclusion"], "failures": failures}


def _made(workspace: Workspace, made: Mapping[str, Any], running: Running) -> Any:
    from ragistry.evaluation.data.testsets import known_items, library_sources, make_testset

    running.progress("making queries", 0, 1)
    sources = library_sources(workspace, made["collection"])
    if not sources:
        raise DatasetError("the library has no sources to make queries from; ingest some first")
    candidates = known_items(sources)
    return make_testset("library", sources, candidates, limit=made["limit"], seed=running.job.request["seed"]).dataset
