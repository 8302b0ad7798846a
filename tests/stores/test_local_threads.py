"""Threads of one process on a store: readers wait for no write, and a lock of the folder is counted right."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event, current_thread
from typing import Any

import numpy as np
import pytest

from ragistry.stores import exact, lock, vector_search
from ragistry.stores.catalog import Catalog
from ragistry.stores.local import LocalStore
from tests.stores.local_stores import ALL, put, version_of, whole_versions


@pytest.fixture
def workers() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


def test_a_reader_does_not_wait_for_a_write_to_end(quick_path: Path, workers: ThreadPoolExecutor) -> None:
    with closing(LocalStore(quick_path / "local")) as store:
        put(store, version_of("a.md", 1))
        with store._state.write():
            assert workers.submit(store.count).result(20) == 3


def test_a_store_that_is_opened_or_closed_while_another_writes_keeps_the_lock_counted(
    quick_path: Path, workers: ThreadPoolExecutor
) -> None:
    folder = quick_path / "local"
    with closing(LocalStore(folder)) as store:
        put(store, version_of("a.md", 1))
        with store._state.locked():
            opening = workers.submit(LocalStore, folder, exclusive=True)
            with pytest.raises(TimeoutError):
                opening.result(0.2)
        server = opening.result(20)
        assert lock.users(folder / "store") == 1
        with store._state.locked():
            closing_it = workers.submit(server.close)
            with pytest.raises(TimeoutError):
                closing_it.result(0.2)
            assert lock.users(folder / "store") == 2
        closing_it.result(20)
        assert lock.users(folder / "store") == 0


def test_what_was_read_while_a_source_was_replaced_is_not_kept_for_others(
    quick_path: Path, workers: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = current_thread()
    selected_keys, ranked_documents = vector_search.selected_keys, vector_search.ranked_documents
    replaced, searched = Event(), Event()

    def keys(*arguments: Any) -> Any:
        if current_thread() is not mine and not replaced.is_set():
            put(store, version_of("a.md", 4))
        return selected_keys(*arguments)

    def ranked(*arguments: Any) -> Any:
        if current_thread() is not mine:
            replaced.set()
            searched.wait(20)
        return ranked_documents(*arguments)

    with closing(LocalStore(quick_path / "local")) as store:
        for name in ("a.md", "b.md"):
            put(store, version_of(name, 1))
        assert len(whole_versions(store.search(ALL))) == 2
        monkeypatch.setattr(vector_search, "selected_keys", keys)
        monkeypatch.setattr(vector_search, "ranked_documents", ranked)
        with store._state.read():
            other = workers.submit(store.search, ALL, where={"page": 1})
            assert replaced.wait(20)
            found = store.search(ALL, where={"page": 1})
            searched.set()
        hashes = [{document.metadata["source_hash"] for document in each} for each in (found, other.result(20))]
        assert hashes == [{"hash 1"}, {"hash 1", "hash 4"}]
        assert len(found) == 2


def test_no_more_than_so_many_selections_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "MOST", 3)
    matrices, catalog = exact.Matrices(1_000), Catalog()
    tiny = exact.Matrix(np.arange(2), np.empty((0, 0), dtype=np.float32))
    for name in "abcde":
        matrices.keep(catalog, name, tiny)
    assert [name for name in "abcde" if matrices.get(catalog.state, name)] == ["c", "d", "e"]
    matrices.keep(catalog, "large", exact.Matrix(np.arange(124), np.empty((0, 0), dtype=np.float32)))
    assert [name for name in ("c", "d", "e", "large") if matrices.get(catalog.state, name)] == ["large"]
    matrices.keep(catalog, "larger", exact.Matrix(np.arange(200), np.empty((0, 0), dtype=np.float32)))
    assert matrices.get(catalog.state, "larger") is None
