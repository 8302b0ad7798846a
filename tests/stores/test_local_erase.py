"""What was deleted is gone from the disk, not only from the answers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ragistry.stores.database import BUSY_SECONDS
from ragistry.stores.local import LocalStore
from ragistry.testing.stores.chunks import chunk
from tests.stores.local_stores import ALL, check, ids_of, put, truth_of, vector_of, version_of

SECRETS = ("The codename is Heliotrope-77", "a title of confidence", "annex.md")


def secret() -> list:
    origin = {"collection": "c", "source_file": SECRETS[2], "source": f"/in/{SECRETS[2]}", "source_hash": "h"}
    text = f"{SECRETS[0]}, which nobody may read. " * 30
    return [
        chunk(f"{text}{index}", vector_of(f"secret {index}"), **origin, chunk_index=index, title=SECRETS[1])
        for index in range(3)
    ]


def found_in(folder: Path) -> set[str]:
    """The files in which some of it can be read."""
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {path.name for path, content in files.items() if any(part.encode() in content for part in SECRETS)}


WAYS: dict[str, Callable[[LocalStore], object]] = {
    "by ids": lambda store: store.delete(ids=[d.id for d in store.scan({"source_file": SECRETS[2]})]),
    "by a condition": lambda store: store.delete(where={"title": SECRETS[1]}),
    "by replacing it with nothing": lambda store: store.replace_source("c", SECRETS[2], []),
    "with everything": lambda store: store.clear_collection(),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("reopened", [False, True])
def test_deleted_text_is_in_no_file(quick_path: Path, way: str, reopened: bool) -> None:
    folder = quick_path / "local"
    options = {"exclusive": True, "graph_above": 0}
    store = LocalStore(folder, **options)
    for number in range(20):
        put(store, version_of(f"{number}.md", 1))
    put(store, secret())
    assert len(store.search_text("Heliotrope")) == 3
    assert len(store.search(ALL, 100)) == 63
    if reopened:
        store.close()
        store = LocalStore(folder, **options)
    assert found_in(folder) & {"store.db", "store.db-wal"}
    with closing(store):
        WAYS[way](store)
        assert found_in(folder) == set()
        assert store.search_text("Heliotrope") == []
        assert len(store.search(ALL, 100)) == (0 if "everything" in way else 60)
    assert found_in(folder) == set()


def test_a_text_that_was_replaced_is_gone_when_the_store_is_closed(quick_path: Path) -> None:
    folder = quick_path / "local"
    with closing(LocalStore(folder)) as store:
        put(store, secret())
        store.replace_source(
            "c", SECRETS[2], [c._replace(text="x", metadata={**c.metadata, "title": ""}) for c in secret()]
        )
    content = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert not any(part.encode() in content for part in SECRETS[:2])


def test_a_reader_that_looks_on_delays_a_deletion_only_a_little(quick_path: Path) -> None:
    folder = quick_path / "local"
    with closing(LocalStore(folder)) as store, closing(LocalStore(folder)) as other:
        put(store, secret())
        with other._state.read() as (connection, _):
            assert connection.execute("SELECT count(*) FROM chunks").fetchone() == (3,)
            assert store.delete(where={"title": SECRETS[1]}) == 3
            assert connection.execute("SELECT count(*) FROM chunks").fetchone() == (3,)
        assert found_in(folder) != set()
        store.delete(ids=[])
        assert found_in(folder) == set()


def test_repair_takes_vectors_that_were_deleted_out_of_the_files(quick_path: Path) -> None:
    kept, chunks = version_of("a.md", 1), version_of("gone.md", 1)
    folder = quick_path / "local"
    with closing(LocalStore(folder, exclusive=True, graph_above=0)) as store:
        put(store, kept)
        put(store, chunks)
        [vector] = store.vectors(ids_of(chunks)[:1])
        assert len(store.search(ALL)) == 6

        def files() -> list[str]:
            return [path.name for path in folder.rglob("*") if path.is_file() and vector.tobytes() in path.read_bytes()]

        store.delete(where={"source_file": "gone.md"})
        assert len(store.search(ALL)) == 3
        assert files()
        assert store.verify() == []
        assert store.repair() == ["chroma: keeping 3 vectors in its files that were deleted"]
        assert files() == []
        assert store.repair() == []
        check(store, truth_of(kept))


def test_a_deletion_that_could_not_be_wiped_leaves_later_writes_their_patience(quick_path: Path) -> None:
    with closing(LocalStore(quick_path / "local")) as store:
        database = store._state.database
        with database.write() as connection:
            database.erase()  # not possible within a transaction
        assert connection.execute("PRAGMA busy_timeout").fetchone() == (BUSY_SECONDS * 1000,)
