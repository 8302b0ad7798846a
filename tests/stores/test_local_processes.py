"""Several processes and threads on one folder: many read, one at a time writes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from ragistry.errors import StoreError, StoreLockedError
from ragistry.stores.local import LocalStore
from ragistry.trace import collect, stage
from tests.stores.local_stores import ALL, check, check_searches, held, put, same, truth_of, version_of, whole_versions
from tests.stores.scripts import run, start

A, B, C = (version_of(name, 1) for name in ("a.md", "b.md", "c.md"))


@pytest.fixture
def store(quick_path: Path) -> Iterator[LocalStore]:
    with closing(LocalStore(quick_path / "local", lock_timeout=30)) as store:
        yield store


@contextmanager
def started(code: str, *arguments: object) -> Iterator[Popen[str]]:
    """A process that has printed its first line."""
    with start(code, *arguments) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line == "ready\n", line + process.stdout.read()
        try:
            yield process
        finally:
            process.kill()


# One process writes, others read

READER = """
import sys
from tests.stores.local_stores import ALL, LocalStore, whole_versions
store = LocalStore(sys.argv[1], lock_timeout=30, exact_below=int(sys.argv[2]))
assert len(whole_versions(store.search(ALL, 1000))) == 3
print("ready", flush=True)
seen, where = set(), {"collection": "c"}
while "hash 40" not in seen:
    for search, query in ((store.search, ALL), (store.search_text, "source")):
        for condition in (None, where):
            versions = whole_versions(search(query, 1000, where=condition))
            assert set(versions) - {"sometimes.md"} == {"a.md", "b.md", "c.md"}, versions
            seen |= set(versions.values())
print(len(seen) > 2)
store.close()
"""


def test_readers_see_each_source_old_or_new(store: LocalStore) -> None:
    put(store, A, B, C)
    with started(READER, store.folder, 10_000) as one, started(READER, store.folder, 0) as other:
        for version in range(2, 41):
            for name in ("a.md", "b.md", "c.md", "sometimes.md"):
                put(store, version_of(name, version, 2 + version % 3))
            store.delete(where={"source_file": "sometimes.md"})
            if version % 4 == 0:
                store.flush()
        assert [reader.communicate(timeout=60)[0] for reader in (one, other)] == ["True\n", "True\n"]
    check(store, truth_of(*(version_of(name, 40, 2 + 40 % 3) for name in ("a.md", "b.md", "c.md"))))


WRITE = "import sys; from tests.stores.local_stores import *; store = LocalStore(sys.argv[1], lock_timeout=30)\n"
OTHER_WRITES: dict[str, tuple[str, list[Any]]] = {
    "add": ("put(store, version_of('c.md', 1))", [A, B, C]),
    "replace": ("put(store, version_of('a.md', 2))", [version_of("a.md", 2), B]),
    "delete": ("store.delete(where={'source_file': 'a.md'})", [B]),
    "clear": ("store.clear_collection()", []),
}


@pytest.mark.parametrize("write", OTHER_WRITES)
@pytest.mark.parametrize("end", ["store.close()", "store.flush()", "import os; os._exit(0)"])
def test_what_another_process_wrote_is_found_at_once(store: LocalStore, write: str, end: str) -> None:
    code, sources = OTHER_WRITES[write]
    put(store, A, B)
    check_searches(store, truth_of(A, B))
    run(f"{WRITE}{code}; {end}", store.folder)
    check(store, truth_of(*sources))
    put(store, version_of("d.md", 1))
    check(store, truth_of(*sources, version_of("d.md", 1)))


def test_search_finds_top_k_chunks_after_better_ones_were_deleted(store: LocalStore) -> None:
    put(store, version_of("a.md", 1, 20))
    for search in (lambda: store.search(ALL, 3), lambda: store.search_text("source", 3)):
        while left := store.count():
            found = search()
            assert len(found) == min(left, 3)
            store.delete(ids=[document.id for document in found])
        put(store, version_of("a.md", 1, 20))


def test_an_index_that_another_process_rebuilt_is_read(store: LocalStore) -> None:
    put(store, A)
    check(store, truth_of(A))
    code = (
        "for file in ('words', 'vectors'): (store.folder / file / 'stamp.json').write_text('')\n"
        "print(len(store.repair().rebuilt)); put(store, version_of('b.md', 1)); store.close()"
    )
    assert run(WRITE + code, store.folder).endswith("2\n")
    check(store, truth_of(A, B))


@pytest.mark.parametrize("where", [None, {"collection": "c"}], ids=repr)
@pytest.mark.parametrize("kind", ["words", "vectors"])
def test_a_search_during_which_the_index_moves_on_finds_one_version(store: LocalStore, kind: str, where: Any) -> None:
    """Another thread replaces the source after this one took its snapshot and its view of the index."""
    put(store, A)
    check_searches(store, truth_of(A))
    index = store._words if kind == "words" else store._vectors
    name = "best" if kind == "words" else "nearest"
    find, versions = getattr(index, name), iter((2, 6))

    def write(version: int) -> None:
        put(store, version_of("a.md", version, 2 + version % 3))
        store.flush()

    def meanwhile(*arguments: Any) -> Any:
        for version in versions:
            writer = threading.Thread(target=write, args=(version,))
            writer.start()
            writer.join()
            break
        return find(*arguments)

    setattr(index, name, meanwhile)
    search: Callable[[], Any] = (
        (lambda: store.search_text("source", 9, where=where)) if kind == "words"
        else lambda: store.search(ALL, 9, where=where)
    )  # fmt: skip
    for _ in range(3):
        assert list(whole_versions(search())) == ["a.md"]
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


WRITER = """
for number in range(15):
    put(store, version_of(f"{sys.argv[2]}{number}.md", 1))
    if number % 5 == 0:
        assert store.search_text(f"{sys.argv[2]}{number}mdv1")
