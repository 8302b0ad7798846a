"""A full disk and missing rights: a clear error, nothing changed, and everything works again afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ragistry.errors import StoreError
from ragistry.stores.local import LocalStore
from ragistry.trace import collect, stage
from tests.stores.crashes import Other
from tests.stores.local_stores import ALL, Truth, check, garble, held, moved, put, same, truth_of, version_of
from tests.stores.pages import pages_of
from tests.stores.scripts import start

A, B, BIG = version_of("a.md", 1), version_of("b.md", 1), version_of("big.md", 1, 900)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
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


WRITES: dict[str, tuple[Callable[[LocalStore], object], Truth]] = {
    "replace": (lambda store: put(store, version_of("a.md", 2)), truth_of(version_of("a.md", 2))),
    "replace with much": (lambda store: put(store, version_of("a.md", 2, 500)), truth_of(version_of("a.md", 2, 500))),
    "add": (lambda store: store.add_documents(B), truth_of(A, B)),
    "delete": (lambda store: store.delete(where={"source_file": "a.md"}), {}),
    "move": (lambda store: store.move_source("a.md", "c", "d"), truth_of(moved(A, "d"))),
    "rename": (lambda store: store.move_collection("c", "d"), truth_of(moved(A, "d"))),
    "clear": (lambda store: store.clear_collection(), {}),
    "reembed": (
        lambda store: store.reembed(Other()),
        truth_of([c._replace(embedding=Other().embed([c.text])[0]) for c in A]),
    ),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_write_to_a_full_disk_changes_nothing_and_works_later(disk: Path, write: str) -> None:
    work, after = WRITES[write]
    with closing(LocalStore(disk / "local")) as store:
        put(store, A)
        check(store, truth_of(A))
        with full(disk):
            with pytest.raises(StoreError, match="no space left .*free some space"):
                work(store)
            assert same(held(store), truth_of(A))
            assert len(store.search(ALL)) == len(store.search_text("source")) == 3
        check(store, truth_of(A))
        work(store)
        check(store, after, every=50)


def test_a_disk_that_fills_during_a_write_changes_nothing(disk: Path) -> None:
    huge = [chunk._replace(text=chunk.text + " word" * 2_000) for chunk in version_of("huge.md", 1, 900)]
    with closing(LocalStore(disk / "local")) as store:
        put(store, A)
        with pytest.raises(StoreError, match="no space left"):
            put(store, huge)
        check(store, truth_of(A))
        put(store, B)
    with closing(LocalStore(disk / "local")) as store:
        check(store, truth_of(A, B))


def test_written_chunks_are_indexed_when_there_is_space_again(disk: Path) -> None:
    store = LocalStore(disk / "local")
    put(store, A)
    check(store, truth_of(A))
    put(store, BIG)
    with full(disk):
        with collect() as trace, stage("search"):
            assert len(store.search_text("source", 50)) == 3
        assert "no space left" in trace.stages()[0].degraded
        assert len(store.search(ALL, 1000)) == 903
        store.close()
    with closing(LocalStore(disk / "local")) as store:
        check(store, truth_of(A, BIG), every=50)


@pytest.mark.parametrize("index", ["words", "vectors"])
def test_an_index_that_cannot_be_rebuilt_on_a_full_disk_leaves_no_files(disk: Path, index: str) -> None:
    with closing(LocalStore(disk / "local")) as store:
        put(store, BIG)
        check(store, truth_of(BIG), every=50)
        with full(disk):
            (store.folder / index / "stamp.json").unlink()
            with pytest.raises(StoreError, match="free some space"):
                store.flush()
            assert not list(store.folder.glob(f"{index}.*"))
        check(store, truth_of(BIG), every=50)


def test_a_repair_on_a_full_disk_leaves_the_damaged_file_in_place(disk: Path) -> None:
    with closing(LocalStore(disk / "local")) as store:
        put(store, A, BIG)
        store.flush()
    path = disk / "local" / "store.db"
    garble(path, pages_of(path, "chunks_by_hash")[-1].start, bytes(8192))
    damaged = path.read_bytes()
    with closing(LocalStore(disk / "local")) as store:
        with full(disk), pytest.raises(StoreError, match="free some space"):
            store.repair()
        assert path.read_bytes() == damaged
        assert store.repair().lost == ()
        check(store, truth_of(A, BIG), every=50)


def test_no_store_is_created_on_a_full_disk(disk: Path) -> None:
    with full(disk), pytest.raises(StoreError):
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
store = LocalStore(sys.argv[1], lock_timeout=0)
print("ready", flush=True)
for line in sys.stdin:
    try:
        print(eval(line), flush=True)
    except StoreError as error:
        print("StoreError:", error, flush=True)
store.close()
"""


