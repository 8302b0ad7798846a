"""Several stores on the same data, in threads and processes: each sees one state, and no write is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import islice, product
from typing import Any

import pytest

from ragistry.errors import DuplicateChunkIDError, EmbeddingMismatchError
from ragistry.types import EmbeddedChunk, EmbedderFingerprint
from ragistry.utils.ids import chunk_id
from tests.conftest import full_run
from tests.stores.crashes import WRITES
from tests.stores.local_stores import (
    ALL,
    check_searches,
    held,
    ids_of,
    moved,
    place_of,
    put,
    same,
    store_at,
    truth_of,
    vector_of,
    version_of,
    whole_versions,
)
from tests.stores.scripts import run, started, tell

A, B, C = (version_of(name, 1) for name in ("a.md", "b.md", "c.md"))
Opener = Callable[..., Any]


@pytest.fixture(params=["local", "postgres"])
def place(request: pytest.FixtureRequest) -> str:
    """Where the data is: see `store_at`."""
    return place_of(request.param, request)


@pytest.fixture
def opened(place: str) -> Iterator[Opener]:
    """Opens stores on the same data."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(closing(store_at(place, **settings)))


@pytest.mark.parametrize("taken", [1, 2, 3, 6])
def test_scan_shows_the_state_at_its_beginning(opened: Opener, taken: int) -> None:
    old, new = version_of("a.md", 1, 6), version_of("a.md", 2, 4)
    store, other = opened(), opened(lock_timeout=0.1)
    put(store, old)
    scan = store.scan({"source_file": "a.md"}, batch=2)
    seen = list(islice(scan, taken))
    put(other, new)  # an open scan blocks neither writers nor readers
    store.move_source("a.md", "c", "d")
    check_searches(other, truth_of(moved(new, "d")))
    seen += scan
    assert sorted(document.content for document in seen) == [chunk.text for chunk in old]
    assert sorted(document.content for document in other.scan(batch=2)) == [chunk.text for chunk in new]


def test_scan_never_shows_a_chunk_that_does_not_meet_the_condition(opened: Opener) -> None:
    def chunk(text: str, access: str) -> EmbeddedChunk:
        return EmbeddedChunk(text, {"access": access}, vector_of(text))

    store, ids = opened(), [str(number) for number in range(6)]
    store.add_documents([chunk(f"text {id}", "public") for id in ids], ids=ids)
    scan = store.scan({"access": "public"}, batch=2)
    seen = [next(scan)]
    store.add_documents([chunk("now private", "private")], ids=["4"])
    seen += scan
    assert sorted((document.id, document.metadata["access"]) for document in seen) == [(id, "public") for id in ids]


WRITE = """
import sys
from tests.stores.crashes import WRITES
from tests.stores.local_stores import store_at
store = store_at(sys.argv[1])
WRITES[sys.argv[2]][0](store)
"""
PAIRS = [*product(WRITES, ("store.close()", "store.flush()", "import os; os._exit(0)"))]


@pytest.mark.parametrize(("write", "end"), PAIRS if full_run() else PAIRS[::4])
def test_what_another_process_wrote_is_found_at_once(opened: Opener, place: str, write: str, end: str) -> None:
    store = opened()
    assert store.search_text("source") == []
    put(store, A, B)
    check_searches(store, truth_of(A, B))
    run(WRITE + end, place, write)
    after, new = WRITES[write][1], version_of("d.md", 1)
    assert same(held(store), after)
    check_searches(store, after)
    if write != "reembed":
        put(store, new)
        check_searches(store, after | truth_of(new))


def test_embedder_of_the_first_store_holds_for_all(opened: Opener) -> None:
    first, other = (EmbedderFingerprint("embedded", name, "abc", 8) for name in ("first", "other"))
    one, two = opened(), opened()
    one.use_embedder(first)
    with pytest.raises(EmbeddingMismatchError):
        two.use_embedder(other)
    two.clear_collection()
    put(one, A)  # which records its embedder again
    assert two.embedder() == first
    two.clear_collection()
    two.use_embedder(other)
    with pytest.raises(EmbeddingMismatchError):
        put(one, A)
    put(two, A)
    assert (one.embedder(), one.count()) == (other, 3)


