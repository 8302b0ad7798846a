"""Conventions that a reader may rely on, each checked over the whole package."""

from __future__ import annotations

import ast
import re
import subprocess

import pytest

from tests.conftest import ROOT

MODULES = sorted((ROOT / "ragistry").rglob("*.py"))
VAGUE = {"base", "common", "helpers", "helper", "manager", "handler", "misc"}


def test_no_module_has_a_vague_name() -> None:
    assert [path.name for path in MODULES if path.stem in VAGUE] == []


def test_every_module_and_public_class_and_function_has_a_docstring() -> None:
    missing = []
    for path in MODULES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        public = [
            node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name[0] != "_"
        ]
        missing += [
            f"{path.relative_to(ROOT)}: {getattr(node, 'name', 'the module')}"
            for node in (tree, *public)
            if tree.body and not ast.get_docstring(node)
        ]
    assert missing == []


def test_nothing_of_one_machine_is_in_the_repository() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    if not listed:
        pytest.skip("not a Git checkout")
    ours = re.compile("|".join(["/wo" + "rk/", "/fa" + "rm/", "files.pyth" + "onhosted", "npm" + "js.org"]))
    files = [ROOT / name for name in listed.splitlines() if not name.endswith((".pdf", ".png"))]
    texts = {path: path.read_bytes().decode("utf-8", errors="replace") for path in files if path.is_file()}
    assert [path for path, text in texts.items() if ours.search(text)] == [], "a path or host of one machine"


def test_pinned_versions_record_no_addresses() -> None:
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line), line


def test_no_test_measures_time() -> None:
    """Tests of growth count steps instead: `tests.visits`."""
    clock = re.compile(r"(?:(?:process|thread)_time|perf_counter|time\.time|monotonic)(?:_ns)?\(\) - ")
    tests = (ROOT / "tests").rglob("*.py")
    assert [path.name for path in tests if clock.search(path.read_text(encoding="utf-8"))] == []
