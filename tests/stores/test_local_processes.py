"""Several processes and threads on one folder: many read, one at a time writes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ragistry.errors import StoreError, StoreLockedError
from ragistry.stores import exact
from ragistry.stores.lexical import LexicalIndex
from ragistry.stores.local import LocalStore
from tests.stores.local_stores import (
    ALL,
    check,
    check_searches,
    held,
    ids_of,
    put,
    same,
    truth_of,
    version_of,
    whole_versions,
)
from tests.stores.scripts import run, start


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    with closing(LocalStore(tmp_path / "local", lock_timeout=30)) as store:
        yield store


# One writes, others read

READER = """
import sys
from tests.stores.local_stores import ALL, whole_versions
from ragistry.stores.local import LocalStore
store = LocalStore(sys.argv[1], lock_timeout=30)
assert len(whole_versions(store.search(ALL, 1000))) == 3
print("ready", flush=True)
seen = set()
while "last" not in seen:
    searches = (
        store.search(ALL, 1000), store.search(ALL, 1000, where={"collection": "c"}),
        store.search_text("source", 1000), store.search_text("source", 1000, where={"collection": "c"}),
    )
    for found in searches:
        versions = whole_versions(found)
        assert sorted(versions) == ["a.md", "b.md", "c.md"], versions
        seen |= set(versions.values())
    if "hash 40" in seen:
        seen.add("last")
print(len(seen) > 2, "chromadb" in sys.modules)
store.close()
"""


def test_readers_see_each_source_wholly_old_or_wholly_new(store: LocalStore) -> None:
    names = ("a.md", "b.md", "c.md")
    for name in names:
        put(store, version_of(name, 1))
    with start(READER, store.folder) as one, start(READER, store.folder) as other:
        for reader in (one, other):
            assert reader.stdout is not None
            assert reader.stdout.readline() == "ready\n"
        for version in range(2, 41):
            for name in names:
                put(store, version_of(name, version, 2 + version % 3))
        for reader in (one, other):
            assert reader.communicate(timeout=60)[0] == "True False\n"
    check(store, truth_of(*(version_of(name, 40, 2 + 40 % 3) for name in names)))


WRITER = """
import sys
from tests.stores.local_stores import put, version_of
from ragistry.stores.local import LocalStore
store = LocalStore(sys.argv[1], lock_timeout=30)
for number in range(15):
    put(store, version_of(f"{sys.argv[2]}{number}.md", 1))
    if number % 5 == 0:
        assert store.search_text(f"{sys.argv[2]}{number}mdv1")