class Reader:
    """A process of a user who may read the folder but not write it."""

    def __init__(self, folder: Path) -> None:
        self.process = start(READER, folder)
        self.answer("ready")

    def answer(self, expected: str = "") -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if expected and line != f"{expected}\n":
            self.process.kill()
            raise AssertionError(line + self.process.stdout.read())
        return line.strip()

    def ask(self, code: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(code + "\n")
        self.process.stdin.flush()
        return self.answer()

    def check(self, *sources: int) -> None:
        """Everything is found; ``sources``: versions of a.md, b.md, …"""
        truth = ", ".join(f"version_of('{'abcd'[n]}.md', {v})" for n, v in enumerate(sources) if v)
        assert self.ask(f"check(store, truth_of({truth}))") == "None"


@pytest.fixture
def folder(quick_path: Path) -> Path:
    if os.geteuid() != 0 or quick_path.parent != Path("/dev/shm"):
        pytest.skip("only root may become another user, who must see the folder")
    quick_path.chmod(0o755)
    with closing(LocalStore(quick_path / "local")) as store:
        put(store, A)
        check(store, truth_of(A))
    return quick_path / "local"


@pytest.fixture
def reader(folder: Path) -> Iterator[Callable[[], Reader]]:
    started: list[Reader] = []

    def start_one() -> Reader:
        started.append(Reader(folder))
        return started[-1]

    yield start_one
    for each in started:
        each.process.kill()
        each.process.communicate()


def test_a_reader_without_rights_finds_everything_and_cannot_write(folder: Path, reader: Callable[[], Reader]) -> None:
    one = reader()
    one.check(1)
    for write in ("put(store, version_of('b.md', 1))", "store.clear_collection()", "store.delete(ids=['x'])"):
        answer = one.ask(write)
        assert answer.startswith("StoreError: ")
        assert "make the folder writable" in answer
    assert "StoreError" in one.ask(f"LocalStore({str(folder / 'new')!r})")
    one.check(1)
    assert sorted(path.name for path in folder.iterdir() if "lock" not in path.name) == ["store.db", "vectors", "words"]


@pytest.mark.parametrize("missing", ["words", "vectors", "both"])
def test_a_reader_without_rights_builds_missing_indexes_for_itself(
    folder: Path, reader: Callable[[], Reader], missing: str
) -> None:
    for name in ("words", "vectors") if missing == "both" else (missing,):
        shutil.rmtree(folder / name)
    one = reader()
    one.check(1)
    with closing(LocalStore(folder)) as writer:
        for version in (2, 3):
            put(writer, version_of("a.md", version), version_of("b.md", version))
            writer.delete(where={"source_file": "a.md"})
            put(writer, version_of("a.md", version))
            writer.flush()
            one.check(version, version)


def test_a_reader_without_rights_sees_what_others_write(folder: Path, reader: Callable[[], Reader]) -> None:
    one = reader()
    one.check(1)
    for version in (2, 3):
        with closing(LocalStore(folder)) as writer:  # which leaves no write-ahead log
            put(writer, version_of("a.md", version))
        one.check(version)
    with closing(LocalStore(folder)) as writer:
        put(writer, version_of("a.md", 4))
        writer.flush()
        one.check(4)
        put(writer, version_of("b.md", 4))  # which the index of words lacks
        assert one.ask("len(store.search(ALL)), len(store.search_text('source'))") == "(6, 3)"
        assert "the newest chunks are not searched yet" in one.ask("why_degraded()")
    one.check(4, 4)


def test_a_reader_without_rights_reads_a_store_whose_writer_was_killed(
    folder: Path, reader: Callable[[], Reader]
) -> None:
    code = (
        "import os, sys; from tests.stores.local_stores import *; put(LocalStore(sys.argv[1]), version_of('b.md', 1))"
    )
    with start(f"{code}; os._exit(0)", folder) as killed:
        assert killed.wait(60) == 0
    assert (folder / "store.db-wal").exists()
    one = reader()
    assert one.ask("same(held(store), truth_of(version_of('a.md', 1), version_of('b.md', 1)))") == "True"
    assert one.ask("len(store.search(ALL)), len(store.search_text('source'))") == "(6, 3)"
