"""Another process that has the right to write to a workspace's store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.stores.scripts import start

HOLDER = """
import sys, time
from ragistry.stores.local import LocalStore
store = LocalStore(sys.argv[1], exclusive=True)
print("held", flush=True)
time.sleep(100)
"""


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """The store of the workspace in this folder is written to by nobody else."""
    with start(HOLDER, root / ".ragistry") as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield
        finally:
            process.kill()
