"""A backup has one state of every source, and is restored completely or not at all."""

from __future__ import annotations

import json
import shutil
import stat
from contextlib import closing
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import uuid4
from zipfile import ZipFile, ZipInfo

import pytest
from filelock import FileLock

from ragistry import open_workspace
from ragistry.errors import ConfigError, SourceNotFoundError, StoreCorruptError, StoreError
from ragistry.library.backup import BackupReport, restore_backup, write_backup
from ragistry.library.contract import search_chunks
from ragistry.library.ingest.source import ReadOptions
from ragistry.library.repositories.repository import Repositories
from ragistry.stores.local import LocalStore
from ragistry.stores.postgres import PostgresStore
from ragistry.testing.hashed import HashingEmbedder
from tests.conftest import full_run
from tests.library.git_trees import commit
from tests.messages import refused
from tests.postgres_server import PostgresServer
from tests.stores.local_stores import ALL, check, held, put, same, truth_of, version_of, whole_versions
from tests.stores.scripts import run, start
from tests.stores.test_local_disk import disk, full  # noqa: F401, a fixture

A, B, BIG = version_of("a.md", 1), version_of("b.md", 1), version_of("big.md", 1, 900)
CONFIGURATION = "collections: [{name: c, description: Größe}]\n"


def backed_up(root: Path, path: Path, **options: Any) -> BackupReport:
    with closing(LocalStore(root / ".ragistry")) as store:
        return write_backup(path, root, store, root / ".ragistry" / "repositories", **options)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a workspace of two sources and its backup ``all.zip``; only to be read."""
    folder = tmp_path_factory.mktemp("made")
    root = folder / "workspace"
    (root / "config" / "schemas").mkdir(parents=True)
    (root / "config" / "documents.yaml").write_text(CONFIGURATION, encoding="utf-8")
    (root / "config" / "schemas" / "documents.schema.json").write_text("{}", encoding="utf-8")
    (root / "config" / ".env").write_text("KEY=hunter2", encoding="utf-8")
    (root / "shout.py").write_text("LOUD = True\n", encoding="utf-8")
    (root / "notes.txt").write_text("not part of the workspace", encoding="utf-8")
    with closing(LocalStore(root / ".ragistry")) as store:
        put(store, A, B)
    report = backed_up(root, folder / "all.zip")
    assert (report.size, report.sources, report.chunks) == ((folder / "all.zip").stat().st_size, 2, 6)
    return folder


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    """A copy of the workspace, to be changed."""
    return shutil.copytree(made / "workspace", tmp_path / "workspace")


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_restored_workspace_has_the_configuration_and_the_library(made: Path, tmp_path: Path) -> None:
    assert sorted(item.name for item in made.iterdir()) == ["all.zip", "workspace"]
    assert stat.S_IMODE((made / "all.zip").stat().st_mode) == 0o600
    elsewhere = tmp_path / "far" / "away"
    assert restore_backup(made / "all.zip", elsewhere).program.startswith("ragistry ")
    restored = files_in(elsewhere)
    configuration = {"config/documents.yaml", "config/schemas/documents.schema.json", "shout.py"}
    assert set(restored) == configuration | {".ragistry/store.db"}
    assert restored["config/documents.yaml"] == CONFIGURATION.encode()
    with ZipFile(made / "all.zip") as archive:
        archive.extractall(tmp_path / "unpacked")
    assert files_in(tmp_path / "unpacked").items() > restored.items(), "any program can unpack a backup"
    with closing(LocalStore(elsewhere / ".ragistry")) as store:
        check(store, truth_of(A, B))
        put(store, BIG)
        check(store, truth_of(A, B, BIG), every=100)


def test_existing_file_is_replaced_only_by_force(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "all.zip"
    path.write_bytes(b"precious")
    with refused(ConfigError, "all.zip"):
        backed_up(root, path)
    assert path.read_bytes() == b"precious"
    backed_up(root, path, force=True)
    restore_backup(path, tmp_path / "new")


def test_deleted_text_is_not_in_a_backup(root: Path, tmp_path: Path) -> None:
    with closing(LocalStore(root / ".ragistry")) as store:
        put(store, [c._replace(text=f"The codename is Heliotrope. {c.text}") for c in BIG])
        store.replace_source("c", "big.md", [])
        with closing(LocalStore(root / ".ragistry")) as other:  # the log is not yet gone
            write_backup(tmp_path / "all.zip", root, other, root / "none")
    restore_backup(tmp_path / "all.zip", tmp_path / "new")
    assert not [name for name, content in files_in(tmp_path / "new").items() if b"Heliotrope" in content]
    with closing(LocalStore(tmp_path / "new" / ".ragistry")) as store:
        check(store, truth_of(A, B))


WRITER = """
import sys
from pathlib import Path
from tests.stores.local_stores import *
store = LocalStore(sys.argv[1])
for number in range(2, 100_000):
    for name in "abcde":
        put(store, version_of(f"{name}.md", number, 2 + number % 3))
    store.delete(where={"source_file": "e.md"})
    print(number, flush=True)
