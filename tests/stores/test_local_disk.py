"""A full disk and missing rights: a clear error, nothing changed, and everything works again afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from subprocess import Popen
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from ragistry.errors import StoreError
from ragistry.stores.local import LocalStore, migrations
from ragistry.trace import collect, stage
from tests.messages import check_message, refused
from tests.stores.crashes import WRITES, A, B, C
from tests.stores.local_stores import ALL, check, garble, held, put, same, truth_of, vector_of, version_of
from tests.stores.pages import pages_of
from tests.stores.scripts import PUT, run, started, tell

BIG = version_of("big.md", 1, 600)


@pytest.fixture
def disk(request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file system of some megabytes: in memory; or ext4, where writing to a mapped file without room is a signal."""
    size = getattr(request, "param", "12m")
    commands = [["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", tmp_path]]
    if size == "ext4":
        image = tmp_path_factory.mktemp("image") / "image"
        image.write_bytes(bytes(32 << 20))
        commands = [["mkfs.ext4", "-q", "-F", "-b", "1024", "-m", "0", image], ["mount", "-o", "loop", image, tmp_path]]
    for command in commands:
        if os.geteuid() != 0 or shutil.which(command[0]) is None:
            pytest.skip("only root may mount a small file system")
        if subprocess.run(command, capture_output=True, timeout=60, check=False).returncode:
            pytest.skip("no such file system can be mounted here")
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", "-l", tmp_path], timeout=30, check=True)


any_disk = pytest.mark.parametrize("disk", ["32m", "ext4"], indirect=True)


@pytest.fixture
def store(disk: Path) -> Iterator[LocalStore]:
    """A store on the disk with two sources."""
    with closing(LocalStore(disk / "local")) as store:
        put(store, A, B)
        check(store, truth_of(A, B))
        yield store


