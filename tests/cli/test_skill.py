"""``ragistry skill``: the file that agents read, in the open format of Agent Skills."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.cli.conftest import Run
from tests.conftest import Corpus


def test_skill_has_the_front_matter_of_the_format_and_replaces_an_older_one(ragistry: Run, corpus: Corpus) -> None:
    old = "---\nname: ragistry\ncompatibility: Needs the command `ragistry`.\n---\n"
    path = corpus({"ragistry/SKILL.md": old}, folder=".agents/skills") / "ragistry" / "SKILL.md"
    assert ragistry("skill", ".agents/skills").out == "wrote .agents/skills/ragistry/SKILL.md\n"
    _, front, body = path.read_text(encoding="utf-8").split("---\n", 2)
    head = YAML(typ="safe").load(front)
    assert head["name"] == path.parent.name
    assert 100 < len(head["description"]) <= 1024
    assert len(head["compatibility"]) <= 500
    assert len(body.splitlines()) < 500


FOREIGN = "---\nname: ragistry\ndescription: Something else.\n---\n"


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Home folder of a person with three agents, two of which read the same skills."""
    folder = tmp_path / "home"
    for name in (".claude", ".codex", ".gemini"):
        (folder / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    return folder


def test_install_shows_the_lines_and_writes_only_after_consent(ragistry: Run, home: Path) -> None:
    paths = [home / name / "skills" / "ragistry" / "SKILL.md" for name in (".agents", ".claude")]
    asked = ragistry("skill", "--install")
    assert asked.code == 1
    assert asked.out.count("+name: ragistry\n") == 1
    assert all(f"{path} (" in asked.out for path in paths)
    assert not any(path.exists() for path in paths)
    assert ragistry("skill", "--install", "--yes").code == 0
    assert len({path.read_text(encoding="utf-8") for path in paths}) == 1
    again = ragistry("skill", "--install")
    assert (again.code, again.out.count("is up to date"), again.out.count("wrote")) == (0, 2, 0)
    paths[0].write_text(paths[0].read_text(encoding="utf-8").replace("# Ragistry\n", "# An older one\n"))
    changed = ragistry("skill", "--install", "--yes").out
    assert "-# An older one\n+# Ragistry\n" in changed
    assert changed.count("wrote") == 1


def test_a_file_from_elsewhere_is_never_replaced(ragistry: Run, home: Path) -> None:
    for data in (FOREIGN.encode(), b"", b"\xff\xfe"):
        path = home / ".claude" / "skills" / "ragistry" / "SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        done = ragistry("skill", "--install", "--yes")
        assert done.code == 1
        assert f"{path} (Claude Code) is not from Ragistry" in done.out
        ragistry("skill", str(home / ".claude" / "skills")).refused(1, path)
        assert path.read_bytes() == data
    assert (home / ".agents" / "skills" / "ragistry" / "SKILL.md").exists(), "the other agents have it"


def test_install_without_agents_names_the_remedy(ragistry: Run, home: Path) -> None:
    for name in (".claude", ".codex", ".gemini"):
        (home / name).rmdir()
    ragistry("skill", "--install", "--yes").refused(1, home)
    for words in ((), ("--yes",), ("skills", "--install"), ("skills", "--yes")):
        ragistry("skill", *words).refused(2)
