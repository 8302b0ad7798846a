"""The command line, run in this process as the installed script runs it, or in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ragistry.cli import main


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def ragistry(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., Done]:
    """Run a command in the folder ``tmp_path``."""
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["ragistry", *map(str, words)])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run


@pytest.fixture
def configured(tmp_path: Path) -> None:
    """Makes ``tmp_path`` a workspace, in which nothing is stored yet."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "documents.yaml").write_text("n_results: 5\n", encoding="utf-8")


def process(*words: object, cwd: Path, **environment: str) -> Done:
    """Run a command in a process of its own, as a shell would."""
    import os

    done = subprocess.run(
        [sys.executable, "-m", "ragistry", *map(str, words)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ | environment,
        check=False,
        timeout=100,
    )
    return Done(done.returncode, done.stdout, done.stderr)