def fill(disk: Path, *, but: int = 0) -> None:
    """Use all space of the disk ``but`` these bytes."""
    ballast = os.open(disk / "ballast", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    try:
        while os.write(ballast, bytes(1024)):
            pass
    except OSError:
        os.ftruncate(ballast, max(0, os.fstat(ballast).st_size - but))
    finally:
        os.close(ballast)


@contextmanager
def full(disk: Path, *, but: int = 0) -> Iterator[None]:
    """Not a byte is left."""
    fill(disk, but=but)
    yield
    (disk / "ballast").unlink()


MUCH = version_of("a.md", 2, 500)
LARGE_WRITES: Any = WRITES | {"replace with much": (lambda store: put(store, MUCH), truth_of(MUCH, B))}


DELETIONS = ("delete", "clear")


@pytest.mark.parametrize("write", [name for name in LARGE_WRITES if name not in DELETIONS])
def test_a_write_to_a_full_disk_changes_nothing_and_works_later(store: LocalStore, disk: Path, write: str) -> None:
    work, after = LARGE_WRITES[write]
    with full(disk):
        with refused(StoreError):
            work(store)
        assert same(held(store), truth_of(A, B))
        assert len(store.search(ALL)) == len(store.search_text("source")) == 6
    check(store, truth_of(A, B))
    work(store)
    check(store, after, every=50)


@pytest.mark.parametrize("write", DELETIONS)
def test_a_deletion_works_on_a_full_disk(store: LocalStore, disk: Path, write: str) -> None:
    work, after = WRITES[write]
    for _ in range(2):
        with full(disk):
            work(store)
            check(store, after)
        put(store, A, B)


def test_a_disk_that_fills_during_a_write_changes_nothing(store: LocalStore) -> None:
    huge = [chunk._replace(text=chunk.text + " word" * 2_000) for chunk in version_of("huge.md", 1, 900)]
    with refused(StoreError):
        put(store, huge)
    check(store, truth_of(A, B))
    put(store, C)
    store.close()
    with closing(LocalStore(store.folder)) as again:
        check(again, truth_of(A, B, C))


def test_written_chunks_are_indexed_when_there_is_space_again(store: LocalStore, disk: Path) -> None:
    put(store, BIG)
    with full(disk):
        with collect() as trace, stage("search"):
            assert len(store.search_text("source", 50)) == 6
        check_message(trace.stages()[0].degraded, "no space left")
        assert len(store.search(ALL, 1000)) == 606
        store.close()
    with closing(LocalStore(store.folder)) as again:
        check(again, truth_of(A, B, BIG), every=50)


@pytest.mark.parametrize("index", ["words", "vectors"])
def test_an_index_that_cannot_be_rebuilt_on_a_full_disk_leaves_no_files(
    store: LocalStore, disk: Path, index: str
) -> None:
    put(store, BIG)
    check(store, truth_of(A, B, BIG), every=50)
    with full(disk):
        (store.folder / index / "stamp.json").unlink()
        with refused(StoreError):
            store.flush()
        assert not list(store.folder.glob(f"{index}.*"))
    check(store, truth_of(A, B, BIG), every=50)


@pytest.mark.parametrize("left", [0, 64 << 10, 300 << 10])
def test_a_migration_on_a_full_disk_says_so_and_works_later(
    store: LocalStore, disk: Path, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    def step(connection: Any) -> None:
        connection.execute("CREATE TABLE added AS SELECT zeroblob(1 << 20)")

    store.close()
    monkeypatch.setattr(migrations, "STEPS", {migrations.FORMAT: step})
    monkeypatch.setattr(migrations, "FORMAT", migrations.FORMAT + 1)
    with closing(LocalStore(store.folder)) as newer:
        with full(disk, but=left):
            for call in (newer.count, lambda: newer.search_text("source"), newer.verify, newer.repair, newer.flush):
                with refused(StoreError, "free some space"):
                    call()
        check(newer, truth_of(A, B))


def test_a_repair_on_a_full_disk_leaves_the_damaged_file_in_place(store: LocalStore, disk: Path) -> None:
    put(store, BIG)
    store.close()
    path = store.folder / "store.db"
    garble(path, pages_of(path, "chunks_by_hash")[-1].start, bytes(8192))
    damaged = path.read_bytes()
    with closing(LocalStore(store.folder)) as again:
        with full(disk), refused(StoreError):
            again.repair()
        assert path.read_bytes() == damaged
        assert again.repair().lost == ()
        check(again, truth_of(A, B, BIG), every=50)


SEARCHES = """
import sys
from concurrent.futures import ThreadPoolExecutor
from tests.stores.local_stores import *
store = LocalStore(sys.argv[1])
def searches(n):
    return len(store.search(ALL, 1000)), len(store.search_text("source", 1000)), store.count(), len(store.sources())
with ThreadPoolExecutor(4) as pool:
    print(*set(pool.map(searches, range(8))), store.verify())
store.close()
"""


@any_disk
@pytest.mark.slow
@pytest.mark.parametrize("left", [0, 8 << 10, 40 << 10, 200 << 10])
@pytest.mark.parametrize("log", [False, True])
def test_a_new_process_reads_and_searches_on_a_full_disk(disk: Path, left: int, log: bool) -> None:
    folder = disk / "local"
    with closing(LocalStore(folder)) as store:
        put(store, A, version_of("b.md", 1, 30))
        check(store, truth_of(A, version_of("b.md", 1, 30)), every=5)
    if log:  # a killed process leaves the last source in the log only
        run(PUT.format("version_of('c.md', 1)"), folder)
        assert (folder / "store.db-wal").stat().st_size
    with full(disk, but=left):
        found = (36, 36, 36, 3) if log else (33, 33, 33, 2)
        assert run(SEARCHES, folder).splitlines()[-1] == f"{found} []"


@any_disk
def test_sources_are_deleted_on_a_full_disk_and_a_large_one_says_what_it_needs(disk: Path) -> None:
    sources = [
        [
            chunk._replace(text=chunk.text * 30, embedding=vector_of(chunk.text, 384))
            for chunk in version_of(name, 1, count)
        ]
        for name, count in (("ten.md", 10), ("much.md", 500), ("large.md", 1_500))
    ]
    with closing(LocalStore(disk / "local")) as store:
        put(store, *sources)
        store.flush()
    with closing(LocalStore(disk / "local")) as store:
        for name in ("ten.md", "much.md"):
            fill(disk)
            store.replace_source("c", name, [])
            assert name not in [info.source_file for info in store.sources()]
        fill(disk)
        with refused(StoreError):
            store.replace_source("c", "large.md", [])
        with refused(StoreError):
            store.clear_collection()
        assert [info.chunks for info in store.sources()] == [1_500]
        (disk / "ballast").unlink()
        store.replace_source("c", "large.md", [])
        assert store.count() == 0


LIMITED = """
import resource, sys
from tests.stores.local_stores import *
store = LocalStore(sys.argv[1])
put(store, version_of("a.md", 1))
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
try:
    put(store, version_of("b.md", 1, 900))
except Exception as error:
    print(f"{type(error).__name__}: {error}")
assert same(held(store), truth_of(version_of("a.md", 1)))
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
check(store, truth_of(version_of("a.md", 1)))
"""


def test_a_limit_on_the_size_of_files_changes_nothing(tmp_path: Path) -> None:
    check_message(run(LIMITED, tmp_path / "local").splitlines()[-1], "StoreError", tmp_path)


def test_no_store_is_created_on_a_full_disk(disk: Path) -> None:
    with full(disk), refused(StoreError, disk):
        LocalStore(disk / "local")
    with closing(LocalStore(disk / "local")) as store:
        put(store, A)
        check(store, truth_of(A))


# Rights

READER = """
import os, sys, tempfile
from ragistry.trace import collect, stage
from ragistry.errors import StoreError
from tests.stores.local_stores import *
with tempfile.TemporaryDirectory() as folder:  # after the change of user nothing can be imported
    warm = LocalStore(folder)
    put(warm, version_of("w.md", 1))
    check(warm, truth_of(version_of("w.md", 1)))
    warm._words.build_privately()
    warm.close()
def why_degraded():
    with collect() as trace, stage("search"):
        store.search_text("source")
    return trace.stages()[0].degraded
os.setgroups([])
os.setuid(65534)
print("ready", flush=True)
for line in sys.stdin:
    try:
        if line.startswith("open "):
            store = LocalStore(line[5:].strip(), lock_timeout=0)
            print("open", flush=True)
        else:
            print(eval(line), flush=True)
    except StoreError as error:
        print("StoreError:", error, flush=True)
"""


class Reader:
    """A process of a user who may read folders but not write them."""

    def __init__(self, process: Popen[str]) -> None:
        self.process = process

    def ask(self, code: str) -> str:
        assert self.process.stdout is not None
        tell(self.process, code)
        return self.process.stdout.readline().strip()

    def open(self, folder: Path) -> None:
        assert self.ask(f"open {folder}") == "open"

    def check(self, *sources: int) -> None:
        """Everything is found; ``sources``: versions of a.md, b.md, …"""
        truth = ", ".join(f"version_of('{'abcd'[n]}.md', {v})" for n, v in enumerate(sources) if v)
        assert self.ask(f"check(store, truth_of({truth}))") == "None"


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    if os.geteuid() != 0:
        pytest.skip("only root may become another user")
    with started(READER) as process:
        yield Reader(process)


@pytest.fixture
def folder() -> Iterator[Path]:
    """The folder of a closed store, which every user may enter."""
    place = TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else "/tmp", ignore_cleanup_errors=True)
    Path(place.name).chmod(0o755)
    folder = Path(place.name) / "local"
    with closing(LocalStore(folder)) as store:
        put(store, A)
        check(store, truth_of(A))
    with place:
        yield folder


def test_reader_without_rights_finds_everything_and_cannot_write(folder: Path, reader: Reader) -> None:
    reader.open(folder)
    reader.check(1)
    for write in ("put(store, version_of('b.md', 1))", "store.clear_collection()", "store.delete(ids=['x'])"):
        check_message(reader.ask(write), "StoreError: ", folder)
    check_message(reader.ask(f"LocalStore({str(folder / 'new')!r})"), "StoreError: ", folder / "new")
    reader.check(1)
    assert sorted(path.name for path in folder.iterdir() if "lock" not in path.name) == [
        "reserve",
        "store.db",
        "vectors",
        "words",
    ]


@pytest.mark.parametrize("missing", [("words",), ("vectors",), ("words", "vectors")], ids="+".join)
def test_reader_without_rights_builds_missing_indexes_for_itself(
    folder: Path, reader: Reader, missing: tuple[str, ...]
) -> None:
    for name in missing:
        shutil.rmtree(folder / name)
    reader.open(folder)
    reader.check(1)
    with closing(LocalStore(folder)) as writer:
        for version in (2, 3):
            put(writer, version_of("a.md", version), version_of("b.md", version))
            writer.delete(where={"source_file": "a.md"})
            put(writer, version_of("a.md", version))
            writer.flush()
            reader.check(version, version)


def test_reader_without_rights_sees_what_others_write(folder: Path, reader: Reader) -> None:
    reader.open(folder)
    reader.check(1)
    for version in (2, 3):
        with closing(LocalStore(folder)) as writer:  # which leaves no write-ahead log
            put(writer, version_of("a.md", version))
        reader.check(version)
    with closing(LocalStore(folder)) as writer:
        put(writer, version_of("a.md", 4))
        writer.flush()
        reader.check(4)
        put(writer, version_of("b.md", 4))  # which the index of words lacks
        assert reader.ask("len(store.search(ALL)), len(store.search_text('source'))") == "(6, 3)"
        check_message(reader.ask("why_degraded()"), folder)
    reader.check(4, 4)


def test_reader_without_rights_reads_a_store_whose_writer_was_killed(folder: Path, reader: Reader) -> None:
    run(PUT.format("version_of('b.md', 1)"), folder)
    assert (folder / "store.db-wal").exists()
    reader.open(folder)
    assert reader.ask("same(held(store), truth_of(version_of('a.md', 1), version_of('b.md', 1)))") == "True"
    assert reader.ask("len(store.search(ALL)), len(store.search_text('source'))") == "(6, 3)"
