"""A full disk, and rights that were taken away: a clear error, everything as it was, and well again afterwards."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ragistry.errors import StoreError
from ragistry.stores.local import LocalStore
from ragistry.trace import collect, stage
from tests.stores.local_stores import ALL, check, check_searches, held, put, same, truth_of, version_of

A, B, BIG = version_of("a.md", 1), version_of("b.md", 1), version_of("big.md", 1, 900)
NOBODY = 65534


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of a few megabytes."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root may mount a small file system")
    command = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(tmp_path)]
    if subprocess.run(command, capture_output=True, timeout=30, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], timeout=30, check=True)


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """Not a byte is left."""
    ballast = os.open(disk / "ballast", os.O_CREAT | os.O_WRONLY)
    try:
        while os.write(ballast, bytes(4096)):
            pass
    except OSError:
        pass
    finally:
        os.close(ballast)
    yield
    (disk / "ballast").unlink()


WRITES: dict[str, Callable[[LocalStore], object]] = {
    "replace": lambda store: put(store, version_of("a.md", 2)),
    "replace with much": lambda store: put(store, version_of("a.md", 2, 500)),
    "add": lambda store: store.add_documents(B, ids=["1", "2", "3"]),
    "delete": lambda store: store.delete(where={"page": 1}),
    "move": lambda store: store.move_source("a.md", "c", "d"),
    "clear": lambda store: store.clear_collection(),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_write_to_a_full_disk_changes_nothing(disk: Path, write: str) -> None:
    truth = truth_of(A)
    with closing(LocalStore(disk / "local")) as store:
        put(store, A)
        check(store, truth)
        with full(disk):
            with pytest.raises(StoreError, match="no space left .*nothing was changed; free some space"):
                WRITES[write](store)
            assert same(held(store), truth)
            assert len(store.search(ALL)) == len(store.search_text("source")) == 3
        check(store, truth)
        WRITES[write](store)
        assert store.verify() == []


def test_a_disk_that_fills_during_a_write_changes_nothing(disk: Path) -> None:
    huge = version_of("huge.md", 1, 900)
    huge = [chunk._replace(text=chunk.text + " word" * 2_000) for chunk in huge]
    with closing(LocalStore(disk / "local")) as store:
        put(store, A)
        with pytest.raises(StoreError, match="no space left"):
            put(store, huge)
        check(store, truth_of(A))
        put(store, B)
    with closing(LocalStore(disk / "local")) as store:
        check(store, truth_of(A, B))


def test_what_was_stored_is_indexed_when_there_is_room(disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = LocalStore(disk / "local")
    put(store, A)
    check(store, truth_of(A))
    put(store, BIG)
    with full(disk):
        with collect() as trace, stage("search"):
            assert len(store.search_text("source", 50)) == 3
        [said] = [stage.degraded for stage in trace.stages()]
        assert re.match("what was written last is not in 'lexical', which .*make room on the disk", said)
        assert len(store.search(ALL)) == 10
        store.close()
        assert "what was written is safe, but has still to be indexed" in caplog.text
    with closing(LocalStore(disk / "local")) as store:
        check(store, truth_of(A, BIG), every=50)


def test_an_index_that_cannot_be_made_again_for_want_of_room_leaves_nothing_behind(disk: Path) -> None:
    with closing(LocalStore(disk / "local")) as store:
        put(store, BIG)
        check(store, truth_of(BIG), every=50)
        with full(disk):
            (store.folder / "lexical" / "made-from.json").unlink()
            with pytest.raises(StoreError, match="make room on the disk"):
                store.search_text("source")
            assert not list(store.folder.glob("lexical.*"))
        check(store, truth_of(BIG), every=50)


def test_no_store_is_made_on_a_full_disk(disk: Path) -> None:
    with full(disk), pytest.raises(StoreError, match="no space left|cannot make a store"):
        LocalStore(disk / "local")
    with closing(LocalStore(disk / "local")) as store:
        put(store, A)
        check(store, truth_of(A))


# Rights


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Nothing in the folder may be written, not even by root."""
    paths = [folder, *folder.rglob("*")]
    modes = {path: path.stat().st_mode for path in paths}
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)
        for path, mode in modes.items():
            if path.exists():
                path.chmod(mode)


@pytest.fixture
def folder(quick_path: Path) -> Path:
    if threading.active_count() > 1 and os.geteuid() == 0:
        pytest.skip("rights of a process are changed only where it has one thread")
    quick_path.chmod(0o755)
    if quick_path.parent != Path("/dev/shm"):
        pytest.skip("another user may not see the temporary folder")
    with closing(LocalStore(quick_path / "local")) as store:
        put(store, A)
        check(store, truth_of(A))
    return quick_path / "local"


def test_who_may_not_write_is_told_and_may_read(folder: Path) -> None:
    with closing(LocalStore(folder)) as store:
        check(store, truth_of(A))
        with read_only(folder):
            for write in WRITES.values():
                with pytest.raises(StoreError, match="nothing was changed.*make the folder writable"):
                    write(store)
            assert same(held(store), truth_of(A))
            assert len(store.search(ALL)) == len(store.search_text("source")) == 3
        put(store, B)
        check(store, truth_of(A, B))


def test_who_may_not_bring_the_index_of_words_up_searches_it_and_says_so(folder: Path) -> None:
    writer = LocalStore(folder)
    put(writer, B)  # of which the index hears when it is next used, or when the store is closed
    with read_only(folder), closing(LocalStore(folder)) as store:
        with collect() as trace, stage("search"):
            assert {d.metadata["source_file"] for d in store.search_text("source", 50)} == {"a.md"}
        [said] = [stage.degraded for stage in trace.stages()]
        assert re.match("what was written last is not in 'lexical', which .*make the folder writable", said)
        assert len(store.search(ALL, 50)) == 6
    with closing(writer):
        check(writer, truth_of(A, B))


def test_a_store_in_a_folder_that_may_not_be_written_is_opened_to_read(folder: Path) -> None:
    with read_only(folder):
        with closing(LocalStore(folder)) as store:
            assert same(held(store), truth_of(A))
            check_searches(store, truth_of(A))
            for write in WRITES.values():
                with pytest.raises(StoreError, match="nothing was changed"):
                    write(store)
        with pytest.raises(StoreError, match="nothing was changed.*make the folder writable"):
            LocalStore(folder, exclusive=True)
        with pytest.raises(StoreError, match="choose a folder that can be written"):
            LocalStore(folder / "new")
    with closing(LocalStore(folder)) as store:
        put(store, B)
        check(store, truth_of(A, B))


def test_who_reads_without_rights_sees_what_others_write(folder: Path) -> None:
    with read_only(folder):
        reader = LocalStore(folder)
        check_searches(reader, truth_of(A))
    with closing(reader):
        for source in (B, version_of("a.md", 2)):
            with closing(LocalStore(folder)) as writer:
                put(writer, source)
            with read_only(folder):
                assert same(held(reader), truth_of(source, A if source is B else B))
                check_searches(reader, truth_of(source, A if source is B else B))
