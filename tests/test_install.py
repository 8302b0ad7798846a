"""``make install``: one line for each failure, and the next run completes what was interrupted."""

from __future__ import annotations

import ast
import errno
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
PIP = """#!/bin/sh
test "$1" = -c && exit 0
echo "$@" >> calls.txt
cat output.txt
exit $(cat code.txt)
"""
DONE = "Installing collected packages: ragistry\nSuccessfully installed ragistry-0.1.0\n"


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script over an empty clone; its environment is a program that plays pip."""
    spec = importlib.util.spec_from_file_location("install", ROOT / "scripts" / "install.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_text(name)

    def create(venv: Path) -> None:
        (venv / "bin").mkdir(parents=True, exist_ok=True)
        (venv / "bin" / "python").write_text(PIP)
        (venv / "bin" / "python").chmod(0o755)
        (venv / "created").write_text(f"{(venv / 'created').read_text() if (venv / 'created').exists() else ''}x")
        (venv / "unfinished").unlink(missing_ok=True)

    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "create", create)
    monkeypatch.chdir(tmp_path)
    return module


def pip_says(folder: Path, output: str, code: int = 0) -> None:
    (folder / "output.txt").write_text(output)
    (folder / "code.txt").write_text(str(code))


def calls(folder: Path) -> int:
    return len((folder / "calls.txt").read_text().splitlines())


def refusal(script: ModuleType, level: str = "installed") -> str:
    with pytest.raises(SystemExit) as caught:
        script.main(".venv", level)
    assert isinstance(caught.value.code, str)
    assert "\n" not in caught.value.code
    return caught.value.code


@pytest.fixture
def installed(script: ModuleType, tmp_path: Path) -> ModuleType:
    """The script after a first installation."""
    pip_says(tmp_path, DONE)
    script.main(".venv", "installed")
    return script


def times_created(folder: Path, venv: str = ".venv") -> int:
    return len((folder / venv / "created").read_text())


def test_packages_are_installed_once(installed: ModuleType, tmp_path: Path) -> None:
    assert "--editable=.[ui,mcp,server,chroma]" in (tmp_path / "calls.txt").read_text()
    for level, versions, expected in (
        ("installed", "", 1),
        ("dev", "", 2),
        ("installed", "", 2),
        ("installed", "other versions", 3),
        ("dev", "other versions", 4),
    ):
        (tmp_path / "constraints.txt").write_text(versions or "constraints.txt")
        installed.main(".venv", level)
        assert calls(tmp_path) == expected
    assert times_created(tmp_path) == 1


@pytest.mark.parametrize(
    ("output", "error", "is_kept"),
    [
        (
            "WARNING: Retrying (Retry(total=0 ...\nERROR: No matching distribution found for ray\n",
            "error: the packages cannot be downloaded; check the network connection and run make again",
            True,
        ),
        (
            "Installing collected packages: ray\nERROR: [Errno 28] No space left on device\n",
            "error: no space left on device; free some and run make again",
            False,
        ),
    ],
    ids=["no network", "interrupted"],
)
def test_failure_keeps_what_is_installed_unless_it_was_changed(
    installed: ModuleType, tmp_path: Path, output: str, error: str, is_kept: bool
) -> None:
    pip_says(tmp_path, output, 1)
    assert refusal(installed, "dev") == error
    assert installed.is_complete(tmp_path / ".venv", "installed") == is_kept
    pip_says(tmp_path, DONE)
    installed.main(".venv", "dev")
    assert times_created(tmp_path) == 2 - is_kept


def test_moved_clone_starts_anew(installed: ModuleType, tmp_path: Path) -> None:
    (tmp_path / ".venv").rename(tmp_path / "moved")
    installed.main("moved", "installed")
    assert times_created(tmp_path, "moved") == 2


def test_environment_of_an_earlier_version_is_kept(script: ModuleType, tmp_path: Path) -> None:
    script.create(tmp_path / ".venv")
    (tmp_path / ".venv" / "installed").touch()
    pip_says(tmp_path, DONE)
    script.main(".venv", "installed")
    assert times_created(tmp_path) == 1


def test_old_python_is_refused(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script.sys, "version_info", (3, 10, 13))
    assert refusal(script) == (
        "error: Ragistry needs Python 3.11 or newer, and this is 3.10.13; run make PYTHON=python3.11"
    )
    ast.parse((ROOT / "scripts" / "install.py").read_text(), feature_version=(3, 8))


def test_folder_of_someone_else_is_not_emptied(tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("keep")
    for folder, words in (
        (tmp_path, "was not made by make"),
        (tmp_path / "own.txt" / ".venv", os.strerror(errno.ENOTDIR)),
    ):
        command = [sys.executable, ROOT / "scripts" / "install.py", folder, "installed"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert words in done.stderr
    assert (tmp_path / "own.txt").read_text() == "keep"
