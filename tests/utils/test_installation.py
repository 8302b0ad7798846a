"""The command that adds an optional part works for this copy of Ragistry, as it is printed."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

from ragistry.plugins import DOORS
from ragistry.utils import installation
from ragistry.utils.installation import install_command

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OFFLINE = "--dry-run --no-deps --no-index --no-build-isolation --quiet"
METADATA = (
    "Metadata-Version: 2.1\nName: ragistry\nVersion: 0.1.0\nProvides-Extra: ui\nRequires-Dist: nicegui; extra == 'ui'\n"
)


class Installed:
    """A distribution that was installed from a place."""

    def __init__(self, **origin: object) -> None:
        self.origin = origin
        self.requires = [
            "numpy>=2.0",
            "nicegui<4,>=3.18; extra == 'ui'",
            'mcp<3,>=2.3; extra == "mcp"',
            "uvicorn; extra == 'ui'",
        ]

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return json.dumps(self.origin) if self.origin else None


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A wheel of Ragistry without content, in a folder whose name a shell would split."""
    path = tmp_path / "it's a folder" / "ragistry-0.1.0-py3-none-any.whl"
    path.parent.mkdir()
    with ZipFile(path, "w") as archive:
        archive.writestr("ragistry-0.1.0.dist-info/METADATA", METADATA)
        archive.writestr(
            "ragistry-0.1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("ragistry-0.1.0.dist-info/RECORD", "")
    return path


def run(command: str) -> None:
    done = subprocess.run(f"{command} {OFFLINE}", shell=True, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def words(monkeypatch: pytest.MonkeyPatch, installed: Installed | None, extra: str = "ui") -> list[str]:
    """The words after ``python -m pip install``."""
    monkeypatch.setattr(installation, "_distribution", lambda: installed)
    command = shlex.split(install_command(extra))
    assert command[:4] == [sys.executable, "-m", "pip", "install"]
    return command[4:]


def test_command_works_for_this_copy() -> None:
    command = install_command("ui")
    assert shlex.split(command)[-2:] == ["--editable", f"{ROOT}[ui]"]
    run(command)


def test_command_works_for_a_wheel(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert words(monkeypatch, Installed(url=wheel.as_uri(), archive_info={})) == [f"{wheel}[ui]"]
    run(install_command("ui"))


def test_command_names_the_folder_or_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Installed(url=tmp_path.as_uri(), dir_info={})
    assert words(monkeypatch, folder) == [f"{tmp_path}[ui]"]
    assert words(monkeypatch, folder, "") == [str(tmp_path)]
    commit = {"vcs": "git", "commit_id": "0123abc"}
    git = Installed(url="https://example.org/r.git", vcs_info=commit, subdirectory="python")
    assert words(monkeypatch, git) == ["ragistry[ui] @ git+https://example.org/r.git@0123abc#subdirectory=python"]
    url = "https://example.org/ragistry-0.1.0.tar.gz"
    assert words(monkeypatch, Installed(url=url, archive_info={})) == [f"ragistry[ui] @ {url}"]


def test_command_names_the_packages_without_a_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for installed in (Installed(), Installed(url=(tmp_path / "deleted.whl").as_uri(), archive_info={})):
        assert words(monkeypatch, installed) == ["nicegui<4,>=3.18", "uvicorn"]
        assert words(monkeypatch, installed, "") == ["numpy>=2.0"]


def test_command_for_source_files_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    assert words(monkeypatch, None) == ["--editable", f"{ROOT}[ui]"]


def test_environment_without_pip_uses_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "find_spec", lambda name: None)
    monkeypatch.setattr(installation.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert shlex.split(install_command("ui"))[:5] == ["uv", "pip", "install", "--python", sys.executable]


def test_messages_name_extras_by_the_command_only() -> None:
    used = set()
    for file in (ROOT / "ragistry").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"pip install '?ragistry", text), f"{file} names a package that no index has"
        used |= set(re.findall(r"""install_command\(.*['"](\w+)['"]\)""", text))
    used |= {extra for _, extra in DOORS.values()}
    assert used <= PYPROJECT["optional-dependencies"].keys()
    assert used >= {"ui", "mcp", "server", "postgres", "ray", "langchain", "multilingual", "datasets"}
