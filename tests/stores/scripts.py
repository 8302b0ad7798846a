"""Python in a process of its own, for what one process cannot show."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOLD = """
import sys
from pathlib import Path
from ragistry.stores.lock import WriterLock
WriterLock(Path(sys.argv[1]), "the place", wait=0).hold()
print("ready", flush=True)
sys.stdin.readline()
"""
"""Holds the lock file until it gets a line."""
PUT = "import os, sys; from tests.stores.local_stores import *; put(LocalStore(sys.argv[1]), {}); os._exit(0)"
"""Ends as a killed process does, after it wrote this source, which its indexes lack."""


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT,
    )  # fmt: skip


def run(code: str, *arguments: object, ends: int = 0) -> str:
    """What the script prints; it must end with this code, a negative one for a signal."""
    with start(code, *arguments) as process:
        output, _ = process.communicate(timeout=60)
    assert process.returncode == ends, output
    return output


@contextmanager
def started(code: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A process that has printed ``ready``; it may wait for a line, see `tell`."""
    with start(code, *arguments) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line == "ready\n", line + process.stdout.read()
        try:
            yield process
        finally:
            process.kill()


def tell(process: subprocess.Popen[str], line: str = "go") -> None:
    """Write a line to the process."""
    assert process.stdin is not None
    print(line, file=process.stdin, flush=True)
