"""A folder that is removed or put back while a store is open on it: nobody answers from what was there before."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ragistry.errors import StoreError
from ragistry.stores.local import LocalStore
from tests.stores.local_stores import check, put, truth_of, version_of

A, B, C = (version_of(name, 1) for name in ("a.md", "b.md", "c.md"))


def ingest_again(folder: Path) -> None:
    """As many sources as before, which get the numbers that the former ones had."""
    with closing(LocalStore(folder)) as store:
        for source in (B, C):
            put(store, source)


def remove(folder: Path, backup: Path) -> None:
    shutil.rmtree(folder)


def replace(folder: Path, backup: Path) -> None:
    remove(folder, backup)
    ingest_again(folder)


def put_back(folder: Path, backup: Path) -> None:
    folder.rename(folder.with_name("former"))
    backup.rename(folder)


ACTS: dict[str, Callable[[LocalStore], object]] = {
    "search": lambda store: store.search(A[0].embedding, 3),
    "filtered": lambda store: store.search(A[0].embedding, 3, where={"collection": "c"}),
    "words": lambda store: store.search_text("part", 3),
    "scan": lambda store: list(store.scan()),
    "sources": lambda store: store.sources(),
    "delete": lambda store: store.delete(where={"source_file": "a.md"}),
    "put": lambda store: put(store, version_of("a.md", 2)),
    "move": lambda store: store.move_source("b.md", "c", "d"),
    "verify": lambda store: store.verify(),
    "repair": lambda store: store.repair(),
}


@pytest.mark.parametrize("change", [remove, replace, put_back])
@pytest.mark.parametrize("act", ACTS)
def test_a_store_whose_folder_was_replaced_neither_answers_nor_writes(
    quick_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path, Path], None], act: str
) -> None:
    monkeypatch.setattr("ragistry.stores.database.LOOK_AGAIN", -1.0)
    folder, backup = quick_path / "local", quick_path / "backup"
    with closing(LocalStore(folder)) as store:
        put(store, A)
    shutil.copytree(folder, backup)
    with closing(LocalStore(folder)) as store:
        put(store, B)
        check(store, truth_of(A, B))
        change(folder, backup)
        for _ in range(2):
            with pytest.raises(StoreError, match="was removed or replaced while it was open here; .* open the store"):
                ACTS[act](store)
    if change is remove:
        assert not folder.exists()  # nobody made it again to lock it
    else:
        with closing(LocalStore(folder)) as store:
            check(store, truth_of(B, C) if change is replace else truth_of(A))
            assert store.verify() == []


def test_of_a_store_that_is_gone_nothing_has_still_to_be_indexed(
    quick_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = quick_path / "local"
    with closing(LocalStore(folder)) as store:
        put(store, A)
        shutil.rmtree(folder)
    assert caplog.messages == []
    assert not folder.exists()
