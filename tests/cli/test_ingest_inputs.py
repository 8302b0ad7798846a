"""``ragistry ingest`` of web pages, archives and standard input, and of a folder that is watched."""

from __future__ import annotations

import io
import os
import queue
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import pytest

from tests.cli.conftest import Run
from tests.conftest import Corpus
from tests.messages import check_message
from tests.page_server import site


def test_page_is_fetched_named_after_its_url_and_skipped_while_unchanged(ragistry: Run, corpus: Corpus) -> None:
    corpus({"rain.txt": "Rain gauges."}, folder=".")
    with site() as served:
        url = served.put("/guide/tea?leaf=green", "<h1>Tea</h1><p>Steep it for two minutes.</p>")
        done = ragistry("ingest", url, "--collection", "notes")
        assert (done.code, served.asked) == (1, [])
        check_message(done.err, url, "127.0.0.1")
        words = ["ingest", url, f"{url}#part", "rain.txt", "--collection", "notes", "--allow-private", "--json"]
        name = f"127.0.0.1-{url.split(':')[2].split('/')[0]}-guide-tea-leaf-green.html"
        first = ragistry(*words).json
        assert (first["added"], first["failed"]) == (["rain.txt", name], [])
        assert ragistry(*words).json["skipped"] == first["added"]
        found = ragistry("search", "steep", "--json").json["documents"][0]["metadata"]
        assert (found["source_url"], found["source"], found["title"]) == (url, url, "Tea")
        served.put("/guide/tea?leaf=green", "<h1>Tea</h1><p>Steep it for three minutes.</p>")
        assert ragistry(*words).json["updated"] == [name]
        served.pages.clear()
        gone = ragistry(*words)
        assert (gone.code, gone.json["failed"][0]["source"], gone.json["skipped"]) == (1, url, ["rain.txt"])
        check_message(gone.json["failed"][0]["error"], "404")


def test_standard_input_is_a_source_with_the_given_name(ragistry: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def typed(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))

    words = ["ingest", "-", "--collection", "notes"]
    typed("# Tea\n\nSteep it.")
    assert ragistry(*words, "--name", "tea.md", "--json").json["added"] == ["tea.md"]
    assert ragistry("search", "steep", "--json").json["documents"][0]["metadata"]["title"] == "Tea"
    typed("# Tea\n\nSteep it twice.")
    assert ragistry(*words, "--name", "tea.md", "--json").json["updated"] == ["tea.md"]
    typed("Tea.")
    check_message(ragistry(*words, "--name", "tea.pages").err, "'tea.pages'", "'.pages'")


def test_archive_with_a_file_that_is_not_read_has_exit_code_3(ragistry: Run, tmp_path: Path) -> None:
    with ZipFile(tmp_path / "old.zip", "w") as archive:
        archive.writestr("tea.md", "Green tea.")
        archive.writestr("old.pages", "junk")
    assert ragistry("ingest", "old.zip", "--collection", "notes").code == 3


@pytest.mark.skipif(sys.platform == "win32", reason="ended by SIGINT")
def test_watched_folder_is_followed_until_ctrl_c(corpus: Corpus, tmp_path: Path) -> None:
    files = {"tea.txt": "Green tea.", ".hidden/yes.txt": "Hidden.", ".gitignore": "old", "old/snow.txt": "Snow."}
    folder = corpus(files, folder="in")
    words = ["ingest", "in", "--collection", "notes", "--watch", "--prune", "--yes"]
    process = subprocess.Popen(
        [sys.executable, "-m", "ragistry", *words],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | {"COLUMNS": "200"},
    )  # fmt: skip
    output: Any = process.stdout
    lines: queue.Queue[str] = queue.Queue()
    listener = Thread(target=lambda: [lines.put(line) for line in output])
    listener.start()
    try:
        said = {lines.get(timeout=60)[:14] for _ in range(3)}
        assert said == {"left out: 1 ig", "notes: 1 added", "watching: in; "}
        corpus({".hidden/no.txt": "Hidden.", "new/rain.txt": "Rain gauges."}, folder="in")
        expected = "notes: 1 added, 0 updated, 0 skipped, 0 deleted, 0 failed (1 chunk written)\n"
        assert lines.get(timeout=60) == expected
        corpus({".gitignore": ""}, folder="in")
        assert lines.get(timeout=60).startswith("notes: 1 added")
        (folder / "tea.txt").write_text("Black tea.", encoding="utf-8")
        assert lines.get(timeout=60).startswith("notes: 0 added, 1 updated")
        (folder / "tea.txt").unlink()
        assert lines.get(timeout=60).startswith("notes: 0 added, 0 updated, 0 skipped, 1 deleted")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        listener.join()
        output.close()
    rest = [lines.get() for _ in range(lines.qsize())]
    assert rest[-1].startswith("watched notes: 3 added, 1 updated, 2 skipped, 1 deleted, 0 failed"), rest
    assert all(line.startswith("notes: ") for line in rest[:-1]), "no traceback"
