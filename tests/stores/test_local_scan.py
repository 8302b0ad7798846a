"""A scan shows the store as it was when the scan began, and does not block readers or writers."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from ragistry.errors import InvalidFilterError, StoreError
from ragistry.stores.local import LocalStore
from tests.messages import refused
from tests.stores.local_stores import check, ids_of, moved, put, truth_of, version_of

OLD, NEW = version_of("a.md", 1, 6), version_of("a.md", 2, 4)


@pytest.fixture
def store(local: LocalStore) -> LocalStore:
    put(local, OLD)
    return local


def test_an_open_scan_blocks_neither_readers_nor_writers(store: LocalStore) -> None:
    scan = store.scan(batch=1)
    next(scan)
    with ThreadPoolExecutor(1) as pool, closing(LocalStore(store.folder, lock_timeout=0)) as other:
        pool.submit(put, other, NEW).result(20)
        assert pool.submit(store.count).result(20) == len(NEW)
        store.move_source("a.md", "c", "d")
        assert sorted(d.id for d in store.search_text("source")) == ids_of(moved(NEW, "d"))
    assert len(list(scan)) == len(OLD) - 1
    check(store, truth_of(moved(NEW, "d")))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files cannot be listed")
def test_an_abandoned_scan_closes_its_files(store: LocalStore) -> None:
    def open_files() -> list[str]:
        links = [str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
        return [link for link in links if link.startswith(str(store.folder))]

    begun, not_begun = store.scan(batch=1), store.scan(batch=1)
    next(begun)
    store.close()
    assert open_files()
    del begun, not_begun
    gc.collect()
    assert open_files() == []


def test_bad_arguments_of_a_scan_are_refused_at_once(store: LocalStore) -> None:
    with pytest.raises(InvalidFilterError):
        store.scan({"page": {"$no": 1}})
    scan = store.scan()
    store.close()
    with refused(StoreError):
        next(scan)
