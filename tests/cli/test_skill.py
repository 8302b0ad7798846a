"""``ragistry skill``: the file that agents read, in the open format of Agent Skills."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ruamel.yaml import YAML

from tests.cli.conftest import Done

Run = Callable[..., Done]


def test_the_skill_has_the_front_matter_of_the_format(ragistry: Run, tmp_path: Path) -> None:
    assert ragistry("skill", ".agents/skills").out == "wrote .agents/skills/ragistry/SKILL.md\n"
    path = tmp_path / ".agents" / "skills" / "ragistry" / "SKILL.md"
    _, front, body = path.read_text(encoding="utf-8").split("---\n", 2)
    head = YAML(typ="safe").load(front)
    assert head["name"] == path.parent.name
    assert 100 < len(head["description"]) <= 1024
    assert len(head["compatibility"]) <= 500
    assert len(body.splitlines()) < 500


def test_the_skill_replaces_an_older_one(ragistry: Run, tmp_path: Path) -> None:
    path = tmp_path / "ragistry" / "SKILL.md"
    path.parent.mkdir()
    path.write_text("old", encoding="utf-8")
    assert ragistry("skill", ".").code == 0
    assert path.read_text(encoding="utf-8").startswith("---\nname: ragistry\n")


def test_a_folder_that_cannot_be_written_is_one_line(ragistry: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = ragistry("skill", "file")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert done.err.startswith("error: cannot write 'file/ragistry/SKILL.md'")
