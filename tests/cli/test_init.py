"""``ragistry init``: what it asks in a terminal, and when it asks nothing."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import Done

Run = Callable[..., Done]


def typed(answers: str, *words: object, cwd: Path) -> tuple[int, str]:
    """Exit code of a command in a terminal where the answers are typed, and all that the terminal shows."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "ragistry", *map(str, words)]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd) as child:
        os.close(theirs)
        os.write(ours, answers.encode())
        seen = bytearray()
        while part := _read(ours):
            seen += part
        os.close(ours)
    return child.returncode, seen.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # Linux says so when the other end is closed
        return b""


def test_init_asks_for_documents_and_a_name_and_takes_them_in(tmp_path: Path) -> None:
    (tmp_path / "My Notes").mkdir()
    (tmp_path / "My Notes" / "tea.md").write_text("Steep green tea in water of eighty degrees.", encoding="utf-8")
    code, seen = typed("nowhere\nMy Notes\n\n", "init", "library", cwd=tmp_path)
    assert code == 0, seen
    assert "no such file or folder: 'nowhere'" in seen
    assert "Name of the collection [My Notes]: " in seen
    assert "my-notes: 1 added" in seen
    assert seen.endswith('next: cd library && ragistry search "your question"\n')
    assert (tmp_path / "library" / ".ragistry").is_dir()


def test_init_takes_nothing_in_where_the_answer_is_enter(tmp_path: Path) -> None:
    code, seen = typed("\n", "init", cwd=tmp_path)
    assert (code, seen.count("Folder of your documents")) == (0, 1)
    assert seen.endswith("next: ragistry ingest FOLDER --collection NAME\n")
    assert not (tmp_path / ".ragistry").exists()
    code, seen = typed("", "init", cwd=tmp_path)
    assert "Folder of your documents" not in seen, "the workspace is there already"


def test_init_asks_nothing_with_yes_or_without_a_terminal(ragistry: Run, tmp_path: Path) -> None:
    code, seen = typed("", "init", "--yes", "a", cwd=tmp_path)
    assert (code, "Folder of your documents" in seen) == (0, False)
    done = ragistry("init", "b")
    assert done.out.endswith("next: ragistry ingest FOLDER --collection NAME\n")
    assert "Folder of your documents" not in done.out
