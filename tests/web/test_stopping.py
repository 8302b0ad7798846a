"""How the page ends: soon, with what it wrote whole, and with a word on what the next start finishes."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from ragistry import open_workspace
from tests.cli.conftest import Run, ragistry  # noqa: F401, the fixture
from tests.messages import check_message
from tests.web.conftest import page_process, upload

SLOW = "".join(f"# Part {number}\n\n{f'Sentence {number} of a long book. ' * 40}\n\n" for number in range(600))
"""Minutes of work in one source."""


def begin(page: Page, address: str, home: Path, text: str = SLOW) -> None:
    (home / "book.md").write_text(text)
    page.goto(f"{address}collection/notes")
    upload(page, home / "book.md")
    expect(page.get_by_label("Progress of book.md")).to_be_visible()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with open_workspace(tmp_path) as workspace:
        workspace.library.create_collection("notes")
    return tmp_path


def test_ctrl_c_reports_incomplete_jobs(page: Page, home: Path) -> None:
    (home / "large.md").write_text("A line of text.\n" * 200_000)
    with page_process(home) as (server, address):
        begin(page, address, home)
        line = page.context.new_cdp_session(page)
        line.send("Network.enable")
        slow = {"offline": False, "latency": 20, "downloadThroughput": 2_000_000, "uploadThroughput": 50_000}
        line.send("Network.emulateNetworkConditions", slow)
        upload(page, home / "large.md")
        expect(page.get_by_text(re.compile("Sending.*[1-9]"))).to_be_visible()
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 130
    [said] = (home / "ui.log").read_text().splitlines()
    check_message(said)
    assert [place.name for place in (home / ".ragistry" / "uploads").glob("*/*")] == ["book.md"]


@pytest.mark.slow
def test_job_begun_on_the_page_is_finished_after_a_kill(page: Page, home: Path) -> None:
    with page_process(home) as (server, address):
        begin(page, address, home, SLOW[: len(SLOW) // 20])
        server.kill()
        server.wait(60)
    with page_process(home) as (_, address):
        page.goto(f"{address}collection/notes")
        ingests = page.get_by_role("status", name="Ingests")
        expect(ingests).to_contain_text("book.md")
        expect(ingests).to_contain_text(re.compile("1 added|1 skipped"))
        expect(page.get_by_role("row", name="book.md")).to_be_visible()
    [file] = (home / ".ragistry" / "uploads").glob("*/book.md")
    with open_workspace(home) as workspace:
        assert workspace.library.source("book.md", "notes").source_path == str(file.resolve())


@pytest.mark.slow
def test_others_may_write_beside_the_page_but_not_run_its_jobs(home: Path, ragistry: Run) -> None:  # noqa: F811
    with page_process(home) as (_, address):
        for words in (("serve",), ("serve", "--ui"), ("ui", "--no-browser")):
            ragistry("-w", home, *words, "--port", 0).refused(1, "jobs")
        with open_workspace(home) as workspace:
            workspace.library.ingest_text("Green tea.", "tea", "notes")
        [found] = httpx.get(f"{address}v1/collections", timeout=60).json()["collections"]
        assert (found["name"], found["source_count"]) == ("notes", 1)
        other = {"Origin": "http://evil.example"}
        assert httpx.delete(f"{address}v1/collections/notes", headers=other, timeout=60).status_code == 403


@pytest.mark.slow
def test_second_ctrl_c_ends_a_call_to_a_model(page: Page, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as slow:
        slow.bind(("127.0.0.1", 0))
        slow.listen()  # and never answers
        monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{slow.getsockname()[1]}")
        settings = home / "config" / "documents.yaml"
        settings.write_text("embed_model: nomic-embed-text\n" + settings.read_text())
        with page_process(home) as (server, address):
            begin(page, address, home)
            server.send_signal(signal.SIGINT)
            with pytest.raises(subprocess.TimeoutExpired):
                server.wait(4)  # uvicorn gives its windows three seconds
            server.send_signal(signal.SIGINT)
            assert server.wait(60) == 130
    check_message((home / "ui.log").read_text())
