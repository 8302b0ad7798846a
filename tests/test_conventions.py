"""Conventions that a reader may rely on, each checked over the whole package."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "ragistry").rglob("*.py"))
VAGUE = {"base", "common", "helpers", "helper", "manager", "handler", "misc"}


def test_modules_are_short() -> None:
    lengths = sorted(len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES if path.stat().st_size)
    assert lengths[len(lengths) // 2] < 120
    assert lengths[-1] <= 500


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [path.name for path in MODULES if path.stem in VAGUE] == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_and_public_class_says_what_it_is(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if not tree.body:
        return
    assert ast.get_docstring(tree), "the module has no docstring"
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{node.name} has no docstring"


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    return [ROOT / name for name in listed.splitlines()]


def test_nothing_of_one_machine_is_in_the_repository() -> None:
    files = tracked()
    if not files:
        pytest.skip("not a Git checkout")
    ours = re.compile("|".join(["/wo" + "rk/", "/fa" + "rm/", "files.pyth" + "onhosted", "npm" + "js.org"]))
    for path in files:
        if path.suffix not in {".pdf", ".png"} and path.is_file():
            text = path.read_bytes().decode("utf-8", errors="replace")
            assert not ours.search(text), f"{path.relative_to(ROOT)} names a path or host of one machine"


def test_pinned_versions_record_no_addresses() -> None:
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line), line
