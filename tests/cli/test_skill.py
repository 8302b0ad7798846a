"""``ragistry skill``: the file that agents read, in the open format of Agent Skills."""

from __future__ import annotations

from ruamel.yaml import YAML

from tests.cli.conftest import Run
from tests.conftest import Corpus


def test_skill_has_the_front_matter_of_the_format_and_replaces_an_older_one(ragistry: Run, corpus: Corpus) -> None:
    path = corpus({"ragistry/SKILL.md": "old"}, folder=".agents/skills") / "ragistry" / "SKILL.md"
    assert ragistry("skill", ".agents/skills").out == "wrote .agents/skills/ragistry/SKILL.md\n"
    _, front, body = path.read_text(encoding="utf-8").split("---\n", 2)
    head = YAML(typ="safe").load(front)
    assert head["name"] == path.parent.name
    assert 100 < len(head["description"]) <= 1024
    assert len(head["compatibility"]) <= 500
    assert len(body.splitlines()) < 500
