"""A process that forks while its threads write: the child opens the store anew and is no worse off than another."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stores.scripts import run

FORKED = """
import os, sys, threading, time
from ragistry.errors import StoreError
from tests.stores.local_stores import *
folder, what = sys.argv[1:]
store = LocalStore(folder, lock_timeout=30)
put(store, version_of("a.md", 1))
stop = threading.Event()

def write() -> None:
    version = 1
    while not stop.wait(0.02):
        version += 1
        put(store, version_of("a.md", version, 60))

def in_child() -> None:
    deadline = threading.Timer(20, os._exit, [9])
    deadline.daemon = True
    deadline.start()
    opened = store if what == "inherited" else LocalStore(folder, lock_timeout=10)
    put(opened, version_of(f"{os.getpid()}.md", 1))
    assert opened.count() > 3 and opened.search_text("source")
    os._exit(0)

thread = threading.Thread(target=write)
thread.start()
try:
    for _ in range(4):
        time.sleep(0.05)
        child = os.fork()
        if child == 0:
            try:
                in_child()
            except BaseException as error:
                os.write(1, repr(error).encode())
                os._exit(1)
        print(os.waitpid(child, 0)[1])
finally:
    stop.set()
    thread.join()
print(len({name for _, name in held(store)}), store.verify())
"""


@pytest.mark.parametrize("what", ["anew", "inherited"])
def test_a_child_writes_whatever_its_parent_was_at(quick_path: Path, what: str) -> None:
    output = run(FORKED, quick_path / "local", what).splitlines()
    assert [line for line in output if "fork" not in line] == ["0"] * 4 + ["5 []"]


HELD = """
import os, sys, threading, time
from ragistry.errors import StoreLockedError
from tests.stores.local_stores import *
store = LocalStore(sys.argv[1])
taken, done = threading.Event(), threading.Event()

def write() -> None:
    with store._state.locked():
        taken.set()
        done.wait()

thread = threading.Thread(target=write)
thread.start()
taken.wait()
child = os.fork()
if child == 0:
    opened, start = LocalStore(sys.argv[1], lock_timeout=0.5), time.monotonic()
    try:
        put(opened, version_of("b.md", 1))
    except StoreLockedError as error:
        print(str(os.getppid()) in str(error), time.monotonic() - start < 5, flush=True)
    os._exit(0)
os.waitpid(child, 0)
try:
    LocalStore(sys.argv[1], lock_timeout=0)  # the child's end did not let go of the lock
    from subprocess import run
    code = "import sys; from tests.stores.local_stores import *; put(LocalStore(sys.argv[1]), version_of('b.md', 1))"
    print(run([sys.executable, "-c", code, sys.argv[1]], capture_output=True, text=True).returncode)
finally:
    done.set()
    thread.join()
put(store, version_of("c.md", 1))
"""


def test_a_child_waits_no_longer_than_its_time_out(quick_path: Path) -> None:
    output = run(HELD, quick_path / "local").splitlines()
    assert [line for line in output if "fork" not in line] == ["True True", "1"]


TAKEN = """
import os, sys, threading
from ragistry.stores.flushing import Flusher
from ragistry.stores.exact import Matrices
from ragistry.stores.sketch import Sketches
from tests.stores.local_stores import *
store = LocalStore(sys.argv[1])
put(store, version_of("a.md", 1))
assert store.search_text("source")
lexical = store._indexes.lexical.present
flusher, matrices, sketches = Flusher(lambda: None), Matrices(1), Sketches()
locks = [
    flusher._waits, matrices._lock, sketches._lock, lexical._reading, lexical._writing, store._state.database._pool
]
taken, done = threading.Event(), threading.Event()

def take() -> None:
    for lock in locks:
        lock.acquire()
    taken.set()
    done.wait()
    for lock in locks:
        lock.release()

thread = threading.Thread(target=take)
thread.start()
taken.wait()
child = os.fork()
if child == 0:
    got = [lock.acquire(timeout=0) if lock is not flusher._waits else lock.acquire(False) for lock in locks]
    os._exit(got != [True] * len(locks))  # told by its end: its words would mix with Python's warning of forks
print(os.waitpid(child, 0)[1] == 0)
done.set()
thread.join()
"""


def test_in_a_child_nobody_has_a_lock_that_a_thread_of_its_parent_had(quick_path: Path) -> None:
    output = run(TAKEN, quick_path / "local").splitlines()
    assert [line for line in output if "fork" not in line] == ["True"]


INDEXING = """
import os, signal, sys, threading, time
from ragistry.trace import collect
from tests.stores.local_stores import *
store = LocalStore(sys.argv[1], lock_timeout=30)
put(store, version_of("a.md", 1))
stop, children = threading.Event(), []

def write_and_search() -> None:
    version = 1
    while not stop.is_set():
        version += 1
        put(store, version_of("a.md", version))
        store.search_text("source")

thread = threading.Thread(target=write_and_search)
thread.start()
try:
    for number in range(8):
        time.sleep(0.03 + 0.011 * number)
        child = os.fork()
        if child == 0:
            time.sleep(60)  # a worker that has nothing to do with the store
            os._exit(0)
        children.append(child)
    stop.set()
    thread.join()
    put(store, version_of("last.md", 1))
    with collect() as trace:
        found = store.search_text("source", 1_000)
    names = {document.metadata["source_file"] for document in found}
    print(names == {"a.md", "last.md"}, [stage.degraded for stage in trace.stages() if stage.degraded])
finally:
    stop.set()
    for child in children:  # whatever happened: they keep our output open
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
print(store.verify())
"""


def test_a_child_takes_nothing_of_an_index_that_its_parent_was_writing(quick_path: Path) -> None:
    output = run(INDEXING, quick_path / "local").splitlines()
    assert [line for line in output if "fork" not in line] == ["True []", "[]"]


READING = """
import fcntl, os, signal, sys
from contextlib import closing
from tests.stores.local_stores import *
path = sys.argv[1]
with closing(LocalStore(path)) as store:
    put(store, version_of("a.md", 1))
    store.search_text("source")
lock = f"{path}/lexical/.tantivy-meta.lock"
held = open(lock, "w")  # as a thread of tantivy's does for a moment
fcntl.flock(held, fcntl.LOCK_EX)
told, tell = os.pipe()
child = os.fork()
if child == 0:
    os.write(tell, b"!")
    signal.pause()
try:
    os.read(told, 1)
    held.close()
    with open(lock, "w") as mine:
        fcntl.flock(mine, fcntl.LOCK_EX | fcntl.LOCK_NB)
    print("had")
finally:
    os.kill(child, signal.SIGKILL)
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="tells what is open by /proc")
def test_a_child_keeps_no_lock_that_a_thread_had_for_a_moment(quick_path: Path) -> None:
    assert [line for line in run(READING, quick_path / "local").splitlines() if "fork" not in line] == ["had"]
