"""The command as a shell runs it: its own process, its own terminal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import process

SHOUT = '''\
class Shout:
    """Search with the query in capitals."""

    def __init__(self, config, *, base):
        self.base = base

    def retrieve(self, query, **options):
        return self.base.retrieve(query.upper(), **options)
'''
TECHNIQUES = """\
techniques:
  naive: {use: naive}
  shout: {use: "shout:Shout", base: naive}
"""


@pytest.fixture
def tea(tmp_path: Path) -> Path:
    path = tmp_path / "tea.txt"
    path.write_text("Steep green tea in water of eighty degrees.", encoding="utf-8")
    return path


@pytest.mark.usefixtures("configured")
def test_an_empty_store_is_said_to_be_empty_once(tmp_path: Path) -> None:
    done = process("search", "tea", "--technique", "hybrid", cwd=tmp_path)
    assert done.code == 0
    assert done.err.count("the store is empty") == 1


def on_a_terminal(*words: object, cwd: Path) -> tuple[int, str]:
    """Exit code of a command, and what it writes on the terminal that is its standard error."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "ragistry", *map(str, words)]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=theirs, cwd=cwd, env=os.environ | {"TERM": "xterm"}
    ) as child:
        os.close(theirs)
        seen = bytearray()
        while part := _read(ours):
            seen += part
        os.close(ours)
    return child.returncode, seen.decode(errors="replace")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # Linux says so when the other end is closed
        return b""


def test_a_bar_is_drawn_on_a_terminal_and_nowhere_else(tmp_path: Path, tea: Path) -> None:
    code, seen = on_a_terminal("ingest", tea, "--collection", "notes", cwd=tmp_path)
    assert code == 0
    assert "━" in seen
    assert "0/1" in seen
    assert "tea.txt" in seen
    assert seen.endswith("\x1b[2K"), "the bar is taken away at the end"
    assert on_a_terminal("ingest", tea, "--json", cwd=tmp_path) == (0, ""), "nor for a program"
    assert process("ingest", tea, cwd=tmp_path).err == ""


def test_a_technique_in_a_file_of_the_workspace_is_found(tmp_path: Path, tea: Path) -> None:
    workspace, elsewhere = tmp_path / "workspace", tmp_path / "elsewhere"
    (workspace / "config").mkdir(parents=True)
    elsewhere.mkdir()
    (workspace / "shout.py").write_text(SHOUT, encoding="utf-8")
    (workspace / "config" / "techniques.yaml").write_text(TECHNIQUES, encoding="utf-8")
    assert process("ingest", tea, "--collection", "notes", cwd=workspace).code == 0
    script = Path(sys.executable).with_name("ragistry")  # unlike `python -m`, it has no current folder on its path
    search = ["search", "how hot", "-t", "shout", "--json"]
    for command, cwd in (
        ([script, *search], workspace),
        ([script, "--workspace", workspace, *search], elsewhere),
        ([script, *search, "--workspace", "../workspace"], elsewhere),
    ):
        done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False, timeout=100)
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert answer["total_results"] == 1
        assert answer["trace"][0]["name"] == "shout"
