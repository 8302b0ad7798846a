"""Deleted text is in no file of the store."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ragistry.stores.local import LocalStore
from ragistry.testing.stores.chunks import chunk
from tests.stores.local_stores import check, put, truth_of, vector_of, version_of

SECRETS = ("The codename is Heliotrope-77", "a title of confidence", "annex.md")
OTHERS = [version_of(f"{number}.md", 1) for number in range(20)]


def secret() -> list[Any]:
    origin = {"collection": "c", "source_file": SECRETS[2], "source": f"/in/{SECRETS[2]}", "source_hash": "h"}
    text = f"{SECRETS[0]}, which must stay secret. " * 30
    return [
        chunk(f"{text}{index}", vector_of(f"secret {index}"), **origin, chunk_index=index, title=SECRETS[1])
        for index in range(3)
    ]


def files_with(folder: Path, *secrets: bytes) -> set[str]:
    """The files that contain one of them."""
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {path.name for path, content in files.items() if any(part in content for part in secrets)}


def found_in(folder: Path) -> set[str]:
    return files_with(folder, *(part.encode() for part in SECRETS))


WAYS: dict[str, Callable[[LocalStore], object]] = {
    "by ids": lambda store: store.delete(ids=[d.id for d in store.scan({"source_file": SECRETS[2]})]),
    "by a condition": lambda store: store.delete(where={"title": SECRETS[1]}),
    "by replacing it with no chunks": lambda store: store.replace_source("c", SECRETS[2], []),
    "by clearing": lambda store: store.clear_collection(),
}


@pytest.mark.parametrize(("way", "reopened"), [(way, number % 2 == 1) for number, way in enumerate(WAYS)])
def test_deleted_text_is_in_no_file(tmp_path: Path, way: str, reopened: bool) -> None:
    """Nor are its vectors, once the index has followed."""
    folder = tmp_path / "local"
    store = LocalStore(folder)
    put(store, *OTHERS, secret())
    [vector] = store.vectors([d.id for d in store.scan({"chunk_index": 1, "title": SECRETS[1]})])
    assert len(store.search_text("Heliotrope")) == 3
    store.flush()
    if reopened:
        store.close()
        store = LocalStore(folder)
    assert found_in(folder) & {"store.db", "store.db-wal"}
    assert files_with(folder, vector.tobytes()) >= {"vectors"}
    with closing(store):
        WAYS[way](store)
        assert found_in(folder) == set()
        assert store.search_text("Heliotrope") == []
    assert found_in(folder) == files_with(folder, vector.tobytes()) == set()
    with closing(LocalStore(folder)) as store:
        check(store, {} if way == "by clearing" else truth_of(*OTHERS))


def test_replaced_text_is_in_no_file_when_the_store_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "local"
    with closing(LocalStore(folder)) as store:
        put(store, secret())
        put(store, [c._replace(text="x", metadata={**c.metadata, "title": ""}) for c in secret()])
    assert files_with(folder, *(part.encode() for part in SECRETS[:2])) == set()


def test_a_reader_delays_a_deletion_only_a_little_and_the_next_one_erases(tmp_path: Path) -> None:
    folder = tmp_path / "local"
    with closing(LocalStore(folder)) as store, closing(LocalStore(folder)) as other:
        put(store, secret())
        scan = other.scan(batch=1)
        next(scan)
        assert store.delete(where={"title": SECRETS[1]}) == 3
        assert len(list(scan)) == 2
        assert found_in(folder) != set()
        store.delete(ids=["none"])
        assert found_in(folder) == set()


def test_a_damaged_file_that_repair_kept_is_erased_by_discard_kept(tmp_path: Path) -> None:
    folder = tmp_path / "local"
    with closing(LocalStore(folder)) as store:
        put(store, secret())
    path = folder / "store.db"
    path.write_bytes(path.read_bytes().replace(b"which must stay secret. 2", b"which must stay secret. 3"))
    with closing(LocalStore(folder)) as store:
        assert store.repair().again == (("c", SECRETS[2]),)
        store.clear_collection()
        assert found_in(folder) == {"store.db.damaged-1"}
        store.discard_kept()
        assert found_in(folder) == set()
