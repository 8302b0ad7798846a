"""A mistake in one entry of techniques.yaml: it blocks that technique and what builds on it, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ragistry import open_workspace
from ragistry.errors import InvalidConfigError
from tests.cli.conftest import Done

TECHNIQUES = """\
default: {default}
techniques:
  naive: {{use: naive}}
  wrong: {{use: bm25, top_kk: 3}}
  over: {{use: mmr, base: wrong}}
  a: {{use: mmr, base: b}}
  b: {{use: mmr, base: a}}
"""
SAID = r"techniques.yaml:4: techniques.wrong.top_kk: unknown setting 'top_kk'; did you mean 'top_k'\?"


def write(root: Path, default: str = "naive") -> None:
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "techniques.yaml").write_text(TECHNIQUES.format(default=default), encoding="utf-8")


def test_a_broken_entry_blocks_only_itself_and_what_builds_on_it(tmp_path: Path) -> None:
    write(tmp_path)
    with open_workspace(tmp_path) as workspace:
        workspace.library.create_collection("notes")
        workspace.library.ingest_text("Green tea.", "tea.txt", "notes")
        assert workspace.search("tea").documents
        assert workspace.registry.names() == ["naive"]
        for name in ("wrong", "over"):
            with pytest.raises(InvalidConfigError, match=SAID):
                workspace.search("tea", technique=name)
        for name in ("a", "b"):
            with pytest.raises(InvalidConfigError, match="techniques build on each other: a -> b -> a"):
                workspace.search("tea", technique=name)
    write(tmp_path, default="wrong")
    with open_workspace(tmp_path) as workspace, pytest.raises(InvalidConfigError, match=SAID):
        workspace.search("tea")


def test_ingest_works_while_an_entry_is_broken_and_techniques_and_doctor_list_it(
    ragistry: Callable[..., Done], tmp_path: Path
) -> None:
    write(tmp_path)
    (tmp_path / "tea.md").write_text("# Tea\n\nGreen tea.\n", encoding="utf-8")
    assert ragistry("ingest", tmp_path / "tea.md", "--collection", "notes", "--create", "Notes").code == 0
    listed = ragistry("techniques")
    assert (listed.code, "naive" in listed.out) == (0, True)
    assert re.search(SAID, listed.err)
    assert "wrong" in ragistry("techniques", "--json").json["broken"]
    examined = ragistry("doctor")
    assert (examined.code, bool(re.search(SAID, " ".join(examined.out.split())))) == (1, True), examined.out
    done = ragistry("search", "tea", "-t", "wrong")
    assert done.code != 0
    assert re.search(SAID, done.err)