store.close()
"""


def test_writers_take_turns_and_lose_nothing(store: LocalStore) -> None:
    with start(WRITE + WRITER, store.folder, "x") as x, start(WRITE + WRITER, store.folder, "y") as y:
        assert [process.communicate(timeout=60)[0] for process in (x, y)] == ["", ""]
    check(store, truth_of(*(version_of(f"{name}{number}.md", 1) for name in "xy" for number in range(15))))


HOLDER = """
import sys, time
from tests.stores.local_stores import LocalStore, put, version_of
store = LocalStore(sys.argv[1], exclusive=True)
put(store, version_of("a.md", 1))
print("ready", flush=True)
time.sleep(float(sys.argv[2]))
store.close()
"""


def test_a_second_writer_waits_and_then_gets_an_error_that_names_the_first(tmp_path: Path) -> None:
    folder = tmp_path / "local"
    with started(HOLDER, folder, 60) as holder, closing(LocalStore(folder, lock_timeout=0.3)) as store:
        began = time.monotonic()
        with pytest.raises(StoreLockedError) as caught:
            put(store, B)
        assert time.monotonic() - began >= 0.3
        named = f"the store {str(folder)!r} is being written by process {holder.pid} on "
        assert str(caught.value).startswith(named)
        assert "-c" in str(caught.value)  # its command
        (tmp_path / "link").symlink_to(folder)
        for path in (folder, tmp_path / "x" / ".." / "link"):
            with pytest.raises(StoreLockedError, match=f"process {holder.pid} "):
                LocalStore(path, exclusive=True, lock_timeout=0)
        assert same(held(store), truth_of(A))
        holder.kill()
        holder.wait()
        put(store, B)
        check(store, truth_of(A, B))


def test_a_writer_waits_for_a_short_write(quick_path: Path) -> None:
    with (
        started(HOLDER, quick_path / "local", 0.3),
        closing(LocalStore(quick_path / "local", lock_timeout=30)) as store,
    ):
        put(store, B)
        check(store, truth_of(A, B))


def test_readers_search_while_another_process_is_exclusive(store: LocalStore) -> None:
    """Words of chunks that no index holds yet are missing, and the trace says so; vectors are complete."""
    put(store, B)
    store.close()
    with started(HOLDER, store.folder, 60), closing(LocalStore(store.folder, lock_timeout=0)) as reader:
        assert len(reader.search(ALL)) == 6
        with collect() as trace, stage("search"):
            assert {d.metadata["source_file"] for d in reader.search_text("source")} == {"b.md"}
        assert "the newest chunks are not searched yet" in trace.stages()[0].degraded
    with closing(LocalStore(store.folder)) as after:
        check(after, truth_of(A, B))


def test_a_reader_builds_missing_indexes_for_itself_while_another_process_is_exclusive(quick_path: Path) -> None:
    with started(HOLDER, quick_path / "local", 60) as holder:
        reader = LocalStore(quick_path / "local", lock_timeout=0)
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


def test_many_processes_may_create_a_store_at_once(quick_path: Path) -> None:
    code = WRITE + "put(store, version_of(sys.argv[2], 1)); store.close()"
    for attempt in range(2):
        folder = quick_path / str(attempt) / "local"
        with ExitStack() as stack:
            processes = [stack.enter_context(start(code, folder, f"{number}.md")) for number in range(5)]
            assert [process.communicate(timeout=60)[0] for process in processes] == [""] * 5
        with closing(LocalStore(folder)) as store:
            check(store, truth_of(*(version_of(f"{number}.md", 1) for number in range(5))))
        assert not list(folder.glob("*.new*"))


# Forks

FORKED = """
import os, sys, warnings
warnings.simplefilter("ignore")  # Python 3.12 warns of every fork in a process with threads
from ragistry.errors import StoreError
from tests.stores.local_stores import *
store = LocalStore(sys.argv[1], exclusive=sys.argv[2] == "exclusive", lock_timeout=0)
put(store, version_of("a.md", 1))
check(store, truth_of(version_of("a.md", 1)))
child = os.fork()
if child == 0:
    calls = (
        lambda: store.search(ALL), lambda: store.search_text("source"), lambda: put(store, version_of("b.md", 1)),
        store.count, store.sources, store.verify, store.repair, store.flush, store.clear_collection,
        lambda: list(store.scan()), lambda: store.delete(ids=["x"]),
    )
    said = set()
    for call in calls:
        try:
            call()
        except StoreError as error:
            said.add(str(error))
        else:
            said.add("no error")
    assert len(said) == 1, said
    [message] = said
    assert f"was opened by process {os.getppid()}" in message and "spawn" in message, message
    store.close()
    if sys.argv[2] == "exclusive":
        try:
            put(LocalStore(sys.argv[1], lock_timeout=0), version_of("b.md", 1))
        except StoreError as error:
            assert f"process {os.getppid()} " in str(error), error
        else:
            raise AssertionError("the parent lost its lock")
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
put(store, version_of("c.md", 1))
check(store, truth_of(version_of("a.md", 1), version_of("c.md", 1)))
store.close()
"""


@pytest.mark.parametrize("how", ["shared", "exclusive"])
def test_a_store_in_a_forked_child_raises_one_clear_error(quick_path: Path, how: str) -> None:
    run(FORKED, quick_path / "local", how)


# Threads


def test_one_folder_spelled_in_several_ways_is_one_store(quick_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (quick_path / "real").mkdir()
    (quick_path / "link").symlink_to(quick_path / "real")
    monkeypatch.chdir(quick_path)
    spellings = [quick_path / "real", quick_path / "link", "real", "./x/../real/", f"{quick_path}//real"]
    with ExitStack() as stack:
        stores = [stack.enter_context(closing(LocalStore(each, lock_timeout=0))) for each in spellings]
        sources = [version_of(f"{number}.md", 1) for number in range(len(stores))]
        for store, source in zip(stores, sources, strict=True):
            put(store, source)
            assert store.search_text("source")
        for store in stores:
            check(store, truth_of(*sources))


def test_threads_may_share_stores_on_one_folder(store: LocalStore) -> None:
    put(store, A, B, C)
    failures: list[str] = []
    done = threading.Event()

    def write(name: str, store: LocalStore) -> None:
        for version in range(2, 16):
            put(store, version_of(name, version, 2 + version % 3))

    def read(store: LocalStore) -> None:
        while not done.is_set():
            for where in (None, {"collection": "c"}):
                for found in (store.search(ALL, 1000, where=where), store.search_text("source", 1000, where=where)):
                    assert sorted(whole_versions(found)) == ["a.md", "b.md", "c.md"]

    def look_after(store: LocalStore) -> None:
        while not done.is_set():
            assert store.verify() == []
            assert store.repair().lost == ()
            time.sleep(0.1)

    def reported(work: Callable[..., None], *arguments: Any) -> None:
        try:
            work(*arguments)
        except Exception as error:  # noqa: BLE001
            failures.append(repr(error))

    with closing(LocalStore(store.folder, exact_below=0)) as other:
        names = zip(("a.md", "b.md", "c.md"), (store, other, store), strict=True)
        writers = [threading.Thread(target=reported, args=(write, *pair)) for pair in names]
        pairs = ((read, store), (read, other), (look_after, other))
        others = [threading.Thread(target=reported, args=pair) for pair in pairs]
        for thread in (*writers, *others):
            thread.start()
        for thread in writers:
            thread.join()
        done.set()
        for thread in others:
            thread.join()
        assert failures == []
        check(store, truth_of(*(version_of(name, 15, 2) for name in ("a.md", "b.md", "c.md"))))


def test_a_store_may_be_closed_while_threads_search(store: LocalStore) -> None:
    put(store, version_of("a.md", 1, 50))
    ended: list[BaseException] = []

    def search() -> None:
        try:
            while True:
                assert len(store.search(ALL, 3)) == len(store.search_text("source", 3)) == 3
        except BaseException as error:  # noqa: BLE001
            ended.append(error)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    store.close()
    for thread in threads:
        thread.join(timeout=30)
    assert [(type(error), "closed" in str(error)) for error in ended] == [(StoreError, True)] * 3


def test_changing_a_returned_document_does_not_change_the_store(store: LocalStore) -> None:
    chunks = [c._replace(metadata={**c.metadata, "tags": ["x"]}) for c in A]
    put(store, chunks)
    for _ in range(3):
        for document in (*store.search(ALL), *store.search(ALL, where={"collection": "c"})):
            assert document.metadata["tags"] == ["x"]
            document.metadata["tags"].append("y")
            document.metadata["page"] = "changed"
    assert {document.metadata["page"] for document in store.scan()} == {0, 1, 2}
    assert store.count({"tags": {"$contains": "y"}}) == 0
