"""Comparisons that are started on the page: one at a time, in the background, seen by every window."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from ragistry.errors import DatasetError, EvaluationError, RagistryError
from ragistry.evaluation import compare, read_library
from ragistry.evaluation.data.dataset import Dataset
from ragistry.evaluation.data.testsets import known_items, library_sources, make_testset
from ragistry.evaluation.outputs import keep_report
from ragistry.techniques.classes import wanted_resources
from ragistry.web.jobs import give_way
from ragistry.workspace import Workspace

QUESTIONS = 50
"""Questions that are made unless another number is given."""
STOPPED = "the comparison was stopped; start it again"


class StoppedError(RagistryError):
    """Somebody stopped the comparison, or the page ended."""


@dataclass(frozen=True, slots=True)
class Queries:
    """What is asked. ``content``: of a file of queries, called ``name``; None: ``number`` questions are made from the
    titles, headings and descriptions of the library."""

    content: bytes | None = None
    name: str = "queries.jsonl"
    number: int = QUESTIONS


@dataclass(slots=True)
class Running:
    """A comparison and how far it is. ``report``: the name of its report, once it is done."""

    techniques: list[str]
    state: Literal["running", "done", "failed"] = "running"
    stage: str = "preparing"
    share: float = 0.0
    error: str = ""
    report: str = ""


class Comparisons:
    """Runs them over a workspace and keeps their reports in a folder. ``last``: the one that runs, or ran last."""

    def __init__(self, workspace: Workspace, reports: Path) -> None:
        self.last: Running | None = None
        self._workspace = workspace
        self._reports = reports
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def offered(self, *, made: bool) -> list[str]:
        """The techniques whose models are configured; over ``made`` questions none that chooses between collections."""
        registry = self._workspace.registry
        names = [name for name in registry.names() if not registry.missing_model(name)]
        return [name for name in names if not made or "library" not in wanted_resources(registry.technique_class(name))]

    def start(self, techniques: list[str], queries: Queries) -> None:
        """Begin one in the background. Raises `EvaluationError` where another runs, or where two are not named."""
        if self.last is not None and self.last.state == "running":
            raise EvaluationError("another comparison is running; wait for it, or stop it")
        if len(techniques) < 2:
            raise EvaluationError("a comparison needs two techniques; choose another one")
        self._stopping.clear()
        self.last = Running(techniques)
        self._thread = threading.Thread(target=self._run, args=(self.last, queries), daemon=True, name="comparison")
        self._thread.start()

    def stop(self) -> None:
        """End the one that runs, before its next question."""
        self._stopping.set()

    def close(self) -> None:
        """Stop, and wait for a while; what is written by then is whole."""
        self.stop()
        if self._thread is not None:
            self._thread.join(10)

    def _run(self, running: Running, queries: Queries) -> None:
        give_way()

        def progress(stage: str, done: int, total: int) -> None:
            if self._stopping.is_set():
                raise StoppedError(STOPPED)
            running.stage = f"{stage} {done:,} of {total:,}"
            running.share = done / total if total else 0.0

        try:
            test_set = _test_set(self._workspace, queries)
            chunking = "library" if queries.content is not None else None
            result = compare(
                running.techniques, test_set, workspace=self._workspace, chunk_size=chunking, progress=progress
            )
            running.report = keep_report(self._reports, result.to_json()).stem
            running.state = "done"
        except RagistryError as error:
            running.error, running.state = str(error), "failed"
        except Exception as error:  # noqa: BLE001, the page reports what nobody foresaw
            running.error, running.state = f"{type(error).__name__}: {error}", "failed"


def _test_set(workspace: Workspace, queries: Queries) -> Dataset:
    if queries.content is None:
        sources = library_sources(workspace)
        if not sources:
            raise DatasetError("the library has no sources to make questions from; add files first")
        return make_testset(
            "questions made from the library", sources, known_items(sources), limit=queries.number
        ).dataset
    with TemporaryDirectory() as folder:
        file = Path(folder) / queries.name
        file.write_bytes(queries.content)
        return read_library(workspace, file)
