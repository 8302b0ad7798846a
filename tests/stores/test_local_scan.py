"""A scan shows the store as it was when the scan began, and does not block readers or writers."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest

from ragistry.errors import InvalidFilterError, StoreError
from ragistry.stores.local import LocalStore
from ragistry.types import EmbeddedChunk
from tests.stores.local_stores import check, ids_of, moved, put, truth_of, vector_of, version_of

OLD, NEW = version_of("a.md", 1, 6), version_of("a.md", 2, 4)


@pytest.fixture
def store(quick_path: Path) -> Iterator[LocalStore]:
    with closing(LocalStore(quick_path / "local")) as opened:
        put(opened, OLD)
        yield opened


@pytest.mark.parametrize("taken", [1, 2, 3, 6])
def test_a_scan_shows_the_version_at_its_beginning(store: LocalStore, taken: int) -> None:
    scan = store.scan({"source_file": "a.md"}, batch=2)
    seen = list(islice(scan, taken))
    put(store, NEW)
    seen += scan
    assert [document.content for document in seen] == [chunk.text for chunk in OLD]
    assert [document.content for document in store.scan(batch=2)] == [chunk.text for chunk in NEW]


def test_a_scan_never_shows_a_chunk_that_does_not_meet_the_condition(store: LocalStore) -> None:
    def chunk(text: str, access: str) -> EmbeddedChunk:
        return EmbeddedChunk(text, {"access": access}, vector_of(text))

    ids = [str(number) for number in range(6)]
    store.add_documents([chunk(f"text {id}", "public") for id in ids], ids=ids)
    scan = store.scan({"access": "public"}, batch=2)
    seen = [next(scan)]
    store.add_documents([chunk("now private", "private")], ids=["4"])
    seen += scan
    assert [(document.id, document.metadata["access"]) for document in seen] == [(id, "public") for id in ids]


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
    with pytest.raises(StoreError, match="closed"):
        next(scan)
