"""What a server writes is found by words in other processes soon after it has paused, and not only when it ends."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from ragistry.stores.flushing import Flusher
from ragistry.stores.local import LocalStore
from tests.stores.local_stores import ids_of, put, version_of
from tests.stores.scripts import start

SERVER = """
import sys, time
from tests.stores.local_stores import *
store = LocalStore(sys.argv[1], exclusive=True)
exec(sys.argv[2])
print("done", flush=True)
time.sleep(60)
"""
WRITES = {
    "put(store, version_of('a.md', 2, 4))": [*version_of("a.md", 2, 4), *version_of("b.md", 1)],
    "store.add_documents(version_of('d.md', 1))": [c for name in ("a.md", "b.md", "d.md") for c in version_of(name, 1)],
    "store.delete(where={'source_file': 'b.md'})": version_of("a.md", 1),
    "store.delete(ids=ids_of(version_of('b.md', 1)))": version_of("a.md", 1),
    "store.move_source('b.md', 'c', 'd')": [*version_of("a.md", 1), *version_of("b.md", 1, collection="d")],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with closing(LocalStore(tmp_path / "local")) as store:
        for name in ("a.md", "b.md"):
            put(store, version_of(name, 1))
    return tmp_path / "local"


@pytest.mark.parametrize("write", WRITES)
def test_another_process_finds_by_words_what_a_server_wrote_last(folder: Path, write: str) -> None:
    expected = ids_of(WRITES[write])
    with start(SERVER, folder, write) as server, closing(LocalStore(folder)) as reader:
        assert server.stdout is not None
        assert server.stdout.readline() == "done\n"
        until = time.monotonic() + 20
        while (found := sorted(d.id for d in reader.search_text("source", 100))) != expected:
            assert time.monotonic() < until, found
            time.sleep(0.05)
        assert server.poll() is None
        server.kill()


def test_a_store_that_is_closed_at_once_waits_for_no_pause(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "local", exclusive=True)
    put(store, version_of("a.md", 1))
    assert store._flusher is not None
    thread = store._flusher._thread
    assert thread is not None
    store.close()
    assert not thread.is_alive()
    with closing(LocalStore(tmp_path / "local")) as again:
        assert again._indexes.lexical.opened() is not None
        assert len(again.search_text("source")) == 3


def test_writes_without_a_pause_are_flushed_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragistry.stores.flushing.EVERY", 0.1)
    flushed: list[float] = []
    flusher = Flusher(lambda: flushed.append(time.monotonic()))
    until = time.monotonic() + 20
    while len(flushed) < 2:
        assert time.monotonic() < until
        flusher.written()
        time.sleep(0.01)
    flusher.close()


def test_a_flush_happens_once_and_the_thread_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragistry.stores.flushing.PAUSE", 0.05)
    flushed: list[int] = []
    flusher = Flusher(lambda: flushed.append(1))
    for _ in range(3):
        flusher.written()
    thread = flusher._thread
    assert thread is not None
    thread.join(20)
    assert not thread.is_alive()
    assert flushed == [1]
    flusher.close()


def test_a_flush_that_fails_unexpectedly_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragistry.stores.flushing.PAUSE", 0.01)
    told: list[object] = []
    monkeypatch.setattr("threading.excepthook", lambda failed: told.append(failed.exc_value))
    error, flushed = MemoryError("no room"), list[int]()

    def flush() -> None:
        flushed.append(1)
        if len(flushed) == 1:
            raise error

    flusher = Flusher(flush)
    for number in (1, 2):
        flusher.written()
        if thread := flusher._thread:  # else it has ended already
            thread.join(20)
        assert len(flushed) == number
    assert told == [error]


def test_a_flush_may_close_what_it_flushes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragistry.stores.flushing.PAUSE", 0.01)
    closed = threading.Event()

    def flush() -> None:
        flusher.close()
        closed.set()

    flusher = Flusher(flush)
    flusher.written()
    assert closed.wait(20)
    flusher.close()
