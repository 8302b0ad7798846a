"""A backup holds one state of every source, and is restored whole or not at all."""

from __future__ import annotations

import json
import shutil
import stat
from contextlib import closing
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo

import pytest

from ragistry import open_workspace
from ragistry.errors import ConfigError, RagistryError, SourceNotFoundError, StoreCorruptError, StoreError
from ragistry.library.backup import BackupReport, write_backup
from ragistry.library.repository_search import RepositoryTechnique
from ragistry.library.restore import restore_backup
from ragistry.stores.chroma import ChromaStore
from ragistry.stores.local import LocalStore
from ragistry.stores.postgres import PostgresStore
from ragistry.testing.postgres_server import postgres_server
from tests.library.git_trees import commit
from tests.stores.local_stores import ALL, check, held, put, same, truth_of, version_of, whole_versions
from tests.stores.scripts import start
from tests.stores.test_local_disk import disk, full  # noqa: F401, a fixture

A, B, BIG = version_of("a.md", 1), version_of("b.md", 1), version_of("big.md", 1, 900)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace's folder with a configuration and two sources."""
    root = tmp_path / "workspace"
    fill(root)
    return root


def fill(root: Path) -> None:
    (root / "config" / "schemas").mkdir(parents=True)
    (root / "config" / "documents.yaml").write_text("collections: [{name: c, description: Größe}]\n", encoding="utf-8")
    (root / "config" / "schemas" / "documents.schema.json").write_text("{}", encoding="utf-8")
    (root / "config" / ".env").write_text("KEY=hunter2", encoding="utf-8")
    (root / "shout.py").write_text("LOUD = True\n", encoding="utf-8")
    (root / "notes.txt").write_text("not part of the workspace", encoding="utf-8")
    with closing(LocalStore(root / ".ragistry")) as store:
        put(store, A, B)


def backed_up(root: Path, path: Path, **options: Any) -> BackupReport:
    with closing(LocalStore(root / ".ragistry")) as store:
        return write_backup(path, root, store, root / ".ragistry" / "repositories", **options)


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_restored_workspace_has_the_configuration_and_the_library(root: Path, tmp_path: Path) -> None:
    path, elsewhere = tmp_path / "all.zip", tmp_path / "far" / "away"
    report = backed_up(root, path)
    assert (report.size, report.sources, report.chunks) == (path.stat().st_size, 2, 6)
    shutil.rmtree(root)
    manifest = restore_backup(path, elsewhere)
    assert manifest.program.startswith("ragistry ")
    restored = files_in(elsewhere)
    assert set(restored) == {"config/documents.yaml", "config/schemas/documents.schema.json", "shout.py"} | {
        ".ragistry/store.db"
    }
    assert restored["config/documents.yaml"] == "collections: [{name: c, description: Größe}]\n".encode()
    with closing(LocalStore(elsewhere / ".ragistry")) as store:
        check(store, truth_of(A, B))
        put(store, BIG)
        check(store, truth_of(A, B, BIG), every=100)


