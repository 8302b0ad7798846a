"""One process at a time on a directory."""

from __future__ import annotations

import json
import os

import pytest

from ragistry.errors import StoreLockedError
from ragistry.stores.lock import hold, release
from tests.stores.scripts import run, start

HOLD = """
import sys, time
from pathlib import Path
from ragistry.stores.lock import hold
hold(Path(sys.argv[1]), 0)
print("held", flush=True)
time.sleep(float(sys.argv[2]))
"""


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "chroma"


def test_the_holder_is_named(directory):
    with start(HOLD, directory, 60) as other:
        other.stdout.readline()
        with pytest.raises(StoreLockedError, match=rf"process {other.pid} on '.+' \('-c .*'\); end that process"):
            hold(directory, 0.1)
        other.kill()


def test_a_killed_holder_lets_go(directory):
    with start(HOLD, directory, 60) as other:
        other.stdout.readline()
        other.kill()
    hold(directory, 1)
    assert json.loads(directory.with_name("chroma.holder").read_text())["pid"] == os.getpid()
    release(directory)


def test_a_short_wait_is_enough_for_a_short_holder(directory):
    with start(HOLD, directory, 0.3) as other:
        other.stdout.readline()
        hold(directory, 30)
    release(directory)


def test_the_users_of_one_process_share_it_and_the_last_gives_it_back(directory):
    hold(directory, 0)
    hold(directory, 0)
    release(directory)
    with pytest.raises(AssertionError, match="StoreLockedError"):
        run(HOLD, directory, 0)
    release(directory)
    release(directory)
    assert run(HOLD, directory, 0) == "held\n"


def test_nothing_is_left_behind_but_the_lock_file(directory):
    hold(directory, 0)
    release(directory)
    assert [path.name for path in directory.parent.iterdir()] in ([], ["chroma.lock"])


def test_an_unreadable_note_is_no_obstacle(directory):
    with start(HOLD, directory, 60) as other:
        other.stdout.readline()
        directory.with_name("chroma.holder").write_text("garbage")
        with pytest.raises(StoreLockedError, match="another process"):
            hold(directory, 0.1)
        other.kill()
