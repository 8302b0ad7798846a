"""An ingest does and reports the same in this process, through a client, and as a job of the page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from ragistry import Workspace, connect, open_workspace
from ragistry.client.connection import error_of
from ragistry.errors import RagistryError
from ragistry.library.ingest.methods import IngestObserver
from ragistry.library.ingest.plan import IngestPlan
from ragistry.library.ingest.report import IngestReport, report_as_mapping, report_from_mapping
from ragistry.library.ingest.source import SourceText
from ragistry.server.app import saved_jobs
from ragistry.web.jobs import PageJobs
from ragistry.workspace import _token_file
from tests.conftest import Corpus
from tests.serving import served

FILES = {
    "black.md": "# Black tea\n\nBoiling water, four minutes.",
    "leaves/green.txt": "Green tea in water of eighty degrees.",
    "empty.md": "",
    "README": "Tea of the house.",
}
Take = Callable[[Path], object]


@pytest.fixture(params=["here", "client", "page"])
def door(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Workspace, Take]]:
    """A workspace that keeps token vectors, and an ingest into its collection ``notes``."""
    with ExitStack() as stack:
        workspace = stack.enter_context(open_workspace(tmp_path, keep_token_vectors=True))
        workspace.library.create_collection("notes")
        take: Take
        if request.param == "here":
            take = lambda folder: workspace.library.ingest_folder(folder, "notes", prune=True)  # noqa: E731
        elif request.param == "client":
            remote = stack.enter_context(connect(stack.enter_context(served(workspace))))
            take = lambda folder: remote.library.ingest_folder(folder, "notes", prune=True)  # noqa: E731
        else:

            def take(folder: Path) -> object:
                saved = saved_jobs(workspace)
                job = PageJobs(workspace, saved).ingest("notes", [folder], "documents", prune=True)
                saved.close(finish=True)
                assert job.state == "done", job.error
                return job

        yield workspace, take


def test_every_door_stores_the_same(door: tuple[Workspace, Take], corpus: Corpus) -> None:
    workspace, take = door
    folder = corpus(FILES)
    take(folder)
    assert workspace.library.list_sources("notes") == ["README", "black.md", "leaves/green.txt"]
    (folder / "black.md").unlink()
    (folder / "README").unlink()
    corpus({"leaves/green.txt": "Green tea in cold water."})
    take(folder)
    assert workspace.library.list_sources("notes") == ["leaves/green.txt"]
    assert [one.content for one in workspace.store.scan()] == ["Green tea in cold water."]


def test_every_door_keeps_token_vectors_in_step(door: tuple[Workspace, Take], corpus: Corpus) -> None:
    workspace, take = door
    folder = corpus({"a.txt": "Green tea in hot water."})
    take(folder)
    before = versions(workspace)
    assert len(before) == 1
    corpus({"a.txt": "Green tea in cold water."})
    take(folder)
    assert len(versions(workspace)) == 1
    assert versions(workspace) != before


def versions(workspace: Workspace) -> set[str]:
    with closing(_token_file(workspace.path_of(workspace.settings.data_dir))) as file:
        return set(file.versions())


def test_report_survives_json() -> None:
    report = IngestReport(added=["a"], unread={".pages": 2}, chunks=3)
    values = json.loads(json.dumps(report_as_mapping(report, "notes")))
    assert report_from_mapping(values, error_of) == report


def test_cancelled_ingest_keeps_what_is_whole_and_reports_it(workspace: Workspace) -> None:
    class StopError(RagistryError):
        pass

    class AfterTwo(IngestObserver):
        def progress(self, source_file: str, done: int, total: int) -> None:
            if done == 2:
                raise StopError

    texts: list[Any] = [SourceText(f"Text number {number}. " * 500, f"{number}.txt") for number in range(4)]
    plan = IngestPlan("notes", texts)
    with pytest.raises(StopError):
        workspace.library.carry_out(plan, observer=AfterTwo())
    assert workspace.library.list_sources("notes") == sorted(plan.report.added)
    assert len(plan.report.added) < 4