store.close()
"""


def test_writers_take_turns_and_lose_nothing(store: LocalStore) -> None:
    with start(WRITER, store.folder, "x") as x, start(WRITER, store.folder, "y") as y:
        outputs = [process.communicate(timeout=60)[0] for process in (x, y)]
    assert outputs == ["", ""]
    check(store, truth_of(*(version_of(f"{name}{number}.md", 1) for name in "xy" for number in range(15))))


def test_what_another_process_wrote_is_found_at_once(store: LocalStore) -> None:
    put(store, version_of("a.md", 1))
    check(store, truth_of(version_of("a.md", 1)))
    for version in (2, 3):
        script = "import sys; from tests.stores.local_stores import *; store = LocalStore(sys.argv[1]); " + (
            f"put(store, version_of('a.md', {version})); store.close()"
        )
        run(script, store.folder)
        check(store, truth_of(version_of("a.md", version)))


@pytest.mark.parametrize("where", [{"collection": "none"}, {"page": 7}], ids=repr)
def test_what_was_sought_in_vain_is_found_once_another_has_written_it(store: LocalStore, where: Any) -> None:
    put(store, version_of("a.md", 1))
    assert len(store.search(ALL)) == 3
    for _ in range(2):
        assert store.search(ALL, where=where) == []
    with closing(LocalStore(store.folder)) as other:
        put(other, version_of("b.md", 6, chunks=8, collection="none"))
    assert {found.metadata["source_file"] for found in store.search(ALL, where=where)} == {"b.md"}


def test_an_index_that_another_process_made_again_is_read(store: LocalStore) -> None:
    put(store, version_of("a.md", 1))
    check(store, truth_of(version_of("a.md", 1)))
    script = (
        "import sys; from pathlib import Path; from tests.stores.local_stores import *; "
        "(Path(sys.argv[1]) / 'lexical' / 'made-from.json').unlink(); store = LocalStore(sys.argv[1]); "
        "print(len(store.repair())); put(store, version_of('b.md', 1)); store.close()"
    )
    assert run(script, store.folder).endswith("1\n")
    check(store, truth_of(version_of("a.md", 1), version_of("b.md", 1)))


@pytest.mark.parametrize(
    ("kind", "where"), [("words", None), ("words", {"collection": "c"}), ("vectors", None)], ids=repr
)
def test_a_search_that_meets_an_index_of_a_later_state_is_made_anew(tmp_path: Path, kind: str, where: Any) -> None:
    options = {"exclusive": True, "graph_above": 0} if kind == "vectors" else {}
    with closing(LocalStore(tmp_path / "local", **options)) as store, closing(LocalStore(store.folder)) as other:
        for name in ("a.md", "b.md"):
            put(store, version_of(name, 1))
        check_searches(store, truth_of(version_of("a.md", 1), version_of("b.md", 1)))
        keeper = store._indexes.vectors if kind == "vectors" else store._indexes.lexical
        index = keeper.present
        search, versions = index.search, iter((4, 7))

        def meanwhile(*arguments: Any, **keywords: Any) -> Any:
            """Another thread writes after this one's look at the database and before that at the index."""
            for version in versions:
                writer = threading.Thread(target=write, args=(version,))
                writer.start()
                writer.join()
                break
            return search(*arguments, **keywords)

        def write(version: int) -> None:
            put(other, version_of("a.md", version))
            with store._state.locked():
                keeper.brought_up()

        index.search = meanwhile
        for _ in range(2):
            words = kind == "words"
            found = store.search_text("source", 100, where=where) if words else store.search(ALL, 100)
            assert sorted(whole_versions(found)) == ["a.md", "b.md"]
        assert list(versions) == []


# Who has the right to write

HOLDER = """
import sys, time
from tests.stores.local_stores import put, version_of
from ragistry.stores.local import LocalStore
store = LocalStore(sys.argv[1], exclusive=True)
put(store, version_of("a.md", 1))
print("open", flush=True)
time.sleep(60)
"""


def test_a_second_writer_waits_and_then_is_told_who_writes(tmp_path: Path) -> None:
    folder = tmp_path / "local"
    with start(HOLDER, folder) as holder, closing(LocalStore(folder, lock_timeout=0.3)) as store:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        began = time.monotonic()
        with pytest.raises(StoreLockedError, match=rf"in use by process {holder.pid} on .*end that process, or wait"):
            put(store, version_of("b.md", 1))
        assert time.monotonic() - began >= 0.3
        with pytest.raises(StoreLockedError, match=f"process {holder.pid}"):
            LocalStore(folder, exclusive=True, lock_timeout=0)
        (tmp_path / "link").symlink_to(folder)
        with pytest.raises(StoreLockedError, match=f"process {holder.pid}"):
            LocalStore(tmp_path / "x" / ".." / "link", exclusive=True, lock_timeout=0)
        assert same(held(store), truth_of(version_of("a.md", 1)))
        assert len(store.search(ALL)) == 3
        holder.kill()
        holder.wait()
        put(store, version_of("b.md", 1))
        check(store, truth_of(version_of("a.md", 1), version_of("b.md", 1)))


def test_a_short_wait_is_enough_for_a_short_write(tmp_path: Path) -> None:
    folder = tmp_path / "local"
    script = HOLDER.replace("time.sleep(60)", "time.sleep(0.3); store.close()")
    with start(script, folder) as holder, closing(LocalStore(folder, lock_timeout=30)) as store:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        put(store, version_of("b.md", 1))
        check(store, truth_of(version_of("a.md", 1), version_of("b.md", 1)))
        assert holder.communicate(timeout=30)[0] == ""