"""


def test_backup_during_writes_has_one_whole_version_of_every_source(root: Path, tmp_path: Path) -> None:
    seen = set()
    with start(WRITER, root / ".ragistry") as writer:
        try:
            assert writer.stdout is not None
            for number in range(5 if full_run() else 2):
                assert writer.stdout.readline()
                assert writer.stdout.readline()
                backed_up(root, tmp_path / f"{number}.zip")
        finally:
            writer.kill()
    for path in tmp_path.glob("*.zip"):
        restore_backup(path, tmp_path / path.stem)
        with closing(LocalStore(tmp_path / path.stem / ".ragistry")) as store:
            assert store.verify() == []
            versions = whole_versions(store.search(ALL, 1_000))
            check(store, held(store))
        assert {"a.md", "b.md", "c.md", "d.md"} <= versions.keys()
        seen.add(tuple(sorted(versions.items())))
    assert len(seen) > 1, "the writer wrote between the backups"


def test_library_in_postgres_is_backed_up_during_writes(root: Path, tmp_path: Path, postgres: PostgresServer) -> None:
    name = uuid4().hex
    with (
        closing(PostgresStore(postgres.url, collection=name)) as store,
        closing(PostgresStore(postgres.url, collection=name)) as other,
    ):
        put(store, A, BIG)

        def write(name: str, done: int, of: int) -> None:
            if not other.count({"source_file": "late.md"}):
                put(other, version_of("a.md", 2, 4), version_of("late.md", 1))

        report = write_backup(tmp_path / "all.zip", root, store, root / "none", progress=write)
    assert (report.sources, report.chunks) == (3, 907)
    restore_backup(tmp_path / "all.zip", tmp_path / "new")
    with closing(LocalStore(tmp_path / "new" / ".ragistry")) as copy:
        check(copy, truth_of(version_of("a.md", 2, 4), version_of("late.md", 1), BIG), every=100)


def test_repositories_are_restored(root: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    commit(clone, {"tea.md": "# Tea\n\nSteep green tea at eighty degrees.", "rain.md": "# Rain\n\nRain in the night."})
    place = Path(".ragistry", "repositories")
    before = Repositories(root / place, HashingEmbedder(), ReadOptions(1000, 150, True)).add(clone, "guides").info
    assert backed_up(root, tmp_path / "all.zip").repositories == ["guides"]
    shutil.rmtree(root)
    restore_backup(tmp_path / "all.zip", tmp_path / "new")
    repositories = Repositories(tmp_path / "new" / place, HashingEmbedder(), ReadOptions(1000, 150, True))
    assert repositories.infos() == [before]
    found = search_chunks(repositories.collection("guides"), "steep green tea", limit=1).matches
    assert [match.file_path for match in found] == ["tea.md"]


# What is not a whole backup


def zipped(entries: dict[str, bytes], mode: int = 0) -> bytes:
    stream = BytesIO()
    with ZipFile(stream, "w") as archive:
        for name, content in entries.items():
            info = ZipInfo(name)
            info.external_attr = mode << 16
            archive.writestr(info, content)
    return stream.getvalue()


def packed(entries: dict[str, bytes], mode: int = 0, **manifest: Any) -> bytes:
    """A zip file of these entries with a manifest that fits them, except for the given values."""
    files = {name: {"size": len(text), "sha256": sha256(text).hexdigest()} for name, text in entries.items()}
    said = {"format": 1, "program": "ragistry 0.1.0", "created": "2025-09-30T14:00:00+00:00", "files": files} | manifest
    return zipped({**entries, "manifest.json": json.dumps(said).encode()}, mode)


def of_file(name: str, said: bytes, size: int = 1) -> bytes:
    """A backup of the file ``a`` with the content ``x``, whose manifest says something else."""
    return packed({"a": b"x"}, files={name: {"size": size, "sha256": sha256(said).hexdigest()}})


WHOLE = packed({"a": b"x"})
REFUSED = {
    "empty": b"",
    "no zip": b"PK\x03\x04 no zip",
    "text": b"x" * 10_000,
    "without a manifest": zipped({"photo.jpg": b"x"}),
    "negative offset": WHOLE[:-6] + b"\xff\xff\xff\x7f" + WHOLE[-2:],
    **{
        f"entry {name!r}": packed({name: b"x", "config/documents.yaml": b""})
        for name in ("../out.txt", "/tmp/out.txt", "config/../../out.txt", "a/..", "", ".", "config/")
    },
    "link": packed({"config/documents.yaml": b"/etc/passwd"}, stat.S_IFLNK | 0o777),
    "pipe": packed({"config/documents.yaml": b"/etc/passwd"}, stat.S_IFIFO | 0o777),
    "later format": packed({"a": b"x"}, format=99, program="ragistry 9.9", key={"id": 1}),
    "no format": packed({"a": b"x"}, format=None),
    "another file": of_file("b", b"x"),
    "no files": packed({"a": b"x"}, files={}),
    "larger file": of_file("a", b"x", 2),
    "smaller file": of_file("a", b"", 0),
    "another checksum": of_file("a", b"y"),
    "files that are a number": packed({"a": b"x"}, files=3),
}


@pytest.mark.parametrize("case", REFUSED)
def test_file_that_is_not_a_backup_is_refused(tmp_path: Path, case: str) -> None:
    (tmp_path / "file.zip").write_bytes(REFUSED[case])
    with refused(StoreError, "file.zip") as caught:
        restore_backup(tmp_path / "file.zip", tmp_path / "new")
    assert "\n" not in str(caught.value)
    assert sorted(item.name for item in tmp_path.iterdir()) == ["file.zip"]


def test_cut_or_damaged_backup_is_refused_wherever_it_is_damaged(made: Path, tmp_path: Path) -> None:
    content, damaged, new = (made / "all.zip").read_bytes(), tmp_path / "damaged.zip", tmp_path / "new"
    new.mkdir()
    for length in (0, 1, 100, len(content) // 2, len(content) - 1):
        damaged.write_bytes(content[:length])
        with pytest.raises(StoreCorruptError):
            restore_backup(damaged, new)
        assert list(new.iterdir()) == []
    harmless = 0
    places = range(0, len(content), len(content) // (60 if full_run() else 12))
    for place in places:
        damaged.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        try:
            restore_backup(damaged, tmp_path / f"copy {place}")
        except StoreCorruptError:
            assert not (tmp_path / f"copy {place}").exists()
        else:  # a byte that says nothing, such as the time of an entry: then the content is what it was
            harmless += 1
            with closing(LocalStore(tmp_path / f"copy {place}" / ".ragistry")) as store:
                assert same(held(store), truth_of(A, B))
    assert harmless <= len(places) // 5


def test_only_an_empty_folder_is_restored_into(made: Path, tmp_path: Path) -> None:
    path, folder = made / "all.zip", tmp_path / "new"
    folder.mkdir()
    restore_backup(path, folder)
    before = files_in(folder)
    for target in (folder, path):
        with refused(ConfigError, target.name):
            restore_backup(path, target)
    assert files_in(folder) == before
    with refused(SourceNotFoundError, "none.zip"):
        restore_backup(tmp_path / "none.zip", tmp_path / "other")


# Full disks, places that cannot be written, and killed processes


def test_full_disk_leaves_nothing_and_works_later(made: Path, disk: Path, tmp_path: Path) -> None:  # noqa: F811
    root = shutil.copytree(made / "workspace", disk / "workspace")
    with closing(LocalStore(root / ".ragistry")) as store:
        put(store, BIG)
    with full(disk):
        with refused(StoreError, "all.zip"):
            backed_up(root, disk / "all.zip")
        assert sorted(item.name for item in disk.iterdir()) == ["ballast", "workspace"]
    backed_up(root, disk / "all.zip")
    shutil.rmtree(root)
    with full(disk):
        with refused(StoreError):
            restore_backup(disk / "all.zip", disk / "new")
        assert sorted(item.name for item in disk.iterdir()) == ["all.zip", "ballast"]
    restore_backup(disk / "all.zip", disk / "new")


def test_place_that_cannot_be_written_is_named(root: Path, tmp_path: Path) -> None:
    with refused(ConfigError, "such"):
        backed_up(root, tmp_path / "no" / "such" / "all.zip")
    with refused(StoreError, "workspace"):
        backed_up(root, root, force=True)
    (root / ".ragistry" / "repositories").write_text("not a folder", encoding="utf-8")
    with refused(StoreError, "repositories"):
        backed_up(root, tmp_path / "all.zip")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["workspace"]


STOPPED = """
import os, sys
from pathlib import Path
from ragistry.library.backup import restore_backup, write_backup
from ragistry.stores.local import LocalStore
work, path, folder, last = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
store, seen = LocalStore(folder / ".ragistry") if work == "backup" else None, 0
def count(event, arguments):
    global seen
    if event in ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree", "sqlite3.connect"):
        seen += work == "backup" or str(folder) in str(arguments[0])
        if seen == last:
            os._exit(77)
