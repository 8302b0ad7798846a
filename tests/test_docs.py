"""What README shows is run, and every command and technique that exists is in the documents."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ragistry import TechniqueRegistry
from ragistry.cli.app import app
from ragistry.techniques.catalogue import offers
from tests.cli.conftest import ragistry  # noqa: F401, the fixture

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def test_the_commands_and_the_code_of_readme_run(
    ragistry: Callable,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copytree(ROOT / "fixtures" / "handbook", tmp_path / "fixtures" / "handbook")
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    for line in blocks("sh")[1].splitlines():
        done = ragistry(*shlex.split(line)[1:])
        assert done.code == 0, f"{line}: {done.err}"
    first, *others = blocks("python")
    exec(compile(first, "README.md", "exec"), {})
    assert re.search(r"^0\.\d{3} \S+\.md ", capsys.readouterr().out, flags=re.MULTILINE)
    (tmp_path / "shout.py").write_text(others[0], encoding="utf-8")
    (tmp_path / "config" / "techniques.yaml").write_text(blocks("yaml")[0], encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    for name in TechniqueRegistry.load(tmp_path / "config" / "techniques.yaml").names():
        done = ragistry("search", "restore a backup", "--technique", name, "--json")
        assert done.code == 0, done.err
        assert done.json["total_results"] > 0


def test_the_technique_of_readme_is_short() -> None:
    assert len(blocks("python")[1].splitlines()) < 15


def test_every_command_is_in_readme() -> None:
    names = {info.name or info.callback.__name__ for info in app.registered_commands if info.callback}
    missing = [name for name in names - {"config"} if f"ragistry {name}" not in README]
    assert missing == []


def test_every_built_in_technique_is_in_readme() -> None:
    built_in = {name for name, offer in offers().items() if offer.distribution == "ragistry"} - {"naive_rag"}
    assert [name for name in built_in if f"| `{name}` |" not in README] == []