def test_words_are_searched_while_another_process_keeps_the_right_to_write(tmp_path: Path) -> None:
    """It indexes what it wrote by itself, as soon as it pauses."""
    folder = tmp_path / "local"
    old, first, second = (version_of(f"{name}.md", 1) for name in ("old", "a", "b"))
    with closing(LocalStore(folder)) as store:
        put(store, old)
    script = HOLDER.replace("print", 'put(store, version_of("b.md", 1))\nprint')
    with start(script, folder) as holder, closing(LocalStore(folder, lock_timeout=30)) as store:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        assert sorted(d.id for d in store.search(ALL)) == ids_of(old + first + second)
        until = time.monotonic() + 20  # less than the reader would wait for the lock
        while sorted(d.id for d in store.search_text("source")) != ids_of(old + first + second):
            assert time.monotonic() < until
            time.sleep(0.05)
        holder.kill()
        holder.wait()
        check(store, truth_of(old, first, second))


def test_who_is_kept_out_is_told_of_the_store_and_not_of_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "local"
    with start(HOLDER, folder) as holder, closing(LocalStore(folder, lock_timeout=0)) as store:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(StoreLockedError) as caught:
            put(store, version_of("b.md", 1))
        assert str(caught.value).startswith(f"the store at {str(folder)!r} is in use by process {holder.pid}")
        assert "chroma" not in str(caught.value)
        holder.kill()


def test_what_was_left_of_making_a_store_is_removed_when_it_is_opened_later(tmp_path: Path) -> None:
    folder = tmp_path / "local"
    LocalStore(folder).close()
    for name in ("old", "old-wal", "old-shm", "new"):
        (folder / f".store.db.{name}").write_bytes(b"half")
        if name != "new":
            os.utime(folder / f".store.db.{name}", (0, time.time() - 100))
    LocalStore(folder).close()
    assert sorted(path.name for path in folder.iterdir()) == [".store.db.new", "store.db", "store.version"]


def test_only_one_store_of_a_process_keeps_the_right_to_write(tmp_path: Path) -> None:
    with closing(LocalStore(tmp_path / "local", exclusive=True)) as store:
        with pytest.raises(StoreLockedError, match="open in this process already"):
            LocalStore(tmp_path / "local", exclusive=True)
        put(store, version_of("a.md", 1))
    with closing(LocalStore(tmp_path / "local", exclusive=True)) as store:
        assert store.count() == 3


def test_one_folder_spelled_in_several_ways_is_one_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.chdir(tmp_path)
    spellings = [tmp_path / "real", tmp_path / "link", "real", "./x/../real/", str(tmp_path) + "//real"]
    stores = [LocalStore(spelling, lock_timeout=0) for spelling in spellings]
    sources = [version_of(f"{number}.md", 1) for number in range(len(stores))]
    for store, source in zip(stores, sources, strict=True):
        put(store, source)
        assert store.search_text("source")
    for store in stores:
        check(store, truth_of(*sources))
        store.close()


# After a fork

FORKED = """
import os, sys, warnings
warnings.simplefilter("ignore")  # Python 3.12 warns of every fork beside threads
from tests.stores.local_stores import *
exclusive = sys.argv[2] == "exclusive"
store = LocalStore(sys.argv[1], exclusive=exclusive, graph_above=0 if exclusive else 200_000)
put(store, version_of("a.md", 1))
check(store, truth_of(version_of("a.md", 1)))
child = os.fork()
if child == 0:
    assert len(held(store)) == 1
    assert len(store.search(ALL, where={"collection": "c"})) == len(store.search_text("source")) == 3
    refused = []
    for call in (lambda: put(store, version_of("b.md", 1)), lambda: store.search(ALL)):
        try:
            call()
        except StoreError as error:
            refused.append("spawn" in str(error))
    print(refused, flush=True)
    store.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
put(store, version_of("c.md", 1))
print(sorted(name for _, name in held(store)), store.verify())
check_searches(store, held(store))
store.close()
"""


