"""How the page ends: soon, with what it wrote whole, and with a word on what it did not take in."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from ragistry import open_workspace
from ragistry.models.minilm import MiniLMEmbedder
from ragistry.web.jobs import STOPPED
from ragistry.web.site import Site
from ragistry.web.stoppable import TEXTS_AT_ONCE, Stoppable
from tests.web.test_collections import upload

SLOW = "".join(f"# Part {number}\n\n{f'Sentence {number} of a long book. ' * 40}\n\n" for number in range(600))
"""Minutes of work in one source."""


@contextmanager
def page_process(root: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """``ragistry ui`` with its standard error in ui.log, and its address."""
    command = [sys.executable, "-m", "ragistry", "-w", str(root), "ui", "--port", "0", "--no-browser", *words]
    with (
        (root / "ui.log").open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=root) as server,
    ):
        try:
            assert server.stdout is not None
            yield server, server.stdout.readline().split()[3]
        finally:
            server.kill()


def begin(page: Page, address: str, root: Path) -> None:
    (root / "book.md").write_text(SLOW)
    page.goto(f"{address}collection/notes")
    upload(page, root / "book.md")
    expect(page.get_by_label("Progress of book.md")).to_be_visible()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    with open_workspace(tmp_path) as workspace:
        workspace.library.create_collection("notes")
    return tmp_path


def test_vectors_are_the_same_where_they_can_be_stopped() -> None:
    embedder, calls = MiniLMEmbedder(), []
    texts = [f"Text {number}" for number in range(2 * TEXTS_AT_ONCE + 1)]
    made = Stoppable(embedder, lambda: calls.append(1))
    assert np.allclose(made.embed(texts), embedder.embed(texts), atol=1e-6)
    assert len(calls) == 3
    assert made.fingerprint == embedder.fingerprint
    assert made.count_tokens(["one two"]) == embedder.count_tokens(["one two"])


def test_a_job_ends_with_the_page_inside_of_a_long_source_too(root: Path) -> None:
    (root / "book.md").write_text(SLOW)
    with open_workspace(root) as workspace:
        site = Site(workspace, (root,))
        job = site.jobs.add("notes", [root / "book.md"], "book.md")
        while not job.stage:
            time.sleep(0.01)
        time.sleep(0.5)
        site.jobs.close()
        assert (job.state, job.error) == ("failed", STOPPED)
        assert workspace.library.count() == 0


def test_ctrl_c_says_what_is_not_taken_in_and_ends_soon(page: Page, root: Path) -> None:
    with page_process(root) as (server, address):
        begin(page, address, root)
        server.send_signal(signal.SIGINT)
        assert server.wait(30) == 130
    said = (root / "ui.log").read_text()
    assert "stopping: the current ingest ends after its next batch" in said
    assert "stopped: 'book.md' was not taken into 'notes', or only in part; add it again" in said
    assert "Traceback" not in said
    assert not list((root / ".ragistry" / "uploads").iterdir())


def trickle(server: socket.socket) -> None:
    """Answer one request with a byte now and then."""
    connection, _ = server.accept()
    with connection, suppress(OSError):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n")
        for _ in range(60):
            connection.sendall(b" ")
            time.sleep(0.5)


def test_a_second_ctrl_c_ends_what_waits_for_a_model(page: Page, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as slow:
        slow.bind(("127.0.0.1", 0))
        slow.listen()
        threading.Thread(target=trickle, args=(slow,), daemon=True).start()
        monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{slow.getsockname()[1]}")
        settings = root / "config" / "documents.yaml"
        settings.write_text("embed_model: nomic-embed-text\n" + settings.read_text())
        with page_process(root) as (server, address):
            begin(page, address, root)
            server.send_signal(signal.SIGINT)
            time.sleep(4)  # uvicorn gives its windows three seconds
            assert server.poll() is None
            server.send_signal(signal.SIGINT)
            assert server.wait(3) == 130  # the model still answers
    said = (root / "ui.log").read_text()
    assert "'book.md' was not taken into 'notes'" in said
    assert "Traceback" not in said


def test_a_signal_to_terminate_leaves_no_file_behind(page: Page, root: Path) -> None:
    with page_process(root) as (server, address):
        begin(page, address, root)
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 0
    assert not list((root / ".ragistry" / "uploads").iterdir())


def test_a_file_on_its_way_when_the_page_stops_leaves_no_traceback(page: Page, root: Path) -> None:
    (root / "large.md").write_text("A line of text.\n" * 200_000)
    with page_process(root) as (server, address):
        page.goto(f"{address}collection/notes")
        expect(page.get_by_text("Nothing in this collection yet.")).to_be_visible()
        line = page.context.new_cdp_session(page)
        line.send("Network.enable")
        slow = {"offline": False, "latency": 20, "downloadThroughput": 2_000_000, "uploadThroughput": 50_000}
        line.send("Network.emulateNetworkConditions", slow)
        upload(page, root / "large.md")
        expect(page.get_by_text("Sending")).to_be_visible()
        page.wait_for_timeout(1000)
        server.send_signal(signal.SIGINT)
        assert server.wait(30) == 130
    assert "Traceback" not in (root / "ui.log").read_text()
    assert "ERROR" not in (root / "ui.log").read_text()
