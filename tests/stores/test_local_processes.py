"""Several processes and threads on one folder: many read, one at a time writes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from ragistry.errors import StoreError, StoreLockedError
from ragistry.stores.local import LocalStore
from ragistry.trace import collect, stage
from tests.conftest import full_run
from tests.messages import check_message, refused
from tests.stores.crashes import A, B, C
from tests.stores.local_stores import ALL, check, check_searches, held, put, same, truth_of, version_of, whole_versions
from tests.stores.scripts import run, started

VERSIONS = 40 if full_run() else 16


@pytest.fixture
def store(local: LocalStore) -> LocalStore:
    return local


# One process writes, others read

READER = """
import sys
from tests.stores.local_stores import ALL, LocalStore, whole_versions
store = LocalStore(sys.argv[1], lock_timeout=30, exact_below=int(sys.argv[2]))
first = whole_versions(store.search(ALL, 1000))
assert len(first) == 3
print("ready", flush=True)
seen, where, told = set(), {"collection": "c"}, False
while f"hash {sys.argv[3]}" not in seen:
    for search, query in ((store.search, ALL), (store.search_text, "source")):
        for condition in (None, where):
            versions = whole_versions(search(query, 1000, where=condition))
            assert set(versions) - {"sometimes.md"} == {"a.md", "b.md", "c.md"}, versions
            seen |= set(versions.values())
            if not told and seen - set(first.values()):
                told = True
                print("changed", flush=True)
