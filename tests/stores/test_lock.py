"""`WriterLock`: one process at a time, whose threads take turns."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest

from ragistry.errors import StoreError, StoreLockedError
from ragistry.stores.lock import WriterLock
from tests.stores.scripts import run, start

HOLD = """
import sys, time
from pathlib import Path
from ragistry.stores.lock import WriterLock
WriterLock(Path(sys.argv[1]), "the place", wait=0).hold()
print("held", flush=True)
time.sleep(float(sys.argv[2]))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


def lock(path: Path, wait: float = 0.1) -> WriterLock:
    return WriterLock(path, "the place", wait=wait)


def test_the_error_names_the_holder_and_the_remedy(path: Path) -> None:
    with start(HOLD, path, 60) as other:
        assert other.stdout is not None
        other.stdout.readline()
        message = rf"the place is being written by process {other.pid} on '.+' \('-c .*'\); end that process, or wait"
        with pytest.raises(StoreLockedError, match=message):
            lock(path).hold()
        path.with_name("lock.holder").write_text("garbage")
        with pytest.raises(StoreLockedError, match="another process"):
            lock(path).hold()
        with pytest.raises(StoreLockedError, match="; ask the owner"):
            WriterLock(path, "the place", wait=0, remedy="ask the owner").hold()
        other.kill()


def test_a_killed_holder_frees_the_lock(path: Path) -> None:
    with start(HOLD, path, 60) as other:
        assert other.stdout is not None
        other.stdout.readline()
        other.kill()
    mine = lock(path, 1)
    mine.hold()
    assert json.loads(path.with_name("lock.holder").read_text())["pid"] == os.getpid()
    mine.release()
    assert [each.name for each in path.parent.iterdir()] in ([], ["lock"])


def test_a_short_wait_is_enough_for_a_short_holder(path: Path) -> None:
    with start(HOLD, path, 0.3) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with lock(path, 30).writing():
            pass


def test_locks_of_one_process_share_it_until_the_last_release(path: Path) -> None:
    one, other = lock(path), lock(path)
    one.hold()
    with other.writing(), other.writing():
        one.release()
        with pytest.raises(AssertionError, match="StoreLockedError"):
            run(HOLD, path, 0)
    assert run(HOLD, path, 0) == "held\n"


def test_threads_take_turns(path: Path) -> None:
    inside, most = [], []

    def work() -> None:
        with lock(path).writing():
            inside.append(1)
            time.sleep(0.01)
            most.append(len(inside))
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 8


def test_a_folder_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="the place cannot be locked for writing: .*; nothing was changed"):
        lock(tmp_path / "file" / "lock").hold()
