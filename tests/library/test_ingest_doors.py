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
from ragistry.library.ingest_plan import IngestPlan
from ragistry.library.ingesting import IngestObserver
from ragistry.library.report import IngestReport, report_as_mapping, report_from_mapping
from ragistry.library.source import SourceText
from ragistry.web.jobs import Jobs
from ragistry.web.uploads import Uploads
from ragistry.workspace import _token_file
from tests.conftest import Corpus
from tests.serving import served

FILES: dict[str, str | bytes] = {
    "black.md": "# Black tea\n\nBoiling water, four minutes.",
    "leaves/green.txt": "Green tea in water of eighty degrees.",
    "empty.md": "",
    "broken.pdf": b"%PDF-1.4 nothing",
    "old.doc": b"\xd0\xcf\x11\xe0",
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
                jobs = Jobs(lambda: workspace.library, Uploads(tmp_path / "uploads"))
                job = jobs.add("notes", [folder], "documents", prune=True)
                jobs._worker.shutdown(wait=True)
                assert job.state == "done", job.error
                return job

        yield workspace, take


def test_every_door_stores_the_same(door: tuple[Workspace, Take], corpus: Corpus) -> None:
    workspace, take = door
    folder = corpus(FILES)
    take(folder)
    assert workspace.library.list_sources("notes") == ["black.md", "leaves/green.txt"]
    (folder / "black.md").unlink()
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


def test_here_and_client_report_the_same(tmp_path: Path, corpus: Corpus) -> None:
    folder, reports = corpus(FILES), []
    for kind in ("here", "client"):
        root = tmp_path / kind
        root.mkdir()
        with open_workspace(root) as workspace:
            workspace.library.create_collection("notes")
            if kind == "here":
                reports.append(workspace.library.ingest_folder(folder, "notes"))
            else:
                with served(workspace) as url, connect(url) as remote:
                    reports.append(remote.library.ingest_folder(folder, "notes"))
    here, client = (comparable(report_as_mapping(report, "notes")) for report in reports)
    assert here == client
    assert here["unread"] == {".doc": 1}


def comparable(values: dict[str, Any]) -> dict[str, Any]:
    """The failed source is named by its path here, and by its name on the server, which never sees the path."""
    failed = [one["type"] for one in values["failed"]]
    lists = {name: sorted(value) for name, value in values.items() if isinstance(value, list) and name != "failed"}
    return {**values, **lists, "failed": failed}


def test_report_survives_json() -> None:
    report = IngestReport(added=["a"], unread={".doc": 2}, chunks=3)
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
