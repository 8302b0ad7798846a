"""Jobs: acknowledged ones survive a restart, a kill and a full disk; limits; cancelling; one server a workspace."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOSPC
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import pytest

from ragistry import Workspace, open_workspace
from ragistry.config.replacing import replace_text
from ragistry.server import jobs
from ragistry.server.gate import ServerLimits
from tests.cli.conftest import Run, ragistry  # noqa: F401, the fixture
from tests.messages import check_message
from tests.server.conftest import ended, serving

LONG = "\n\n".join(f"Paragraph {number} says something about tea, water and leaves." * 8 for number in range(40))


@contextmanager
def command(root: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """``ragistry serve`` in a process of its own, on a free port, and the address that it prints."""
    started = [sys.executable, "-m", "ragistry", "-w", str(root), "serve", "--port", "0", *words]
    with subprocess.Popen(started, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert line.startswith("serving: http://"), line + process.stderr.read()
            yield process, line.split()[1]
        finally:
            process.kill()
            process.communicate(timeout=30)


def send(url: str, files: dict[str, bytes], collection: str = "tea") -> dict[str, Any]:
    sent = [("files", (name, content)) for name, content in files.items()]
    answer = httpx.post(f"{url}/v1/ingest/files", data={"collection": collection}, files=sent, timeout=60)
    assert answer.status_code == 202, answer.text
    return answer.json()


def wait(url: str, job: dict[str, Any], *states: str) -> dict[str, Any]:
    """The job when it has left these states."""
    until = time.monotonic() + 90
    while job["state"] in (states or ("waiting", "running")) and time.monotonic() < until:
        time.sleep(0.02)
        job = httpx.get(f"{url}/v1/jobs/{job['id']}", timeout=60).json()
    return job


@pytest.fixture
def root(tmp_path: Path) -> Path:
    with open_workspace(tmp_path) as workspace:
        workspace.library.create_collection("tea")
    return tmp_path


def test_jobs_resume_after_a_restart(root: Path, ragistry: Run) -> None:  # noqa: F811
    with command(root) as (process, url):
        first = send(url, {"long.md": LONG.encode()})
        second = send(url, {"short.md": b"A short one.", "sub/other.md": b"Another."})
        wait(url, first, "waiting")
        process.kill()
        assert process.wait(timeout=60) == -signal.SIGKILL
    with command(root) as (process, url):
        wait(url, first, "waiting")
        ragistry("-w", root, "serve", "--port", 0).refused(1, process.pid)
        with open_workspace(root) as reader:
            reader.search("tea")
        process.terminate()
        assert process.wait(timeout=60) == 0
    with command(root) as (process, url):
        for job, names in ((first, ["long.md"]), (second, ["short.md", "sub/other.md"])):
            done = wait(url, job)
            assert done["state"] == "done", done
            assert sorted(done["report"]["added"] + done["report"]["skipped"]) == names
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (130, "")
    assert not list(root.glob(".ragistry/uploads/*"))
    with open_workspace(root) as workspace:
        assert workspace.library.list_sources("tea") == ["long.md", "short.md", "sub/other.md"]


def test_job_of_an_earlier_version_finds_its_uploads(workspace: Workspace) -> None:
    """Files of programs were in the folder of the job, and each file of the page in a folder of its own."""
    data = workspace.root / ".ragistry"
    dropped = data / "uploads" / "9d" / "dropped.md"
    sent = {"name": "sub/a.md", "file": "0.md", "text": False, "folder": "0123456789abcdef", "metadata": {}}
    requests: dict[str, dict[str, Any]] = {
        "1a": {"replace": False, "sources": [sent]},
        "1b": {
            "paths": [str(dropped)], "label": "dropped.md", "prune": False, "replace": False, "refused": [],
            "unneeded": [],
        },
    }  # fmt: skip
    for id, request in requests.items():
        values = {"id": id, "kind": "ingest", "owner": "this machine", "collection": "tea", "request": request}
        (data / "jobs" / id / "files").mkdir(parents=True)
        (data / "jobs" / id / "job.json").write_text(json.dumps(values | {"created": 5.0, "state": "running"}))
    for file in (data / "jobs" / "1a" / "files" / "0.md", dropped):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("A text of before.")
    with serving(workspace) as client:
        for id in requests:
            assert ended(client, {"id": id, "state": "waiting"})["report"]["chunks"] == 1
    known = {info.source_file: info.source_path for info in workspace.library.sources("tea")}
    assert (known["sub/a.md"], known["dropped.md"]) == ("", str(dropped))
    assert dropped.exists()
    assert not list((data / "jobs").glob("*/files"))


def test_start_deletes_uploads_that_were_not_acknowledged(workspace: Workspace) -> None:
    data = workspace.root / ".ragistry"
    for folder in (data / "jobs" / "1f.new" / "files", data / "uploads" / "1f"):
        folder.mkdir(parents=True)
    (data / "uploads" / "1f" / "0.md").write_text("Half")
    with serving(workspace) as client:
        assert client.get("/v1/jobs").json() == {"jobs": []}
    assert not list((data / "uploads").iterdir())
    assert [path.name for path in (data / "jobs").iterdir()] == ["lock"]


def test_other_hosts_than_loopback_need_a_token(root: Path, ragistry: Run) -> None:  # noqa: F811
    ragistry("-w", root, "serve", "--port", 0, "--host", "0.0.0.0").refused(1, "0.0.0.0")


def test_cancel_waiting_and_running_jobs(workspace: Workspace) -> None:
    with serving(workspace) as client:

        def add(name: str) -> dict[str, Any]:
            files = [("files", (name, LONG.encode()))]
            return client.post("/v1/ingest/files", data={"collection": "tea"}, files=files).json()

        running, waiting = add("running.md"), add("waiting.md")
        while client.get(f"/v1/jobs/{running['id']}").json()["state"] == "waiting":
            time.sleep(0.01)
        assert client.delete(f"/v1/jobs/{waiting['id']}").json()["state"] == "cancelled"
        client.delete(f"/v1/jobs/{running['id']}")
        assert ended(client, running)["state"] == "cancelled"
    assert all(info.waiting for info in workspace.library.sources("tea") if info.source_file == "running.md")
    with serving(workspace) as client:
        states = [job["state"] for job in client.get("/v1/jobs").json()["jobs"]]
        assert states == ["cancelled", "cancelled"]
        assert client.delete(f"/v1/jobs/{running['id']}").json()["state"] == "cancelled"
        assert client.get(f"/v1/jobs/{running['id']}").status_code == 404
    with serving(workspace) as client:  # an ended job is removed for good
        assert [job["id"] for job in client.get("/v1/jobs").json()["jobs"]] == [waiting["id"]]


def test_job_of_a_deleted_collection_fails(workspace: Workspace) -> None:
    with serving(workspace) as client:
        first = client.post("/v1/ingest/files", data={"collection": "tea"}, files=[("files", ("a.md", LONG.encode()))])
        second = client.post("/v1/ingest/files", data={"collection": "weather"}, files=[("files", ("b.md", b"b"))])
        assert client.delete("/v1/collections/weather").status_code == 200
        assert ended(client, second.json())["error"]["type"] == "CollectionNotFoundError"
        assert ended(client, first.json())["state"] == "done"


def test_large_bodies_and_too_many_files_are_refused(workspace: Workspace) -> None:
    with serving(workspace, ServerLimits(upload_megabytes=1)) as client:

        def status(content: Any, path: str = "/v1/ingest/files") -> int:
            headers = {"content-type": "multipart/form-data; boundary=x"}
            answer = client.post(path, content=content, headers=headers)
            assert answer.json()["error"]["type"] == "RequestError"
            return answer.status_code

        assert status(b"x" * 1_000_001) == 413
        head = b'--x\r\ncontent-disposition: form-data; name="files"; filename="a.md"\r\n\r\n'
        assert status(iter([head, *[b"x" * 100_000] * 11])) == 413, "a body that does not say its length"
        assert status(b"x" * 17_000_000, "/v1/search") == 413
        many = [("files", (f"{number}.md", b"x")) for number in range(1_001)]
        answer = client.post("/v1/ingest/files", data={"collection": "tea"}, files=many)
        assert answer.status_code == 413, answer.text
        assert client.get("/v1/jobs").json() == {"jobs": []}
    assert [path.name for path in (workspace.root / ".ragistry" / "jobs").iterdir()] == ["lock"]


DOCUMENTS: dict[str, dict[str, Any]] = {
    "files": {"data": {"collection": "tea"}, "files": [("files", ("a.md", b"x"))]},
    "texts": {"json": {"collection": "tea", "sources": [{"source": "a.md", "text": "x"}]}},
}


@pytest.mark.parametrize("kind", DOCUMENTS)
@pytest.mark.parametrize("step", ["file", "acknowledgement"])
def test_full_disk_refuses_the_upload(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, kind: str, step: str
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(ENOSPC, "No space left on device")

    with serving(workspace) as client:
        with monkeypatch.context() as patched:
            if step == "acknowledgement":
                patched.setattr(jobs, "replace_text", full)
            else:
                patched.setattr(*(shutil, "copyfileobj") if kind == "files" else (Path, "write_text"), full)
            answer = client.post(f"/v1/ingest/{kind}", **DOCUMENTS[kind])
        assert answer.status_code == 507
        check_message(answer.json()["error"]["message"])
        assert client.get("/v1/jobs").json() == {"jobs": []}
        assert [path.name for path in (workspace.root / ".ragistry" / "jobs").iterdir()] == ["lock"]


def test_job_keeps_its_files_until_its_end_is_saved(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, text: str) -> None:
        if '"state": "done"' in text:
            raise OSError(ENOSPC, "No space left on device")
        replace_text(path, text)

    folder = workspace.root / ".ragistry" / "uploads"
    with monkeypatch.context() as patched:
        patched.setattr(jobs, "replace_text", full)
        with serving(workspace) as client:
            job = client.post("/v1/ingest/files", **DOCUMENTS["files"]).json()
            assert ended(client, job)["state"] == "done"
    assert (folder / job["id"] / "0.md").exists()
    with serving(workspace) as client:
        again = ended(client, job)
        assert (again["state"], again["report"]["skipped"]) == ("done", ["a.md"])
        while (folder / job["id"]).exists():
            time.sleep(0.01)
    with monkeypatch.context() as patched:  # without a restart, the end is written with that of the next job
        patched.setattr(jobs, "replace_text", full)
        with serving(workspace) as client:
            job = client.post("/v1/ingest/files", **DOCUMENTS["files"]).json()
            ended(client, job)
            patched.undo()
            ended(client, client.post("/v1/ingest/files", **DOCUMENTS["files"]).json())
            while (folder / job["id"]).exists():
                time.sleep(0.01)


def test_busy_server_sends_retry_after(workspace: Workspace) -> None:
    with serving(workspace, ServerLimits(concurrency=1, queue=0, timeout=0.2)) as client:
        entered, release = Event(), Event()

        class Slow:
            """A technique that waits, as one over a slow server does."""

            def retrieve(self, query: str, *, top_k: Any = None, where: Any = None) -> list[Any]:
                entered.set()
                release.wait(30)
                return []

        workspace.registry.get("naive").technique = Slow()
        answers: list[Any] = []

        def ask() -> None:
            answers.append(client.post("/v1/search", json={"query": "tea", "technique": "naive"}))

        thread = Thread(target=ask)
        thread.start()
        assert entered.wait(30)
        second = client.post("/v1/search", json={"query": "tea", "technique": "naive"})
        thread.join(30)
        release.set()
        for answer in (second, *answers):
            assert (answer.status_code, answer.json()["error"]["type"]) == (503, "ServerBusyError")
            assert int(answer.headers["retry-after"]) >= 1
