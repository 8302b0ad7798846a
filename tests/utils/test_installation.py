"""The command that adds an optional part works for this copy of Ragistry, as it is printed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from ragistry.plugins import DOORS
from ragistry.utils import installation
from ragistry.utils.installation import install_command

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OFFLINE = "--dry-run --no-deps --no-index --no-build-isolation --quiet"
REQUIRED = ["numpy>=2.0", "nicegui<4,>=3.18; extra == 'ui'", 'mcp<3,>=2.3; extra == "mcp"', "uvicorn; extra == 'ui'"]


def test_command_works_for_this_clone() -> None:
    command = install_command("ui")
    assert shlex.split(command)[-2:] == ["--editable", f"{ROOT}[ui]"]
    done = subprocess.run(f"{command} {OFFLINE}", shell=True, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_command_names_the_packages_outside_a_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "FOLDER", tmp_path)
    monkeypatch.setattr(metadata, "requires", lambda name: REQUIRED)
    begin = [sys.executable, "-m", "pip", "install"]
    assert shlex.split(install_command("ui")) == [*begin, "nicegui<4,>=3.18", "uvicorn"]
    assert shlex.split(install_command()) == [*begin, "numpy>=2.0"]


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
