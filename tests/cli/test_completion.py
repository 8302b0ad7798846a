"""What a shell offers after Tab."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ragistry.config.collections import CollectionsFile


def offered(line: str, folder: Path, **environ: str) -> list[str]:
    """As bash asks: the words so far, of which the last is being written."""
    words = {"_RAGISTRY_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    done = subprocess.run(
        [Path(sys.executable).with_name("ragistry")], cwd=folder, env=os.environ | words | environ,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.split()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("garden", "garage", "kitchen"):
        CollectionsFile(tmp_path).add(name)
    return tmp_path


@pytest.mark.parametrize(("line", "names"), [
    ("ragistry search x -t hyb", ["hybrid"]), ("ragistry search x -c ga", ["garden", "garage"]),
    ("ragistry sources move x --from ", ["garden", "garage", "kitchen"]),
    ("ragistry collections describe k", ["kitchen"]), ("ragistry mcp --collection k", ["kitchen"]),
])  # fmt: skip
def test_names_are_offered(root: Path, line: str, names: list[str]) -> None:
    assert offered(line, root) == names


def test_they_are_those_of_the_workspace_that_is_meant(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    away = tmp_path_factory.mktemp("away")
    assert offered("ragistry search x -c k", away) == []
    assert offered(f"ragistry -w {root} search x -c k", away) == ["kitchen"]
    assert offered(f"ragistry search -w {root} x -c k", away) == ["kitchen"]
    assert offered("ragistry search x -c k", away, RAGISTRY_WORKSPACE=str(root)) == ["kitchen"]


def test_while_a_file_has_a_mistake_nothing_is_offered(root: Path) -> None:
    for name in ("documents.yaml", "techniques.yaml"):
        (root / "config" / name).write_text("collections: [", encoding="utf-8")
    assert offered("ragistry search x -c k", root) == offered("ragistry search x -t n", root) == []
