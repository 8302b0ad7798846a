"""`WriterLock`: one process at a time, whose threads take turns."""

from __future__ import annotations

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ragistry.errors import StoreError, StoreLockedError
from ragistry.stores.lock import WriterLock
from tests.messages import refused
from tests.stores.scripts import HOLD, run, started, tell


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


def lock(path: Path, wait: float = 0.1) -> WriterLock:
    return WriterLock(path, "the place", wait=wait)


def test_error_names_the_holder_and_the_remedy_and_a_killed_holder_frees_the_lock(path: Path) -> None:
    with started(HOLD, path) as other:
        with refused(StoreLockedError, "the place", f"process {other.pid} on ", "'-c"):
            lock(path).hold()
        path.with_name("lock.holder").write_text("garbage")
        with refused(StoreLockedError, "the place"):
            lock(path).hold()
    mine = lock(path, 30)
    mine.hold()
    assert json.loads(path.with_name("lock.holder").read_text())["pid"] == os.getpid()
    mine.release()
    assert [each.name for each in path.parent.iterdir()] in ([], ["lock"])


def test_writer_waits_for_a_short_holder(path: Path) -> None:
    with started(HOLD, path) as other:
        waiting = threading.Thread(target=lock(path, 60).hold)
        waiting.start()
        waiting.join(0.1)
        assert waiting.is_alive()
        tell(other)
        waiting.join(60)
        assert not waiting.is_alive()


def test_locks_of_one_process_share_it_until_the_last_release(path: Path) -> None:
    one, other = lock(path), lock(path)
    one.hold()
    with other.writing(), other.writing():
        one.release()
        with pytest.raises(AssertionError, match="StoreLockedError"):
            run(HOLD, path)
    assert run(HOLD, path) == "ready\n"


def test_threads_take_turns(path: Path) -> None:
    inside, most = [], []

    def work() -> None:
        with lock(path, 60).writing():
            inside.append(1)
            time.sleep(0.01)
            most.append(len(inside))
            inside.pop()

    with ThreadPoolExecutor(8) as pool:
        for each in [pool.submit(work) for _ in range(8)]:
            each.result()
    assert most == [1] * 8


def test_a_folder_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with refused(StoreError):
        lock(tmp_path / "file" / "lock").hold()