store.close()
"""


def test_readers_see_each_source_old_or_new(store: LocalStore) -> None:
    put(store, A, B, C)
    with started(READER, store.folder, 10_000, VERSIONS) as one, started(READER, store.folder, 0, VERSIONS) as other:
        for version in range(2, VERSIONS + 1):
            for name in ("a.md", "b.md", "c.md", "sometimes.md"):
                put(store, version_of(name, version, 2 + version % 3))
            store.delete(where={"source_file": "sometimes.md"})
            if version % 4 == 0:
                store.flush()
            if version == VERSIONS // 2:  # both read while this process writes
                assert [reader.stdout.readline() for reader in (one, other) if reader.stdout] == ["changed\n"] * 2
        assert [reader.communicate(timeout=110)[0] for reader in (one, other)] == ["", ""]
    check(store, truth_of(*(version_of(name, VERSIONS, 2 + VERSIONS % 3) for name in ("a.md", "b.md", "c.md"))))


def test_an_index_that_another_process_rebuilt_is_read(store: LocalStore) -> None:
    put(store, A)
    check(store, truth_of(A))
    code = (
        "import sys; from tests.stores.local_stores import *; store = LocalStore(sys.argv[1], lock_timeout=30)\n"
        "for file in ('words', 'vectors'): (store.folder / file / 'stamp.json').write_text('')\n"
        "print(len(store.repair().rebuilt)); put(store, version_of('b.md', 1)); store.close()"
    )
    assert run(code, store.folder).endswith("2\n")
    check(store, truth_of(A, B))


@pytest.mark.parametrize("where", [None, {"collection": "c"}], ids=repr)
@pytest.mark.parametrize("kind", ["words", "vectors"])
def test_a_search_during_which_the_index_moves_on_finds_one_version(store: LocalStore, kind: str, where: Any) -> None:
    """Another thread replaces the source after this one took its snapshot and its view of the index."""
    put(store, A)
    check_searches(store, truth_of(A))
    index, name, search, query = {
        "words": (store._words, "best", store.search_text, "source"),
        "vectors": (store._vectors, "nearest", store.search, ALL),
    }[kind]  # type: ignore[misc]
    find, versions = getattr(index, name), iter((2, 6))

    def write(version: int) -> None:
        put(store, version_of("a.md", version, 2 + version % 3))
        store.flush()

    def meanwhile(*arguments: Any, **options: Any) -> Any:
        if version := next(versions, None):
            with ThreadPoolExecutor(1) as pool:
                pool.submit(write, version).result()
        return find(*arguments, **options)

    setattr(index, name, meanwhile)
    for _ in range(3):
        assert list(whole_versions(search(query, 9, where=where))) == ["a.md"]
    assert list(versions) == []


def test_reading_takes_no_lock(store: LocalStore) -> None:
    put(store, A)
    check(store, truth_of(A))
    store.close()
    for path in store.folder.glob("lock*"):
        path.unlink()
    with closing(LocalStore(store.folder)) as reader:
        check(reader, truth_of(A))
        assert list(reader.scan({"page": 1}))
    assert not list(store.folder.glob("lock*"))


# Who may write


HOLDER = """
import sys
from tests.stores.local_stores import LocalStore, put, version_of
store = LocalStore(sys.argv[1], exclusive=True)
put(store, version_of("a.md", 1))
print("ready", flush=True)
sys.stdin.readline()
store.close()
"""


def test_second_writer_waits_and_then_gets_an_error_that_names_the_first(tmp_path: Path) -> None:
    folder = tmp_path / "local"
    (tmp_path / "link").symlink_to(folder)
    with started(HOLDER, folder) as holder, closing(LocalStore(folder, lock_timeout=0.3)) as store:
        with refused(StoreLockedError, folder, f"process {holder.pid} on "):
            put(store, B)
        for path in (folder, tmp_path / "x" / ".." / "link"):
            with refused(StoreLockedError, f"process {holder.pid} on "):
                LocalStore(path, exclusive=True, lock_timeout=0)
        assert same(held(store), truth_of(A))
        holder.kill()
        holder.wait()
        put(store, B)
        check(store, truth_of(A, B))


def test_readers_search_while_another_process_is_exclusive(store: LocalStore) -> None:
    """Words of chunks that no index holds yet are missing, and the trace says so; vectors are complete."""
    put(store, B)
    store.close()
    with started(HOLDER, store.folder), closing(LocalStore(store.folder, lock_timeout=0)) as reader:
        assert len(reader.search(ALL)) == 6
        with collect() as trace, stage("search"):
            assert {d.metadata["source_file"] for d in reader.search_text("source")} == {"b.md"}
        check_message(trace.stages()[0].degraded, store.folder)
    with closing(LocalStore(store.folder)) as after:
        check(after, truth_of(A, B))


def test_a_reader_builds_missing_indexes_for_itself_while_another_process_is_exclusive(tmp_path: Path) -> None:
    with started(HOLDER, tmp_path / "local") as holder:
        reader = LocalStore(tmp_path / "local", lock_timeout=0)
        check_searches(reader, truth_of(A))
        holder.kill()
        holder.wait()
    with closing(reader), closing(LocalStore(reader.folder)) as other:
        put(other, B)
        check(other, truth_of(A, B))
        marks = [(reader.folder / name / "stamp.json").read_bytes() for name in ("words", "vectors")]
        check(reader, truth_of(A, B))
        with closing(LocalStore(reader.folder)) as third:
            check(third, truth_of(A, B))
        assert marks == [(reader.folder / name / "stamp.json").read_bytes() for name in ("words", "vectors")]


# Forks

FORKED = """
import os, sys, warnings
warnings.simplefilter("ignore")  # Python 3.12 warns of every fork in a process with threads
from ragistry.errors import StoreError
from tests.stores.local_stores import *
A, B, C = (version_of(name, 1) for name in ("a.md", "b.md", "c.md"))
store = LocalStore(sys.argv[1], exclusive=sys.argv[2] == "exclusive", lock_timeout=0)
put(store, A)
check(store, truth_of(A))
child = os.fork()
if child == 0:
    calls = [
        lambda: store.search(ALL), lambda: store.search_text("source"), lambda: put(store, B), store.count,
        lambda: list(store.scan()), store.verify, store.repair, store.flush, store.clear_collection,
    ]
    if sys.argv[2] == "exclusive":  # the parent keeps its lock
        calls.append(lambda: (store.close(), put(LocalStore(sys.argv[1], lock_timeout=0), B)))
    for call in calls:
        try:
            call()
        except StoreError as error:
            assert f"process {os.getppid()}" in str(error), error
        else:
            raise AssertionError("no error")
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
put(store, C)
check(store, truth_of(A, C))
store.close()
"""


@pytest.mark.parametrize("how", ["shared", "exclusive"])
def test_a_store_in_a_forked_child_raises_one_clear_error(tmp_path: Path, how: str) -> None:
    run(FORKED, tmp_path / "local", how)


# Threads


def test_one_folder_spelled_in_several_ways_is_one_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.chdir(tmp_path)
    spellings = [tmp_path / "real", tmp_path / "link", "real", "./x/../real/", f"{tmp_path}//real"]
    with ExitStack() as stack:
        stores = [stack.enter_context(closing(LocalStore(each, lock_timeout=0))) for each in spellings]
        sources = [version_of(f"{number}.md", 1) for number in range(len(stores))]
        for store, source in zip(stores, sources, strict=True):
            put(store, source)
            assert store.search_text("source")
        for store in stores:
            check(store, truth_of(*sources))


def test_a_store_may_be_closed_while_threads_search(store: LocalStore) -> None:
    put(store, version_of("a.md", 1, 50))
    searched = threading.Semaphore(0)

    def search() -> None:
        while True:
            assert len(store.search(ALL, 3)) == len(store.search_text("source", 3)) == 3
            searched.release()

    with ThreadPoolExecutor(3) as pool:
        searching = [pool.submit(search) for _ in range(3)]
        for _ in range(12):
            assert searched.acquire(timeout=60)
        store.close()
        for each in searching:
            with pytest.raises(StoreError, match="closed"):
                each.result(30)