sys.addaudithook(count)
if work == "backup":
    write_backup(path, folder, store, folder / "none", force=True)
else:
    restore_backup(path, folder)
"""
"""Ends before so many steps of a backup, or of a restore."""


def test_killed_backup_leaves_the_earlier_one_or_a_whole_one(root: Path, tmp_path: Path) -> None:
    path, early = tmp_path / "all.zip", 0
    for last in (1, 4, 7, 10, 13) if full_run() else (4, 13):
        path.write_bytes(b"the earlier one")
        run(STOPPED, "backup", path, root, last, ends=77)
        if path.read_bytes() == b"the earlier one":
            early += 1
        else:
            restore_backup(path, tmp_path / f"restored {last}")
    assert early >= 1


@pytest.mark.slow
@pytest.mark.parametrize("exists", [False, True])
def test_killed_restore_is_recognised_and_begins_anew(made: Path, tmp_path: Path, exists: bool) -> None:
    path, whole, refusals, parts = made / "all.zip", tmp_path / "whole", 0, set()
    restore_backup(path, whole)
    for last in range(1, 60) if full_run() else (3, 6, 9, 12, 13, 14, 15, 16, 17):
        folder = tmp_path / "new"
        shutil.rmtree(folder, ignore_errors=True)
        if exists:
            folder.mkdir()
        with start(STOPPED, "restore", path, folder, last) as process:
            if process.wait(60) == 0:
                break
        if (folder / ".restoring").exists():
            refusals += 1
            parts |= {item.name for item in folder.iterdir()}
            with pytest.raises(ConfigError, match="restore FILE"):
                open_workspace(folder)
        elif files_in(folder):
            assert files_in(folder) == files_in(whole)
            continue
        restore_backup(path, folder)
        assert files_in(folder) == files_in(whole)
    assert refusals >= 5
    assert len(parts) > 1, "some kills left a part that had been moved"


def test_killed_restore_removes_nothing_that_it_did_not_write(made: Path, tmp_path: Path) -> None:
    path, folder = made / "all.zip", tmp_path / "new"
    (folder / ".restoring").mkdir(parents=True)
    for name, text in (("mine.txt", "precious"), ("config/mine.yaml", "precious"), ("shout.py", "LOUD = False\n")):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
        with refused(ConfigError, str(folder / name)):
            restore_backup(path, folder)
        assert (folder / name).read_text(encoding="utf-8") == text
        assert (folder / ".restoring").exists()
        (folder / name).unlink()
    restore_backup(path, folder)


def test_two_restores_to_one_folder_do_not_meet(made: Path, tmp_path: Path) -> None:
    (tmp_path / "new" / ".restoring").mkdir(parents=True)
    with refused(ConfigError, "new"):
        open_workspace(tmp_path / "new")
    with FileLock(tmp_path / "new" / ".restoring" / "lock"), refused(ConfigError, "new"):
        restore_backup(made / "all.zip", tmp_path / "new")
    restore_backup(made / "all.zip", tmp_path / "new")
