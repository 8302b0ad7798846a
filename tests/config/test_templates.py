"""Each commented line of the files that ``ragistry init`` writes can be used as it stands."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

from ragistry import open_workspace
from ragistry.cli.app import app
from ragistry.config.settings import DEFAULTS
from ragistry.config.yaml_file import read_yaml

FILES = sorted(DEFAULTS.glob("*.yaml"))
ENTRY = re.compile(r"^( *)# ((?:- \{|[a-z_]+: ).*)$", re.MULTILINE)
"""A setting in a comment. Comments in prose begin with a capital letter or are indented after the number sign."""
MODULE = """
from ragistry.stores.local import LocalStore

class Class(LocalStore):
    def generate(self, prompt, *, schema=None):
        return ""
"""
LINES = [(file, match) for file in FILES for match in ENTRY.finditer(file.read_text(encoding="utf-8"))]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace as ``ragistry init`` makes it, with all that its templates refer to."""
    assert CliRunner().invoke(app, ["init", "--yes", str(tmp_path)]).exit_code == 0
    (tmp_path / "module.py").write_text(MODULE, encoding="utf-8")
    for name in ("LLM_API_KEY", "DATABASE_URL"):
        monkeypatch.setenv(name, "postgresql://localhost/library")
    return tmp_path


def check(root: Path, name: str, text: str) -> None:
    """Load a workspace with this file, and check the file as an editor does."""
    path = root / "config" / name
    path.write_text(text, encoding="utf-8")
    with open_workspace(root):
        pass
    schema = root / "config" / "schemas" / name.replace(".yaml", ".schema.json")
    jsonschema.validate(read_yaml(path).data, json.loads(schema.read_text(encoding="utf-8")))


@pytest.mark.parametrize(("file", "match"), LINES, ids=[f"{file.stem}: {match[2][:30]}" for file, match in LINES])
def test_line_can_be_used_alone(root: Path, file: Path, match: re.Match[str]) -> None:
    text = file.read_text(encoding="utf-8")
    check(root, file.name, text[: match.start()] + match[1] + match[2] + text[match.end() :])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_lines_can_be_used_together(root: Path, file: Path) -> None:
    used: set[str] = set()

    def uncommented(match: re.Match[str]) -> str:
        key = match[2].partition(":")[0]
        if key in used:  # another choice for the same setting
            return match[0]
        used.add(key)
        return match[1] + match[2]

    check(root, file.name, ENTRY.sub(uncommented, file.read_text(encoding="utf-8")))
