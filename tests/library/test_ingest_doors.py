"""An ingest does and reports the same in this process, through a client, and as a job of the page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from ragistry import Workspace, connect, open_workspace
from ragistry.client.connection import error_of
from ragistry.errors import RagistryError
from ragistry.library.ingest.methods import IngestObserver
from ragistry.library.ingest.plan import IngestPlan
from ragistry.library.ingest.report import IngestReport, report_as_mapping, report_from_mapping
from ragistry.library.ingest.source import SourceText
from ragistry.server.access import Tokens
from ragistry.server.app import saved_jobs
from ragistry.web.jobs import PageJobs
from ragistry.workspace import _token_file
from tests.cli.conftest import Run, ragistry  # noqa: F401, the fixture
from tests.conftest import Corpus
from tests.serving import served

FILES: dict[str, str | bytes] = {
    "black.md": "# Black tea\n\nBoiling water, four minutes.",
    "leaves/green.txt": "Green tea in water of eighty degrees.",
    "empty.md": "",
    "broken.pdf": b"%PDF-1.4 nothing",
    "old.pages": b"\xd0\xcf\x11\xe0",
    "README": "Tea of the house.",
    "id_rsa": "A key.",
    "photo.png": b"\x89PNG\r\n\x1a\n\0",
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


@pytest.mark.parametrize("is_remote", [False, True], ids=["here", "client"])
def test_token_vectors_of_replaced_text_are_deleted(tmp_path: Path, is_remote: bool) -> None:
    with open_workspace(tmp_path, keep_token_vectors=True) as workspace, ExitStack() as stack:
        workspace.library.create_collection("notes")
        workspace.library.ingest_text("Green tea in hot water.", "tea", "notes")
        before = versions(workspace)
        library = workspace.library
        if is_remote:
            library = stack.enter_context(connect(stack.enter_context(served(workspace)))).library
        library.ingest_text("Green tea in cold water.", "tea", "notes")
        assert len(before) == 1
        assert not before & versions(workspace)


def test_no_door_takes_the_configuration_of_the_workspace(door: tuple[Workspace, Take], corpus: Corpus) -> None:
    workspace, take = door
    models = "generators: {writer: {use: openai, model: small, url: http://127.0.0.1:9/v1, api_key: sk-secret}}\n"
    root = corpus({"a.txt": "Green tea in hot water.", "config/models.yaml": models}, ".")
    assert (root / "config" / "documents.yaml").is_file()
    take(root)
    assert workspace.library.list_sources("notes") == ["a.txt"]
    assert "sk-secret" not in " ".join(one.content for one in workspace.store.scan())


def test_no_door_takes_tokens(door: tuple[Workspace, Take], corpus: Corpus) -> None:
    """Those of another workspace, such as a copy: with tokens of its own the server would ask for one."""
    workspace, take = door
    copied = corpus({"a.txt": "Green tea in hot water."}, "copied")
    Tokens(copied).add("reader", ["read"])
    digest = Tokens(copied).entries()["reader"].sha256
    take(copied)
    assert workspace.library.list_sources("notes") == ["a.txt"]
    assert digest not in " ".join(one.content for one in workspace.store.scan())


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
    assert (here["unread"], here["left_out"]) == ({".pages": 1}, {"without suffix": 1, ".png": 1})


def comparable(values: dict[str, Any]) -> dict[str, Any]:
    """The failed source is named by its path here, and by its name on the server, which never sees the path."""
    failed = [one["type"] for one in values["failed"]]
    lists = {name: sorted(value) for name, value in values.items() if isinstance(value, list) and name != "failed"}
    return {**values, **lists, "failed": failed}


def test_command_server_and_client_report_the_same_fields(ragistry: Run, tmp_path: Path, corpus: Corpus) -> None:  # noqa: F811
    """A server reads no folder, so its report lacks only the values that the client adds."""
    folder = corpus(FILES)
    here = ragistry("-w", tmp_path, "ingest", folder, "--collection", "notes", "--create", "Notes", "--json").json
    (tmp_path / "served").mkdir()
    with open_workspace(tmp_path / "served") as workspace:
        workspace.library.create_collection("notes")
        with served(workspace) as url, connect(url) as remote:
            client = remote.library.ingest_folder(folder, "notes")
            job = httpx.get(f"{url}/v1/jobs", timeout=60).json()["jobs"][0]["report"]
    assert sorted(here) == sorted(job)
    assert [sorted(one) for one in here["failed"]] == [sorted(one) for one in job["failed"]]
    assert [here["unread"], client.unread, job["unread"]] == [{".pages": 1}, {".pages": 1}, {}]


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
