"""What is not closed fails the test that left it open, on every version of Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = """
import socket, sqlite3, subprocess, sys
from contextlib import closing

def test_database():
    sqlite3.connect(":memory:").execute("SELECT 1")

def test_file():
    open(__file__).read()

def test_socket():
    socket.socket().getsockname()

def test_pipe():
    subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE).wait()

def test_closed():
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("SELECT 1")
"""


def test_open_connection_file_socket_or_pipe_fails_its_test(tmp_path: Path) -> None:
    (tmp_path / "test_open.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "tests.leaks", "-p", "no:cacheprovider"]
    command += ["-c", str(ROOT / "pyproject.toml"), str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    failed = {
        line.split("::")[1].split()[0] for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))
    }
    assert failed == {"test_database", "test_file", "test_socket", "test_pipe"}, done.stdout + done.stderr
