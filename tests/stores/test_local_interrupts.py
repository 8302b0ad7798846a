"""Ctrl-C in the middle of a write or a search: the next one goes on, and sees what was written."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from ragistry.stores import lock, state
from ragistry.stores.interrupts import uninterrupted
from ragistry.stores.local import LocalStore
from tests.stores.local_stores import check, put, truth_of, version_of
from tests.stores.scripts import run


@pytest.fixture
def store(quick_path: Path) -> Iterator[LocalStore]:
    with closing(LocalStore(quick_path / "local", lock_timeout=0.2)) as opened:
        put(opened, version_of("a.md", 1))
        yield opened


def test_the_folders_lock_is_let_go_where_the_interrupt_comes_as_it_is_taken(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        lock.hold(*arguments, **options)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(state, "hold", interrupted)
        with pytest.raises(KeyboardInterrupt):
            put(store, version_of("b.md", 1))
    assert lock.users(store.folder / "store") == 0
    put(store, version_of("b.md", 1))


def test_a_transaction_that_nobody_could_end_is_given_up(store: LocalStore) -> None:
    """As where the traceback of the interrupt, which a notebook keeps, keeps the write's block from its end."""
    block = store._state.database.write()
    connection = block.__enter__()
    connection.execute("DELETE FROM chunks")
    put(store, version_of("b.md", 1))
    block.gen.close()  # type: ignore[attr-defined]
    put(store, version_of("c.md", 1))
    check(store, truth_of(*(version_of(f"{name}.md", 1) for name in "abc")))


def test_a_snapshot_that_nobody_ended_is_given_up(store: LocalStore) -> None:
    """As where the interrupt comes between the block and its end."""
    block = store._state.database.snapshot()
    block.__enter__().execute("SELECT count(*) FROM chunks").fetchone()
    del block
    with closing(LocalStore(store.folder)) as other:
        put(other, version_of("b.md", 1))
    check(store, truth_of(version_of("a.md", 1), version_of("b.md", 1)))


def test_an_interrupt_while_a_lock_is_taken_is_heard_when_it_is_taken() -> None:
    heard: list[str] = []

    def act() -> str:
        signal.raise_signal(signal.SIGINT)
        heard.append("done")
        return "result"

    with pytest.raises(KeyboardInterrupt):
        uninterrupted(act)
    assert heard == ["done"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_is_not_the_main_thread_or_ignores_interrupts_goes_on(store: LocalStore) -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(uninterrupted, lambda: 1).result(20) == 1
    former = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert uninterrupted(lambda: signal.raise_signal(signal.SIGINT)) is None
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, former)


INTERRUPTED = """
import random, signal, sys, time
from concurrent.futures import ThreadPoolExecutor
from tests.stores.local_stores import *
from ragistry.stores import lock
store, pool, randomly = LocalStore(sys.argv[1], lock_timeout=1), ThreadPoolExecutor(1), random.Random(1)
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
put(store, version_of("b.md", 1))
times, interrupted = [], 0
for version in range(10):
    start = time.perf_counter()
    put(store, version_of("a.md", version))
    times.append(time.perf_counter() - start)

def go_on(version: int) -> None:
    put(store, version_of("a.md", version))
    store.move_source("b.md", "c", "d")
    store.move_source("b.md", "d", "c")

while interrupted < 30:  # of a few more, as some writes end before
    version += 1
    try:
        signal.setitimer(signal.ITIMER_REAL, randomly.uniform(1e-5, 1.2 * min(times)))
        go_on(version)
    except KeyboardInterrupt:
        interrupted += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    store.move_source("b.md", "d", "c")
    go_on(version)
    pool.submit(go_on, version).result(20)
    assert lock.users(store.folder / "store") == 0
check(store, truth_of(version_of("a.md", version), version_of("b.md", 1)))
print("every", interrupted)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_a_write_that_ctrl_c_ends_anywhere_lets_every_thread_write_on(quick_path: Path) -> None:
    assert run(INTERRUPTED, quick_path / "local").splitlines()[-1] == "every 30"
