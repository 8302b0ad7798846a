"""`make demo`: what the script prints, and what it refuses to overwrite."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
OURS = ("RAGISTRY_", "CHROMA_", "OLLAMA_", "DOCPROC_", "RAG_")


def demo(workspace: Path) -> subprocess.CompletedProcess[str]:
    """The script with the `ragistry` of the interpreter that runs the tests."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    return subprocess.run(
        ["bash", str(ROOT / "examples" / "demo.sh"), str(workspace)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=280,
    )


@pytest.mark.timeout(300)
def test_the_demo_answers_by_several_techniques_with_title_place_and_text(tmp_path: Path) -> None:
    done = demo(tmp_path / "demo")
    assert done.returncode == 0, done.stderr
    _, *commands = done.stdout.split("\n$ ragistry ")
    ingested = [command for command in commands if command.startswith("ingest")]
    assert len(ingested) == 3
    assert all(" 0 failed" in command for command in ingested)
    found = {}
    for command in commands:
        line, *answer = command.splitlines()
        if line.startswith("search"):
            title, place, *text = answer
            assert len(" ".join(text).split()) > 10, "the lines that answer stand below their place"
            found[line.removeprefix("search ")] = (title, place)
    expected = {
        "restore yesterday's backup": ("1. Back up and restore", "   handbook · operations/backups.md · "),
        "squash leaves": ("1. powdery-mildew.txt", "   garden"),
        "descaling": ("1. Corvo EM-62 espresso machine", "   manuals · espresso-machine.pdf · p. "),
        "LNT-1042": ("1. Troubleshooting and error codes", "   handbook · operations/troubleshooting.md · "),
        "frost": ("1. frost-protection.txt", "   garden"),
    }
    assert len(found) == len(expected)
    for words, (title, place) in expected.items():
        answer = next(answer for query, answer in found.items() if words in query)
        assert answer[0] == title, words
        assert answer[1].startswith(place), words


def test_the_demo_leaves_a_folder_alone_that_it_did_not_make(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("keep me", encoding="utf-8")
    done = demo(tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
