"""Damaged, missing and stale files of indexes are found out before they are used, and built again."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest

from ragistry.errors import StoreCorruptError
from ragistry.stores.local import LocalStore
from tests.conftest import full_run
from tests.messages import refused
from tests.stores.local_stores import ALL, Truth, check, check_searches, garble, ids_of, put, truth_of, version_of
from tests.stores.scripts import PUT, ROOT, run
from tests.stores.survivors import HELD, OLD

TRUTH = truth_of(*HELD)
A2, NEW = version_of("0.md", 3, 2), version_of("new.md", 1)


@pytest.fixture(scope="module")
def pending(module_path: Path) -> Path:
    """A store whose indexes lack its last writes: the process was killed after it wrote to the database."""
    folder = module_path / "pending"
    with closing(LocalStore(folder)) as store:
        put(store, *OLD[:3])
        store.flush()
        put(store, *OLD[3:])
        store.replace_source("c", OLD[-1][0].metadata["source_file"], [])  # so that a file lists removed rows
        check_searches(store, truth_of(*OLD[:-1]))
    run(PUT.format("version_of('0.md', 2, 5)"), folder)
    assert b'"removed": 3' in (folder / "words" / "stamp.json").read_bytes()
    return folder


@pytest.fixture(scope="module")
def settled(pending: Path, module_path: Path) -> Path:
    """The same store with indexes that are up to date."""
    folder = Path(shutil.copytree(pending, module_path / "settled"))
    with closing(LocalStore(folder)) as store:
        check(store, TRUTH)
        store.flush()
    return folder


@pytest.fixture
def copy(settled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(settled, tmp_path / "local"))


def index_files(folder: Path) -> list[Path]:
    return sorted(path for name in ("words", "vectors") for path in (folder / name).iterdir() if path.is_file())


DAMAGE: dict[str, Callable[[Path], object]] = {
    "removed": Path.unlink,
    "emptied": lambda path: os.truncate(path, 0),
    "truncated": lambda path: os.truncate(path, int(path.stat().st_size * 0.6)),
    "extended": lambda path: path.write_bytes(path.read_bytes() + b"more"),
    "garbled at its start": lambda path: garble(path, 0, 8),
    "garbled in the middle": lambda path: garble(path, path.stat().st_size // 2, 8),
    "garbled at its end": lambda path: garble(path, max(0, path.stat().st_size - 8), 8),
    "random": lambda path: garble(path, path.stat().st_size // 3, random.Random(path.name).randbytes(8)),
    "replaced by text": lambda path: path.write_bytes(b"[" * 4_000),
    "replaced by a folder": lambda path: (path.unlink(), path.mkdir()),
}

MISREAD = "garbled at its start", ".fast"
"""What the library of the words does not notice, and finds other chunks by."""


@pytest.mark.timeout(600)
def test_damaged_index_never_gives_a_wrong_answer(pending: Path, settled: Path, tmp_path: Path) -> None:
    """Every kind of damage with every use, each of another file; in a full run, of every file."""
    works = [("search", pending), ("repair", settled), ("write", pending)]
    damaged = []
    for number, (damage, (work, base)) in enumerate(product(DAMAGE, works)):
        files = index_files(base)
        assert len(files) > 12
        for at, path in enumerate(files):
            if not (full_run() or at == number * 5 % len(files) or (damage, path.suffix) == MISREAD):
                continue
            folder = Path(shutil.copytree(base, tmp_path / f"{len(damaged)} {damage} {path.name}"))
            DAMAGE[damage](folder / path.relative_to(base))
            damaged.append((work, folder))
    with closing(LocalStore(tmp_path / "other")) as other:
        put(other, *OLD)
        other.flush()
    for name, content in product(("words", "vectors"), ("nothing", "a file", "other files", "another store's index")):
        folder = Path(shutil.copytree(settled, tmp_path / f"{name} {content}"))
        damaged.append(("search", folder))
        shutil.rmtree(folder / name)
        if content == "a file":
            (folder / name).write_text("file")
        if content == "other files":
            shutil.copytree(settled / "words", folder / name, ignore=shutil.ignore_patterns("stamp.json"))
        if content == "another store's index":
            shutil.copytree(tmp_path / "other" / name, folder / name)
    uses = [f"{work}={folder}" for work, folder in damaged]
    command = [sys.executable, "-m", "tests.stores.survivors", *uses]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stdout + ended.stderr[-4_000:]


def test_every_changed_character_of_a_stamp_is_detected(copy: Path) -> None:
    stamp = copy / "vectors" / "stamp.json"
    sound = stamp.read_text()
    with closing(LocalStore(copy)) as store:
        for at in range(0, len(sound), 7 if full_run() else 29):
            stamp.write_text(sound[:at] + ("0" if sound[at] != "0" else "1") + sound[at + 1 :])
            assert len(store.verify()) == 1, sound[at : at + 20]


def test_a_damaged_vector_of_a_large_index_is_detected_when_it_is_first_read(
    copy: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragistry.stores.local.vectors.READ_AHEAD", 0)
    with closing(LocalStore(copy)) as store:
        [vector] = store.vectors(ids_of(HELD[4])[:1])
    path = copy / "vectors" / "vectors"
    garble(path, path.read_bytes().index(vector.tobytes()), b"\0\0\0\0")
    with closing(LocalStore(copy)) as store:
        assert store.search(ALL, 1, where={"source_file": HELD[1][0].metadata["source_file"]})
        assert caplog.text == ""
        check_searches(store, TRUTH)
        assert "the index is damaged; building it again" in caplog.text
        check(store, TRUTH)


def test_damage_while_a_store_is_open_is_found_by_verify_and_removed_by_repair(copy: Path) -> None:
    with closing(LocalStore(copy)) as store:
        check(store, TRUTH)
        for path in (*copy.glob("words/*.term"), copy / "vectors" / "sketches"):
            garble(path, 0, 8)
        assert len(store.verify()) == 2
        repair = store.repair()
        assert (len(repair.rebuilt), repair.lost, repair.again, repair.kept) == (2, (), (), "")
        check(store, TRUTH)
        assert store.repair() == type(repair)()


CUT = """
import os, sys
from tests.stores.survivors import HELD
from tests.stores.local_stores import *
store, path, size = LocalStore(sys.argv[1], exact_below=0), Path(sys.argv[1], sys.argv[2]), float(sys.argv[3])
check_searches(store, truth_of(*HELD))
os.truncate(path, int(path.stat().st_size * size))
check_searches(store, truth_of(*HELD))
assert store.verify() == []
"""


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 0.5, 0.99])
def test_index_file_that_is_truncated_under_an_open_store_is_rebuilt(copy: Path, tmp_path: Path, size: float) -> None:
    """The process ends (SIGBUS) if it reads what is missing, so it is one of its own."""
    files = [path for index in ("vectors", "words") for path in (copy / index).iterdir() if path.stat().st_size]
    if not full_run():
        files = [path for path in files if path.suffix in (".fast", ".term") or path.name in ("keys", "vectors")]
    assert len(files) >= 4
    for number, path in enumerate(files):
        folder = Path(shutil.copytree(copy, tmp_path / f"cut {number}"))
        run(CUT, folder, path.relative_to(copy), size)


def test_an_index_folder_may_vanish_while_the_store_is_open(copy: Path) -> None:
    with closing(LocalStore(copy)) as store:
        for name in ("words", "vectors"):
            check_searches(store, TRUTH)
            shutil.rmtree(copy / name)
            check_searches(store, TRUTH)
            shutil.rmtree(copy / name)
            put(store, HELD[0])
            check(store, TRUTH)


# The database was replaced


def written(folder: Path, truth: Truth, work: Callable[[LocalStore], object]) -> None:
    with closing(LocalStore(folder)) as store:
        work(store)
        check(store, truth)


def test_indexes_fit_a_database_that_was_restored(copy: Path, tmp_path: Path) -> None:
    def change(store: LocalStore) -> None:
        put(store, A2, NEW)
        store.delete(where={"source_file": HELD[1][0].metadata["source_file"]})

    changed = truth_of(A2, *HELD[2:], NEW)
    old = shutil.copy(copy / "store.db", tmp_path / "old.db")
    written(copy, changed, change)
    new = shutil.copy(copy / "store.db", tmp_path / "new.db")
    for database, truth in ((old, TRUTH), (new, changed), (old, TRUTH)):
        shutil.copy(database, copy / "store.db")
        written(copy, truth, lambda store: None)
    written(copy, truth_of(A2, *HELD[1:]), lambda store: put(store, A2))
    shutil.copy(old, copy / "store.db")
    written(copy, truth_of(*HELD, NEW), lambda store: put(store, NEW))


@pytest.mark.parametrize("end", ["closed", "killed"])
def test_indexes_fit_the_database_of_a_copy_that_was_changed_elsewhere(copy: Path, tmp_path: Path, end: str) -> None:
    """Both made one write since the copy; one of the writers may have ended before its indexes followed."""
    elsewhere = Path(shutil.copytree(copy, tmp_path / "elsewhere"))
    source = version_of("elsewhere.md", 1)
    if end == "killed":
        run(PUT.format("version_of('elsewhere.md', 1)"), elsewhere)
    else:
        written(elsewhere, truth_of(*HELD, source), lambda store: put(store, source))
    written(copy, truth_of(*HELD, NEW), lambda store: put(store, NEW))
    for path in elsewhere.glob("store.db*"):
        shutil.copy(path, copy)
    written(copy, truth_of(*HELD, source), lambda store: None)


def test_a_database_without_its_indexes_is_a_whole_backup(copy: Path, tmp_path: Path) -> None:
    (tmp_path / "restored").mkdir()
    shutil.copy(copy / "store.db", tmp_path / "restored")
    written(tmp_path / "restored", TRUTH, lambda store: None)
    with closing(LocalStore(copy)) as store:
        store.copy_to(tmp_path / "copied")
    written(tmp_path / "copied", TRUTH, lambda store: None)


def test_a_damaged_text_and_a_damaged_vector_are_never_returned(copy: Path) -> None:
    path, [damaged, *others] = copy / "store.db", HELD[0]
    sound = path.read_bytes()
    with closing(LocalStore(copy)) as store:
        [vector] = store.vectors(ids_of([damaged]))
    text = damaged.text.encode()
    for content in (text.replace(b"part0", b"part7"), vector.tobytes()[:4] + bytes(28)):
        path.write_bytes(sound)
        garble(path, sound.index(text if b"part" in content else vector.tobytes()), content)
        with closing(LocalStore(copy)) as store:
            assert len(store.verify()) == 1
            assert HELD[0][0].metadata["source_file"] in store.verify()[0]
            with refused(StoreCorruptError):
                store.get(ids_of([damaged])) and store.vectors(ids_of([damaged]))
            assert len(store.get(ids_of(others))) == len(store.vectors(ids_of(others))) == 4


def test_chunks_that_lost_their_vectors_are_never_missing_in_silence(copy: Path) -> None:
    with closing(sqlite3.connect(copy / "store.db", isolation_level=None)) as connection:
        lost = connection.execute("DELETE FROM vectors WHERE key % 2 = 0").rowcount
    shutil.rmtree(copy / "vectors")
    with closing(LocalStore(copy)) as store:
        with refused(StoreCorruptError, f"{lost} chunks have lost their vectors", "ragistry repair"):
            store.search(ALL)
        store.repair()
        assert sum(info.waiting for info in store.sources()) == len(store.waiting()) == lost
        assert len(store.search(ALL, 1_000)) == store.count() - lost