@pytest.mark.parametrize(
    ("how", "printed"),
    [
        ("shared", "[]\n['a.md', 'b.md', 'c.md'] []\n"),
        ("exclusive", "[True, True]\n['a.md', 'c.md'] []\n"),
    ],
)
def test_a_forked_child_reads_and_writes_or_is_refused(tmp_path: Path, how: str, printed: str) -> None:
    output = run(FORKED, tmp_path / "local", how)
    assert "".join(line for line in output.splitlines(keepends=True) if "spawn" not in line) == printed


# Threads


def test_many_may_make_the_store_at_once(quick_path: Path) -> None:
    barrier = threading.Barrier(8)
    failures: list[str] = []

    def make(folder: Path, number: int) -> None:
        barrier.wait()
        try:
            with closing(LocalStore(folder, lock_timeout=30)) as store:
                put(store, version_of(f"{number}.md", 1))
        except Exception as error:  # noqa: BLE001
            failures.append(repr(error))

    for attempt in range(5):
        folder = quick_path / f"{attempt}" / "local"
        threads = [threading.Thread(target=make, args=(folder, number)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with closing(LocalStore(folder)) as store:
            assert (failures, len(store.sources())) == ([], 8)
        assert not list(folder.glob(".store*"))


@pytest.mark.parametrize("options", [{}, {"exclusive": True, "graph_above": 0}], ids=["exact", "approximate"])
def test_threads_may_share_stores_on_one_folder(tmp_path: Path, options: dict) -> None:
    """Where each has its own rights, by two stores."""
    one = LocalStore(tmp_path / "local", **options)
    other = one if options else LocalStore(tmp_path / "local")
    names = ("a.md", "b.md", "c.md")
    for name in names:
        put(one, version_of(name, 1))
    failures: list[str] = []
    done = threading.Event()

    def write(name: str, store: LocalStore) -> None:
        for version in range(2, 16):
            put(store, version_of(name, version, 2 + version % 3))

    def read(store: LocalStore) -> None:
        while not done.is_set():
            for where in (None, {"collection": "c"}):
                assert sorted(whole_versions(store.search(ALL, 1000, where=where))) == list(names)
                assert sorted(whole_versions(store.search_text("source", 1000, where=where))) == list(names)

    def verify(store: LocalStore) -> None:
        while not done.is_set():
            assert store.verify() == []
            store.repair()
            time.sleep(0.1)

    def reported(work, *arguments) -> None:
        try:
            work(*arguments)
        except Exception as error:  # noqa: BLE001
            failures.append(repr(error))

    writers = [
        threading.Thread(target=reported, args=(write, *pair)) for pair in zip(names, (one, other, one), strict=True)
    ]
    others = [threading.Thread(target=reported, args=pair) for pair in ((read, one), (read, other), (verify, other))]
    for thread in (*writers, *others):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in others:
        thread.join()
    assert failures == []
    check(one, truth_of(*(version_of(name, 15, 2) for name in names)))
    one.close()
    other.close()


def test_a_thread_that_ends_leaves_no_file_open(store: LocalStore) -> None:
    put(store, version_of("a.md", 1))
    before = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").is_dir() else 0
    for _ in range(30):
        thread = threading.Thread(target=store.count)
        thread.start()
        thread.join()
    after = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").is_dir() else 0
    assert after <= before + 4


def test_a_store_may_be_closed_while_threads_search(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "local")
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
    assert [type(error) for error in ended] == [StoreError] * 3
    assert all("closed" in str(error) for error in ended)


# What is not needed is not loaded


def test_a_reader_and_a_small_store_never_import_chromadb(tmp_path: Path) -> None:
    script = (
        "import sys; from tests.stores.local_stores import *\n"
        "store = LocalStore(sys.argv[1], exclusive=len(sys.argv) > 2)\n"
        "if len(sys.argv) > 2: put(store, version_of('a.md', 1))\n"
        "store.verify(); check_searches(store, truth_of(version_of('a.md', 1))); store.close()\n"
        "print([name for name in ('chromadb', 'onnxruntime', 'httpx') if name in sys.modules])"
    )
    assert run(script, tmp_path / "local", "writes") == "[]\n"
    assert run(script, tmp_path / "local") == "[]\n"


def test_reading_takes_no_lock(tmp_path: Path) -> None:
    with closing(LocalStore(tmp_path / "local")) as store:
        put(store, version_of("a.md", 1))
    lock = tmp_path / "local" / "store.lock"
    lock.unlink(missing_ok=True)
    with closing(LocalStore(tmp_path / "local")) as store:
        truth = truth_of(version_of("a.md", 1))
        assert same(held(store), truth)
        assert len(store.search(ALL)) == len(store.search_text("source")) == 3
    assert not lock.exists()


def test_a_search_repeated_after_another_process_wrote_finds_that_process_s_version(store: LocalStore) -> None:
    where = {"collection": "c"}
    for version in (1, 2, 3):
        if version == 1:
            put(store, version_of("a.md", 1))
        else:
            write = f"put(LocalStore(sys.argv[1]), version_of('a.md', {version}, {2 + version % 3}))"
            run(f"import sys; from tests.stores.local_stores import *; {write}", store.folder)
        for _ in range(2):  # the second by what the first has kept
            for condition in (None, where):
                found = store.search(ALL, 100, where=condition)
                assert set(whole_versions(found).items()) == {("a.md", f"hash {version}")}
    with closing(LocalStore(store.folder)) as other:
        other.delete(where=where)
    assert store.search(ALL, 100, where=where) == store.search(ALL, 100) == []


def test_a_first_search_during_which_the_source_is_replaced_finds_one_version(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, version_of("a.md", 1))
    store.count()
    versions, load = iter([2, 3]), exact.load

    def replaced_meanwhile(*arguments: Any) -> exact.Matrix:
        loaded = load(*arguments)
        if version := next(versions, 0):
            with closing(LocalStore(store.folder)) as other:
                put(other, version_of("a.md", version, 2 + version % 3))
        return loaded

    monkeypatch.setattr(exact, "load", replaced_meanwhile)
    # What was read outside of a snapshot is thrown away; the snapshot after it stays what it is.
    found = store.search(ALL, 100, where={"collection": "c"})
    assert whole_versions(found) == {"a.md": "hash 2"}
    assert whole_versions(store.search(ALL, 100, where={"collection": "c"})) == {"a.md": "hash 3"}


@pytest.mark.parametrize("where", [None, {"collection": "c"}])
def test_a_search_of_words_during_which_the_source_is_replaced_finds_one_version(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, where: Any
) -> None:
    put(store, version_of("a.md", 1))
    assert len(store.search_text("source", where=where)) == 3
    versions, search = iter([2, 3]), LexicalIndex.search

    def replaced_meanwhile(index: LexicalIndex, *arguments: Any, **options: Any) -> Any:
        found = search(index, *arguments, **options)
        if version := next(versions, 0):
            with closing(LocalStore(store.folder)) as other:
                put(other, version_of("a.md", version, 2 + version % 3))
        return found

    monkeypatch.setattr(LexicalIndex, "search", replaced_meanwhile)
    assert whole_versions(store.search_text("source", where=where)) == {"a.md": "hash 3"}
    assert next(versions, 0) == 0


def test_what_a_caller_does_to_a_document_is_not_seen_by_the_next(store: LocalStore) -> None:
    chunks = [c._replace(metadata={**c.metadata, "tags": ["x"]}) for c in version_of("a.md", 1)]
    put(store, chunks)
    for _ in range(3):
        for document in store.search(ALL, 10):
            assert document.metadata["tags"] == ["x"]
            document.metadata["tags"].append("y")
            document.metadata["page"] = "changed"
    assert {d.metadata["page"] for d in store.get(ids_of(chunks))} == {0, 1, 2}
    assert store.count({"tags": {"$contains": "y"}}) == 0
