"""``ragistry demo``: what it shows, where it goes on, and what it refuses to overwrite."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.cli.conftest import Done, ragistry  # noqa: F401, the fixture

ROOT = Path(__file__).resolve().parents[1]
OURS = ("RAGISTRY_", "CHROMA_", "OLLAMA_", "DOCPROC_", "RAG_")


def shown(printed: str) -> dict[str, str]:
    """What each command of the demo printed, by the command."""
    _, *commands = printed.split("\n$ ragistry ")
    return dict(command.split("\n", 1) for command in commands)


@pytest.mark.timeout(300)
def test_the_demo_shows_searches_a_comparison_and_the_page_and_goes_on_where_it_was(
    ragistry: Callable[..., Done],  # noqa: F811
    tmp_path: Path,
) -> None:
    done = ragistry("demo", "shown")
    assert done.code == 0, done.err
    commands = shown(done.out)
    ingested = [answer for command, answer in commands.items() if command.startswith("ingest")]
    assert len(ingested) == 3
    assert all(" 0 failed" in answer for answer in ingested)
    found = {}
    for command, answer in commands.items():
        if command.startswith("search"):
            title, place, *text = answer.splitlines()
            assert len(" ".join(text).split()) > 10, "the lines that answer stand below their place"
            found[command] = (title, place)
    expected = {
        "restore yesterday's backup": ("1. Back up and restore", "   handbook · operations/backups.md · "),
        "descaling": ("1. Corvo EM-62 espresso machine", "   manuals · espresso-machine.pdf · p. "),
        "LNT-1042": ("1. Troubleshooting and error codes", "   handbook · operations/troubleshooting.md · "),
    }
    assert len(found) == len(expected)
    for words, (title, place) in expected.items():
        answer = next(answer for query, answer in found.items() if words in query)
        assert answer[0] == title, words
        assert answer[1].startswith(place), words
    [comparison] = [answer for command, answer in commands.items() if command.startswith("compare")]
    assert "22 queries" in comparison
    assert re.search(r"^ *hybrid +0\.\d", comparison, flags=re.MULTILINE)
    assert "next:\n  cd shown\n" in comparison

    with (tmp_path / "shown" / "garden" / "watering.txt").open("a", encoding="utf-8") as file:
        file.write("\nWater tomatoes in the morning.\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    command = [sys.executable, "-m", "ragistry", "demo", "shown", "--ui", "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=environment) as page:
        assert page.stdout is not None
        lines: list[str] = []
        while not (lines and lines[-1].startswith("Ragistry is at ")):
            lines.append(page.stdout.readline())
            assert lines[-1], "the page did not start:\n" + "".join(lines)
        assert "garden: 0 added, 1 updated, 12 skipped" in "".join(lines)
        with urlopen(lines[-1].split()[3], timeout=30) as answer:
            assert "Ragistry" in answer.read().decode()
        page.send_signal(signal.SIGTERM)
    assert page.returncode == 0


def test_the_demo_leaves_a_folder_alone_that_it_did_not_make(
    ragistry: Callable[..., Done],  # noqa: F811
    tmp_path: Path,
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("keep me", encoding="utf-8")
    done = ragistry("demo", "mine")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: 'mine' exists and is not from an earlier demo")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]


@pytest.mark.parametrize(
    ("target", "development"), [("install", False), ("demo", False), ("test", True), ("check", True)]
)
def test_using_needs_no_tools_of_development(target: str, development: bool) -> None:
    planned = subprocess.run(
        ["make", "--dry-run", "--always-make", target], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert "--editable .\n" in planned
    assert ("[dev]" in planned) is development
