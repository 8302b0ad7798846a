"""Programs that tests start end by Ctrl-C, also if the tests run in the background."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TEST = """
import signal, subprocess, sys

def test_started_program():
    code = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True\\n"
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the shell of POSIX ignores SIGINT in the background")
@pytest.mark.parametrize("words", [[], ["-n", "1"]], ids=["one process", "workers"])
def test_ctrl_c_reaches_programs_of_background_run(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "test_inner.py").write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-p", "tests.signals", "-p", "no:cacheprovider", *words]
    command += ["-c", str(ROOT / "pyproject.toml"), str(tmp_path)]
    background = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command]
    done = subprocess.run(background, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
