"""What a shell offers after Tab."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ragistry.config.collections import CollectionsFile
from tests.cli.conftest import Run

Offered = Callable[[str], list[str]]


def asked(line: str) -> dict[str, str]:
    """The environment in which bash asks: the words so far, of which the last is being written."""
    return {"_RAGISTRY_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("garden", "garage", "kitchen"):
        CollectionsFile(tmp_path).add(name)
    return tmp_path


@pytest.fixture
def offered(ragistry: Run, monkeypatch: pytest.MonkeyPatch) -> Offered:
    def complete(line: str) -> list[str]:
        with monkeypatch.context() as shell:
            for name, value in asked(line).items():
                shell.setenv(name, value)
            done = ragistry()
        assert done.err == ""
        return done.out.split()

    return complete


def test_names_of_techniques_and_collections_are_offered(root: Path, offered: Offered) -> None:
    assert offered("ragistry search x -t hyb") == ["hybrid"]
    assert offered("ragistry search x -c ga") == ["garden", "garage"]
    assert offered("ragistry sources move x --from ") == ["garden", "garage", "kitchen"]
    assert offered("ragistry collections describe k") == ["kitchen"]
    assert offered("ragistry mcp --collection k") == ["kitchen"]


def test_names_are_those_of_the_workspace_that_is_meant(
    root: Path, offered: Offered, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("away"))
    assert offered("ragistry search x -c k") == []
    assert offered(f"ragistry -w {root} search x -c k") == ["kitchen"]
    assert offered(f"ragistry search -w {root} x -c k") == ["kitchen"]
    monkeypatch.setenv("RAGISTRY_WORKSPACE", str(root))
    assert offered("ragistry search x -c k") == ["kitchen"]


def test_nothing_is_offered_while_a_file_has_a_mistake(root: Path, offered: Offered) -> None:
    for name in ("documents.yaml", "techniques.yaml"):
        (root / "config" / name).write_text("collections: [", encoding="utf-8")
    assert offered("ragistry search x -c k") == offered("ragistry search x -t n") == []


def test_installed_script_completes(root: Path) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("ragistry")], env=os.environ | asked("ragistry search x -c k"),
        cwd=root, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("kitchen\n", "")
