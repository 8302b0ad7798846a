"""A package that `ragistry technique new` writes works before anything in it is changed."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.conftest import Corpus

NAME = "newest_first"
FILES = {"pyproject.toml", f"{NAME}.py", "config/techniques.yaml", f"tests/test_{NAME}.py", "README.md"}


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A workspace that was opened leaves its folder on the path, and its modules loaded."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop(NAME, None)


@pytest.fixture
def package(ragistry: Run, tmp_path: Path) -> Path:
    done = ragistry("technique", "new", NAME)
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith(f"next: cd {NAME} && python -m pytest\n")
    return tmp_path / NAME


def run(python: Path | str, *words: str, cwd: Path) -> str:
    """What a module prints that Python runs in a folder."""
    done = subprocess.run([python, "-m", *words], cwd=cwd, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_package_can_be_installed_and_is_then_known_by_its_name(package: Path, corpus: Corpus, tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="builds the package; it is in the extra [dev]")
    pytest.importorskip("editables", reason="needed by hatchling; it is in the extra [dev]")
    assert files(package) == FILES
    environment = tmp_path / "environment"
    venv.create(environment, symlinks=True)
    scripts, theirs = (sysconfig.get_path(name, vars={"base": str(environment)}) for name in ("scripts", "purelib"))
    python, ours = Path(scripts, "python"), sysconfig.get_path("purelib")
    Path(theirs, "ours.pth").write_text(f"import site; site.addsitedir({ours!r})\n", encoding="utf-8")
    offline = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    run(sys.executable, "pip", "--python", str(python), "install", *offline, "--editable", NAME, cwd=tmp_path)
    assert '"from": "newest-first"' in run(python, "ragistry", "techniques", "--available", "--json", cwd=tmp_path)
    entries = f"techniques: {{naive: {{use: naive}}, cut: {{use: {NAME}, base: naive, share: 0.9}}}}\n"
    corpus({"techniques.yaml": entries}, folder="config")
    assert NAME in run(python, "ragistry", "techniques", cwd=tmp_path), "in any workspace"


def test_readme_of_the_package_shows_three_commands_that_work(package: Path, ragistry: Run, corpus: Corpus) -> None:
    text = (package / "README.md").read_text(encoding="utf-8")
    commands = text.partition("```sh\n")[2].partition("```")[0].splitlines()
    assert [line.split()[0] for line in commands] == ["python", "python", "ragistry"]
    topics = ("Restore a backup", "Upgrade the server", "Water the tomatoes", "Prune the roses")
    notes = corpus({f"{topic[:5]}.md": f"# {topic}\n\nHow to do that, and when.\n" for topic in topics})
    assert ragistry("testset", "make", "set", "--from", notes, "--kind", "title").code == 0
    words = commands[2].replace("TESTSET", "set").split()[1:]
    assert ragistry(*words, "--workspace", package).code == 0


def test_folder_can_be_chosen(ragistry: Run, tmp_path: Path) -> None:
    done = ragistry("technique", "new", NAME, "--out", "some where/else", "--json")
    assert done.json["class"] == "NewestFirst"
    assert files(tmp_path / "some where" / "else") == FILES
    assert {Path(name).relative_to("some where/else").as_posix() for name in done.json["written"]} == FILES
    ragistry("technique", "new", NAME, "--out", "some where").refused(1, "'some where'", "--out FOLDER")
    assert "new" in ragistry("technique").out
