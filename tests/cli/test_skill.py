"""``ragistry mcp skill``: the file that agents read, in the open format of Agent Skills."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.cli.conftest import Run
from tests.conftest import Corpus


def test_skill_has_the_front_matter_of_the_format_and_replaces_an_older_one(ragistry: Run, corpus: Corpus) -> None:
    old = "---\nname: ragistry\ncompatibility: Needs the command `ragistry`.\n---\n"
    path = corpus({"ragistry/SKILL.md": old}, folder=".agents/skills") / "ragistry" / "SKILL.md"
    assert ragistry("mcp", "skill", ".agents/skills").out == "wrote .agents/skills/ragistry/SKILL.md\n"
    _, front, body = path.read_text(encoding="utf-8").split("---\n", 2)
    head = yaml.safe_load(front)
    assert head["name"] == path.parent.name
    assert 100 < len(head["description"]) <= 1024
    assert len(head["compatibility"]) <= 500
    assert len(body.splitlines()) < 500


def test_a_file_from_elsewhere_is_never_replaced(ragistry: Run, tmp_path: Path) -> None:
    path = tmp_path / "skills" / "ragistry" / "SKILL.md"
    path.parent.mkdir(parents=True)
    for data in (b"---\nname: ragistry\ndescription: Something else.\n---\n", b"", b"\xff\xfe"):
        path.write_bytes(data)
        ragistry("mcp", "skill", "skills").refused(1, "skills/ragistry/SKILL.md")
        assert path.read_bytes() == data


def test_a_folder_that_cannot_be_written_and_options_of_the_server_are_refused(ragistry: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    ragistry("mcp", "skill", "file").refused(1, "file/ragistry/SKILL.md")
    ragistry("mcp", "skill").refused(2, "FOLDER")
    ragistry("mcp", "--http", "skill", "skills").refused(2, "--http", "skill")