def test_a_backup_is_for_its_owner_alone_and_leaves_nothing_beside_it(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "all.zip"
    backed_up(root, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(item.name for item in tmp_path.iterdir()) == ["all.zip", "workspace"]


def test_any_program_that_reads_zip_files_unpacks_a_backup(root: Path, tmp_path: Path) -> None:
    backed_up(root, tmp_path / "all.zip")
    with ZipFile(tmp_path / "all.zip") as archive:
        archive.extractall(tmp_path / "unpacked")
    with closing(LocalStore(tmp_path / "unpacked" / ".ragistry")) as store:
        check(store, truth_of(A, B))


def test_a_file_that_is_there_is_replaced_only_by_force(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "all.zip"
    path.write_bytes(b"precious")
    with pytest.raises(ConfigError, match="already exists.*--force"):
        backed_up(root, path)
    assert path.read_bytes() == b"precious"
    backed_up(root, path, force=True)
    restore_backup(path, tmp_path / "new")


WRITER = """
import sys
from pathlib import Path
from tests.stores.local_stores import *
store = LocalStore(sys.argv[1])
for number in range(2, 100_000):
    for name in "abcde":
        put(store, version_of(f"{name}.md", number, 2 + number % 3))
    store.delete(where={"source_file": "e.md"})
    if number == 3:
        print("ready", flush=True)
"""


def test_a_backup_beside_a_writer_has_one_whole_version_of_every_source(root: Path, tmp_path: Path) -> None:
    with start(WRITER, root / ".ragistry") as writer:
        try:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
            for number in range(5):
                backed_up(root, tmp_path / f"{number}.zip")
        finally:
            writer.kill()
    seen = set()
    for number in range(5):
        folder = tmp_path / f"restored {number}"
        restore_backup(tmp_path / f"{number}.zip", folder)
        with closing(LocalStore(folder / ".ragistry")) as store:
            assert store.verify() == []
            versions = whole_versions(store.search(ALL, 1_000))
            check(store, held(store))
        assert {"a.md", "b.md", "c.md", "d.md"} <= versions.keys()
        seen.add(tuple(sorted(versions.items())))
    assert len(seen) > 1, "the writer wrote between the backups"


def test_deleted_text_is_not_in_a_backup(root: Path, tmp_path: Path) -> None:
    secret = b"Heliotrope"
    with closing(LocalStore(root / ".ragistry")) as store:
        put(store, [c._replace(text=f"The codename is Heliotrope. {c.text}") for c in BIG])
        store.replace_source("c", "big.md", [])
        with closing(LocalStore(root / ".ragistry")) as other:  # the log is not yet gone
            write_backup(tmp_path / "all.zip", root, other, root / "none")
    restore_backup(tmp_path / "all.zip", tmp_path / "new")
    assert not [name for name, content in files_in(tmp_path / "new").items() if secret in content]
    with closing(LocalStore(tmp_path / "new" / ".ragistry")) as store:
        check(store, truth_of(A, B))


def test_the_library_of_another_engine_is_restored_into_a_local_store(root: Path, tmp_path: Path) -> None:
    with closing(ChromaStore(tmp_path / "chroma")) as store:
        put(store, A, BIG)
        report = write_backup(tmp_path / "all.zip", root, store, root / "none")
    assert (report.sources, report.chunks) == (2, 903)
    restore_backup(tmp_path / "all.zip", tmp_path / "new")
    with closing(LocalStore(tmp_path / "new" / ".ragistry")) as copy:
        check(copy, truth_of(A, BIG), every=100)


def test_the_library_in_postgres_is_backed_up_while_it_is_written_to(root: Path, tmp_path: Path) -> None:
    with (
        postgres_server() as server,
        closing(PostgresStore(server.url)) as store,
        closing(PostgresStore(server.url)) as other,
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


def test_repositories_are_restored_and_searched_on_another_machine(tmp_path: Path) -> None:
    clone, root = tmp_path / "clone", tmp_path / "workspace"
    clone.mkdir()
    root.mkdir()
    commit(clone, {"tea.md": "# Tea\n\nSteep green tea at eighty degrees.", "rain.md": "# Rain\n\nRain in the night."})
    with open_workspace(root) as workspace:
        workspace.repositories.add(clone, "guides", "How to do things")
        workspace.library.create_collection("notes", "Notes")
        workspace.library.ingest_text("Coffee is roasted.", "coffee.txt", "notes")
        report = write_backup(tmp_path / "all.zip", root, workspace.store, workspace.repositories.root)
    assert report.repositories == ["guides"]
    shutil.rmtree(root)
    shutil.rmtree(clone)
    restore_backup(tmp_path / "all.zip", tmp_path / "new")
    with open_workspace(tmp_path / "new") as workspace:
        [info] = workspace.repositories.infos()
        assert (info.name, info.chunk_count) == ("guides", 2)
        collection = workspace.repositories.collection("guides")
        technique = RepositoryTechnique(collection, partial(workspace.technique_over, name="bm25"))
        assert [d.metadata["file_path"] for d in technique.retrieve("green tea")] == ["tea.md"]
        assert workspace.store.verify() == []
        assert workspace.search("roasted coffee").documents[0].metadata["source_file"] == "coffee.txt"


# Restoring what is not a whole backup


def refused(path: Path, folder: Path, error: type[RagistryError], match: str) -> None:
    """One line says why, and nothing was made."""
    before = folder.exists()
    with pytest.raises(error, match=match) as raised:
        restore_backup(path, folder)
    assert "\n" not in str(raised.value)
    assert folder.exists() == before
    assert not before or not list(folder.iterdir())


def test_a_backup_that_was_cut_off_is_refused(root: Path, tmp_path: Path) -> None:
    path, cut = tmp_path / "all.zip", tmp_path / "cut.zip"
    backed_up(root, path)
    content = path.read_bytes()
    for length in (0, 1, 100, len(content) // 2, len(content) - 1):
        cut.write_bytes(content[:length])
        refused(cut, tmp_path / "new", StoreCorruptError, "not a whole backup.*copy the file again")


def test_a_damaged_byte_is_found_wherever_it_is(root: Path, tmp_path: Path) -> None:
    path, damaged = tmp_path / "all.zip", tmp_path / "damaged.zip"
    backed_up(root, path)
    content = path.read_bytes()
    (tmp_path / "new").mkdir()
    harmless = 0
    for place in range(0, len(content), len(content) // 60):
        damaged.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        try:
            restore_backup(damaged, tmp_path / f"copy {place}")
        except StoreCorruptError:
            assert not (tmp_path / f"copy {place}").exists()
        else:  # a byte that says nothing, such as the time of an entry: then the content is what it was
            harmless += 1
            with closing(LocalStore(tmp_path / f"copy {place}" / ".ragistry")) as store:
                assert same(held(store), truth_of(A, B))
    assert harmless < 10


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "not a whole backup"), (b"PK\x03\x04 no zip", "not a whole backup"), (b"x" * 10_000, "not a whole backup")],
)
def test_a_foreign_file_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "foreign").write_bytes(content)
    refused(tmp_path / "foreign", tmp_path / "new", StoreCorruptError, said)


def packed(path: Path, entries: dict[str, bytes], *, mode: int = 0, **manifest: Any) -> Path:
    """A zip file of these entries with a manifest that fits them, unless it is given otherwise."""
    files = {name: {"size": len(text), "sha256": sha256(text).hexdigest()} for name, text in entries.items()}
    said = {"format": 1, "program": "ragistry 0.1.0", "created": "2025-09-30T14:00:00+00:00", "files": files} | manifest
    with ZipFile(path, "w") as archive:
        for name, text in entries.items():
            info = ZipInfo(name)
            info.external_attr = mode << 16
            archive.writestr(info, text)
        archive.writestr("manifest.json", json.dumps(said))
    return path


def test_a_zip_file_without_a_manifest_is_refused(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "photos.zip", "w") as archive:
        archive.writestr("photo.jpg", b"x")
    refused(tmp_path / "photos.zip", tmp_path / "new", StoreCorruptError, "not a backup of Ragistry; name a file")


@pytest.mark.parametrize("name", ["../out.txt", "/tmp/out.txt", "config/../../out.txt", "a/..", "", ".", "config/"])
def test_an_entry_that_leads_out_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    path = packed(tmp_path / "evil.zip", {name: b"x", "config/documents.yaml": b""})
    refused(path, tmp_path / "new", StoreCorruptError, "is not a plain file below the folder")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["evil.zip"]


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_an_entry_that_is_a_link_or_a_device_is_refused(tmp_path: Path, kind: int) -> None:
    path = packed(tmp_path / "evil.zip", {"config/documents.yaml": b"/etc/passwd"}, mode=kind | 0o777)
    refused(path, tmp_path / "new", StoreCorruptError, "is not a plain file")


def test_a_backup_of_another_format_names_the_program_that_made_it(tmp_path: Path) -> None:
    path = packed(tmp_path / "later.zip", {"a": b"x"}, format=99, program="ragistry 9.9", key={"id": 1})
    refused(path, tmp_path / "new", StoreError, "made by 'ragistry 9.9' .format 99, this one has 1.; restore it with")


MANIFESTS: dict[str, dict[str, Any]] = {
    "a file that is not there": {"files": {"b": {"size": 1, "sha256": "0" * 64}}},
    "no files": {"files": {}},
    "another size": {"files": {"a": {"size": 2, "sha256": sha256(b"x").hexdigest()}}},
    "a smaller size": {"files": {"a": {"size": 0, "sha256": sha256(b"").hexdigest()}}},
    "another checksum": {"files": {"a": {"size": 1, "sha256": "0" * 64}}},
    "nonsense": {"files": 3},
    "no format": {"format": None},
}


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_a_manifest_that_does_not_fit_is_refused(tmp_path: Path, manifest: str) -> None:
    path = packed(tmp_path / "odd.zip", {"a": b"x"}, **MANIFESTS[manifest])
    refused(path, tmp_path / "new", StoreCorruptError, "copy the file again|not a whole backup")


def test_only_an_empty_folder_is_restored_into(root: Path, tmp_path: Path) -> None:
    path, folder = tmp_path / "all.zip", tmp_path / "new"
    backed_up(root, path)
    folder.mkdir()
    restore_backup(path, folder)
    before = files_in(folder)
    with pytest.raises(ConfigError, match="is not an empty folder"):
        restore_backup(path, folder)
    with pytest.raises(ConfigError, match="is not an empty folder"):
        restore_backup(path, path)
    assert files_in(folder) == before
    with pytest.raises(SourceNotFoundError, match="there is no file"):
        restore_backup(tmp_path / "none.zip", tmp_path / "other")


# A full disk, and places that cannot be written


def test_a_backup_onto_a_full_disk_leaves_nothing_and_works_later(disk: Path) -> None:  # noqa: F811
    root = disk / "workspace"
    fill(root)
    with full(disk):
        with pytest.raises(StoreError, match="space"):
            backed_up(root, disk / "all.zip")
        assert sorted(item.name for item in disk.iterdir()) == ["ballast", "workspace"]
    backed_up(root, disk / "all.zip")
    restore_backup(disk / "all.zip", disk / "new")


def test_a_restore_onto_a_full_disk_leaves_nothing_and_works_later(
    tmp_path_factory: pytest.TempPathFactory,
    disk: Path,  # noqa: F811
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    fill(elsewhere)
    with closing(LocalStore(elsewhere / ".ragistry")) as store:
        put(store, BIG)
    backed_up(elsewhere, elsewhere / "all.zip")
    with full(disk):
        refused(elsewhere / "all.zip", disk / "new", StoreError, "No space left.*make room on the disk")
    restore_backup(elsewhere / "all.zip", disk / "new")


def test_a_place_that_cannot_be_written_is_named(root: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no folder .*such' for the backup"):
        backed_up(root, tmp_path / "no" / "such" / "all.zip")
    with pytest.raises(StoreError, match="workspace' cannot be written: Is a directory; "):
        backed_up(root, root, force=True)
    (root / ".ragistry" / "repositories").write_text("not a folder", encoding="utf-8")
    with pytest.raises(StoreError, match="the collections in .*repositories' cannot be opened"):
        backed_up(root, tmp_path / "all.zip")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["workspace"]


KILLED = """
import os, sys
from pathlib import Path
from ragistry.library.backup import write_backup
from tests.stores.local_stores import *
root, path, last = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
store, seen = LocalStore(root / ".ragistry"), 0
def count(event, arguments):
    global seen
    if event in ("open", "os.rename", "os.mkdir", "sqlite3.connect"):
        seen += 1
        if seen == last:
            os._exit(77)
sys.addaudithook(count)
write_backup(path, root, store, root / "none", force=True)
"""


def test_a_killed_backup_leaves_the_earlier_one_or_a_whole_one(root: Path, tmp_path: Path) -> None:
    path, early = tmp_path / "all.zip", 0
    for last in (1, 4, 7, 10, 13):
        path.write_bytes(b"the earlier one")
        with start(KILLED, root, path, last) as process:
            assert process.wait(60) == 77
        if path.read_bytes() == b"the earlier one":
            early += 1
        else:
            restore_backup(path, tmp_path / f"restored {last}")
    assert early >= 2