def test_id_of_another_chunk_is_not_taken_over(opened: Opener) -> None:
    store, loose = opened(), A[0]._replace(metadata={})
    put(store, A)
    store.add_documents([loose], ids=[chunk_id("d", "a.md", 1)])
    for move in (lambda: store.move_source("a.md", "c", "d"), lambda: store.move_collection("c", "d")):
        with pytest.raises(DuplicateChunkIDError):
            move()
    store.delete(ids=ids_of(A)[:1])
    store.add_documents([loose], ids=ids_of(A)[:1])
    with pytest.raises(DuplicateChunkIDError):
        put(store, A)
    assert [(info.collection, info.chunks) for info in store.sources()] == [("c", 2)]


def test_threads_that_add_the_same_chunks_leave_one_of_each(opened: Opener) -> None:
    store = opened()

    def add(turn: int) -> None:
        for _ in range(5):
            chunks = [EmbeddedChunk(f"word {n} of {turn}", {}, vector_of(str(n))) for n in range(5)]
            store.add_documents(chunks, ids=[str((n * (turn + 1)) % 5) for n in range(5)])
            store.delete(ids=["0", "1"])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(4)))
    assert sorted(d.id for d in store.scan()) == ["2", "3", "4"]
    assert store.count() == len(store.search_text("word", 100)) == 3


def test_threads_see_each_source_old_or_new(opened: Opener) -> None:
    store, other, last, done = opened(), opened(exact_below=0), 13, threading.Event()
    put(store, A, B, C)

    def write(name: str, writer: Any) -> None:
        for version in range(2, last + 1):
            put(writer, version_of(name, version, 2 + version % 3))

    def read(reader: Any) -> None:
        while not done.is_set():
            for where in (None, {"collection": "c"}):
                for found in (reader.search(ALL, 1000, where=where), reader.search_text("source", 1000, where=where)):
                    assert sorted(whole_versions(found)) == ["a.md", "b.md", "c.md"]

    def look_after(keeper: Any) -> None:
        while not done.wait(0.1) and "repair" in keeper.abilities:
            assert keeper.verify() == []
            assert keeper.repair().lost == ()

    with ThreadPoolExecutor(6) as pool:
        others = [pool.submit(read, store), pool.submit(read, other), pool.submit(look_after, other)]
        try:
            list(pool.map(write, ("a.md", "b.md", "c.md"), (store, other, store)))
        finally:
            done.set()
        for each in others:
            each.result()
    expected = truth_of(*(version_of(name, last, 2 + last % 3) for name in ("a.md", "b.md", "c.md")))
    assert same(held(store), expected)
    check_searches(other, expected)


WRITER = """
import sys
from contextlib import closing
from tests.stores.local_stores import *
place, own = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
with closing(store_at(place)) as store:
    for version in range(1, 5):
        for name in ("a.md", "b.md", own):
            put(store, version_of(name, version, 3 if version == 1 else 2 + version % 3))
        whole_versions(store.search(ALL, 1000))
        assert {d.metadata["source_hash"] for d in store.search_text(marker(own, version))} == {f"hash {version}"}
"""


def test_processes_create_a_store_at_once_and_lose_no_write(place: str, opened: Opener) -> None:
    """They write the same sources, and others."""
    with ExitStack() as stack:
        writers = [stack.enter_context(started(WRITER, place, f"own{n}.md")) for n in range(3)]
        for writer in writers:
            tell(writer)
        assert [writer.communicate(timeout=110)[0] for writer in writers] == [""] * 3
    names = ("a.md", "b.md", "own0.md", "own1.md", "own2.md")
    expected = truth_of(*(version_of(name, 4, 2 + 4 % 3) for name in names))
    store = opened()
    assert same(held(store), expected)
    check_searches(store, expected)
