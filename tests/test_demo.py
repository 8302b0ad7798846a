"""`make demo`: what the script prints, and what it refuses to overwrite."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PASSAGE = re.compile(r"^1\. (?P<source>\S+) \((?P<place>.*?)(?:, )?chunk \d+\)  (?P<kind>[a-z_0-9]+) \d+\.\d{3}$")
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
def test_the_demo_answers_by_several_techniques_with_the_place_and_the_score(tmp_path: Path) -> None:
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
            first = PASSAGE.match(answer[0])
            assert first, answer[0]
            assert len(answer[1].split()) > 10, "the passage itself stands below its place"
            found[line.removeprefix("search ")] = (first["source"], first["place"], first["kind"])
    expected = {
        "restore yesterday's backup": ("handbook/operations/backups.md", "Back up and restore", "dbsf"),
        "squash leaves": ("garden/powdery-mildew.txt", "", "dbsf"),
        "descaling": ("manuals/espresso-machine.pdf", "p.", "dbsf"),
        "LNT-1042": ("handbook/operations/troubleshooting.md", "LNT-1042", "bm25"),
        "frost": ("garden/frost-protection.txt", "", "mmr"),
    }
    assert len(found) == len(expected)
    for words, (source, place, kind) in expected.items():
        answer = next(answer for query, answer in found.items() if words in query)
        assert (answer[0], place in answer[1], answer[2]) == (source, True, kind), words


def test_the_demo_leaves_a_folder_alone_that_it_did_not_make(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("keep me", encoding="utf-8")
    done = demo(tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
