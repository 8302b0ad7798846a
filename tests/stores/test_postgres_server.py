"""The Postgres server of the tests starts where another user cannot enter the folder of its programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import postgres_server as server_module
from tests.postgres_server import INSTALLATION, PACKAGE, postgres_server, programs_of

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")
PROGRAMS = ("postgres", "initdb", "pg_basebackup")


@pytest.fixture
def private_package(tmp_path: Path) -> Path:
    """A copy of the installed package in a folder that only root can enter, written under the strictest umask."""
    origin = find_spec(PACKAGE).origin  # type: ignore[union-attr]
    installed = Path(origin).parent  # type: ignore[arg-type]
    tmp_path.chmod(0o700)
    package = tmp_path / PACKAGE
    shutil.copytree(installed / INSTALLATION / "bin", package / INSTALLATION / "bin")
    shutil.copytree(installed.with_name(f"{PACKAGE}.libs"), package.with_name(f"{PACKAGE}.libs"))
    for path in tmp_path.rglob("*"):
        path.chmod(path.stat().st_mode & 0o700)
    return package


@pytest.fixture
def open_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder for temporary files that every user can enter."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


def starts_as_nobody(program: Path) -> bool:
    done = subprocess.run([program, "--version"], cwd="/", user="nobody", capture_output=True, text=True, check=False)
    return done.returncode == 0 and "PostgreSQL" in done.stdout


def test_programs_of_private_folder_start_from_a_copy_that_is_kept_until_it_is_damaged(
    private_package: Path, open_folder: Path
) -> None:
    programs = programs_of(private_package)
    assert programs.is_relative_to(open_folder)
    for name in PROGRAMS:
        libraries = subprocess.run(["ldd", programs / name], capture_output=True, text=True, check=True).stdout
        assert "not found" not in libraries
        assert str(private_package.parent) not in libraries
        assert starts_as_nobody(programs / name)
    before = programs.stat().st_ino
    assert programs_of(private_package) == programs
    assert programs.stat().st_ino == before
    shutil.rmtree(programs.parents[2] / f"{PACKAGE}.libs")
    assert starts_as_nobody(programs_of(private_package) / "initdb")


def test_private_folder_for_temporary_files_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(server_module, "MEMORY", tmp_path)
    with postgres_server() as server:
        assert not server.folder.is_relative_to(tmp_path)
        assert server.execute("SELECT 1") == [(1,)]
