"""``ragistry ingest`` of web pages and standard input; a folder that is followed; what the exit code tells."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import pytest

from tests.cli.conftest import Done
from tests.page_server import site

Run = Callable[..., Done]


def test_a_page_is_fetched_named_after_its_url_and_skipped_while_it_stays(ragistry: Run, tmp_path: Path) -> None:
    (tmp_path / "rain.txt").write_text("Rain gauges.", encoding="utf-8")
    with site() as served:
        url = served.put("/guide/tea?leaf=green", "<h1>Tea</h1><p>Steep it for two minutes.</p>")
        refused = ragistry("ingest", url, "--collection", "notes")
        assert (refused.code, served.asked) == (1, [])
        assert refused.err.startswith(f"failed: '{url}'")
        assert "leads to 127.0.0.1, which is not a public address; " in refused.err
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
        assert "answered 404" in gone.json["failed"][0]["error"]
    assert ragistry("doctor", "--json").json is not None


def test_standard_input_is_a_source_of_the_name_that_it_is_given(
    ragistry: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def typed(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))

    words = ["ingest", "-", "--collection", "notes"]
    typed("# Tea\n\nSteep it.")
    assert ragistry(*words, "--name", "tea.md", "--json").json["added"] == ["tea.md"]
    assert ragistry("search", "steep", "--json").json["documents"][0]["metadata"]["title"] == "Tea"
    typed("# Tea\n\nSteep it twice.")
    assert ragistry(*words, "--name", "tea.md", "--json").json["updated"] == ["tea.md"]
    typed("Tea.")
    assert "'tea.foo' has the suffix '.foo'" in ragistry(*words, "--name", "tea.foo").err
    for wrong in (words, ["ingest", ".", "--name", "tea.md", "--collection", "notes"]):
        assert (ragistry(*wrong).code, "--name" in ragistry(*wrong).err) == (2, True)


def test_the_exit_code_tells_whether_all_was_taken_in(ragistry: Run, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "tea.txt").write_text("Green tea.", encoding="utf-8")
    assert ragistry("ingest", "in", "--collection", "notes").code == 0
    (folder / "old.doc").write_bytes(b"junk")
    left_out = ragistry("ingest", "in", "--json")
    assert (left_out.code, left_out.json["unread"]) == (3, {".doc": 1})
    (folder / "bad.pdf").write_bytes(b"no PDF")
    assert ragistry("ingest", "in").code == 1
    with ZipFile(tmp_path / "old.zip", "w") as archive:
        archive.writestr("tea.md", "Green tea.")
        archive.writestr("old.doc", "junk")
    assert ragistry("ingest", "old.zip").code == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tea.txt", "--watch"], "--watch follows folders, and 'tea.txt' is none"),
        (["https://example.com/", "--watch"], "--watch follows folders, and 'https://example.com/' is none"),
        ([".", "--watch", "--json"], "--json cannot be combined with --watch"),
        (["https://example.com/", "--prune"], "--prune does nothing without a folder"),
        (["--list", "--watch"], "--watch cannot be combined with --list"),
    ],
)
def test_options_that_do_nothing_are_refused(ragistry: Run, tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "tea.txt").write_text("Green tea.", encoding="utf-8")
    done = ragistry("ingest", *words)
    assert (done.code, said in done.err) == (2, True)


@pytest.mark.skipif(sys.platform == "win32", reason="ended by SIGINT")
def test_what_changes_is_followed_until_ctrl_c(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / ".hidden").mkdir(parents=True)
    (folder / "tea.txt").write_text("Green tea.", encoding="utf-8")
    words = ["ingest", "in", "--collection", "notes", "--watch", "--prune", "--yes"]
    process = subprocess.Popen(
        [sys.executable, "-m", "ragistry", *words],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | {"COLUMNS": "200"},
    )  # fmt: skip
    lines: list[str] = []

    output: Any = process.stdout
    listener = Thread(target=lambda: lines.extend(iter(output.readline, "")))
    listener.start()

    def awaited(part: str) -> float:
        """Seconds until the next line, which must have this part."""
        start, known = time.monotonic(), len(lines)
        while len(lines) == known:
            assert process.poll() is None, lines
            assert time.monotonic() - start < 60, (part, lines)
            time.sleep(0.01)
        assert part in lines[known]
        return time.monotonic() - start

    try:
        awaited("notes: 1 added")
        if len(lines) == 1:
            awaited("watching: in; Ctrl-C ends")
        (folder / ".hidden" / "no.txt").write_text("Hidden.", encoding="utf-8")
        (folder / "new").mkdir()
        (folder / "new" / "rain.txt").write_text("Rain gauges.", encoding="utf-8")
        followed = awaited("notes: 1 added, 0 updated, 0 skipped, 0 deleted, 0 failed (1 chunk written)\n")
        (folder / "tea.txt").write_text("Black tea.", encoding="utf-8")
        awaited("notes: 0 added, 1 updated")
        (folder / "tea.txt").unlink()
        awaited("notes: 0 added, 0 updated, 0 skipped, 1 deleted")
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        listener.join()
        output.close()
    assert lines[-1].startswith("watched notes: 2 added, 1 updated, 0 skipped, 1 deleted, 0 failed")
    assert not any("Traceback" in line for line in lines)
    assert followed < 10, "2 s on a machine that has nothing else to do"
