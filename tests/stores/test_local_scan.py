"""A scan shows the store as it was when it began, whatever is written meanwhile, and holds up nobody."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from pathlib import Path
from threading import Barrier

import pytest

from ragistry.errors import InvalidFilterError, StoreError
from ragistry.stores.local import LocalStore
from ragistry.types import Document, EmbeddedChunk
from tests.stores.local_stores import check, ids_of, moved, put, truth_of, vector_of, version_of
from tests.stores.scripts import run

OLD, NEW = version_of("a.md", 1, 6), version_of("a.md", 2, 4)


@pytest.fixture
def store(quick_path: Path) -> Iterator[LocalStore]:
    with closing(LocalStore(quick_path / "local")) as opened:
        put(opened, OLD)
        yield opened


def chunk(text: str, access: str) -> EmbeddedChunk:
    return EmbeddedChunk(text, {"access": access}, vector_of(text))


@pytest.mark.parametrize("taken", [0, 1, 2, 3, 6])
def test_a_source_is_shown_in_the_version_that_it_had_when_the_scan_began(store: LocalStore, taken: int) -> None:
    scan = store.scan({"source_file": "a.md"}, batch=2)
    seen = list(islice(scan, taken))
    put(store, NEW)
    seen += scan
    assert [document.content for document in seen] == [chunk.text for chunk in OLD]
    assert [document.content for document in store.scan(batch=2)] == [chunk.text for chunk in NEW]


@pytest.mark.parametrize("taken", [0, 1, 2, 5])
def test_no_chunk_is_shown_that_does_not_meet_the_condition(store: LocalStore, taken: int) -> None:
    ids = [str(number) for number in range(6)]
    store.add_documents([chunk(f"text {id}", "public") for id in ids], ids=ids)
    scan = store.scan({"access": "public"}, batch=2)
    seen = list(islice(scan, taken))
    store.add_documents([chunk("now private", "private")], ids=["4"])
    store.move_source("a.md", "c", "d")
    seen += scan
    assert [(document.id, document.metadata["access"]) for document in seen] == [(id, "public") for id in ids]


def test_a_scan_that_goes_on_holds_up_neither_readers_nor_writers(store: LocalStore) -> None:
    scan = store.scan(batch=1)
    next(scan)
    with ThreadPoolExecutor(1) as pool, closing(LocalStore(store.folder, lock_timeout=0)) as other:
        pool.submit(put, other, NEW).result(20)
        assert pool.submit(store.count).result(20) == len(NEW)
        store.move_source("a.md", "c", "d")
        assert sorted(d.id for d in store.search_text("source")) == ids_of(moved(NEW, "d"))
    assert len(list(scan)) == len(OLD) - 1
    check(store, truth_of(moved(NEW, "d")))


def test_what_was_deleted_while_a_scan_went_on_vanishes_from_the_disk_later(store: LocalStore) -> None:
    scan = store.scan(batch=1)
    next(scan)
    store.delete(where={"source_file": "a.md"})
    assert len(list(scan)) == len(OLD) - 1
    store.delete(ids=["none"])
    assert not any(OLD[0].text.encode() in path.read_bytes() for path in store.folder.glob("store.db*"))


def open_files(folder: Path) -> list[str]:
    links = [str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    return [link for link in links if link.startswith(str(folder))]


def files_left_open(folder: Path) -> list[str]:
    """After a second look: tantivy's thread looks into a file for a moment, every half second as long as it lasts."""
    if open_files(folder):
        time.sleep(0.2)
    return open_files(folder)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files cannot be seen")
def test_a_scan_that_is_given_up_lets_go_of_its_files(store: LocalStore) -> None:
    begun, unbegun = store.scan(batch=1), store.scan(batch=1)
    next(begun)
    store.close()
    assert open_files(store.folder)
    del begun, unbegun
    gc.collect()
    assert files_left_open(store.folder) == []


@pytest.mark.parametrize("batch", [1, 2, 100])
@pytest.mark.parametrize("taken", [0, 1, 2])
def test_a_scan_ends_with_its_store_and_lets_go_of_its_files(store: LocalStore, batch: int, taken: int) -> None:
    scan = store.scan(batch=batch)
    seen = list(islice(scan, taken))
    store.close()
    with pytest.raises(StoreError, match="the store is closed; open it again") as told:
        next(scan)
    assert len(seen) == taken
    if Path("/proc/self/fd").exists():
        assert files_left_open(store.folder) == [], told  # though the traceback is still here
    assert list(scan) == []


def test_scans_of_threads_end_where_another_closes_their_store(store: LocalStore) -> None:
    scanning = Barrier(5)

    def scan() -> None:
        for at, document in enumerate(cycle_of_scans(store)):
            assert document.metadata["source_file"] == "a.md"
            if at == 3:
                scanning.wait(20)

    with ThreadPoolExecutor(4) as pool:
        ended = [pool.submit(scan) for _ in range(4)]
        scanning.wait(20)
        store.close()
        for each in ended:
            with pytest.raises(StoreError, match="the store is closed"):
                each.result(20)


def cycle_of_scans(store: LocalStore) -> Iterator[Document]:
    while True:
        yield from store.scan(batch=1)


def test_what_is_wrong_with_a_scan_is_said_at_once(store: LocalStore) -> None:
    with pytest.raises(InvalidFilterError):
        store.scan({"page": {"$no": 1}})
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.scan()


FORKED = """
import os, sys
from tests.stores.local_stores import *
store = LocalStore(sys.argv[1])
put(store, version_of("a.md", 1, 6))
scan, other = store.scan(batch=1), store.scan(batch=2)
next(scan), next(other)
child = os.fork()
if child == 0:
    try:
        next(scan)
    except StoreError as error:
        print("begin another" in str(error), len(list(store.scan(batch=1))), flush=True)
    store.close()
    try:
        next(other)
    except StoreError as error:
        print("closed" in str(error), flush=True)
    del scan, other
    os._exit(0)
os.waitpid(child, 0)
print(len(list(scan)), len(list(other)), store.verify(), flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_scan_goes_on_in_the_process_that_began_it(quick_path: Path) -> None:
    output = run(FORKED, quick_path / "local").splitlines()
    assert [line for line in output if "fork" not in line] == ["True 6", "True", "5 5 []"]
