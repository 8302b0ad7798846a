"""A package that `ragistry technique new` writes works before anything in it is changed; errors in a technique."""

from __future__ import annotations

import ast
import subprocess
import sys
import sysconfig
import tomllib
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ragistry import open_workspace
from ragistry.errors import InvalidLimitError
from tests.cli.conftest import Done

Run = Callable[..., Done]
NAME = "newest_first"
FILES = {"pyproject.toml", f"{NAME}.py", "config/techniques.yaml", f"tests/test_{NAME}.py", "README.md"}


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A workspace that was opened leaves its folder on the path, and its modules loaded."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for module in (NAME, "wrong_limit"):
        sys.modules.pop(module, None)


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


def test_its_tests_pass_before_it_is_installed(package: Path) -> None:
    assert files(package) == FILES
    printed = run(sys.executable, "pytest", "-q", "-p", "no:cacheprovider", cwd=package)
    assert " passed" in printed
    assert {name for name in files(package) if not name.endswith(".pyc")} == FILES, "tests write nothing here"


def test_it_can_be_installed_and_is_then_known_by_its_name(package: Path, tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="builds the package; it is in the extra [dev]")
    pytest.importorskip("editables", reason="needed by hatchling; it is in the extra [dev]")
    environment = tmp_path / "environment"
    venv.create(environment, symlinks=True)
    scripts, theirs = (sysconfig.get_path(name, vars={"base": str(environment)}) for name in ("scripts", "purelib"))
    python, ours = Path(scripts, "python"), sysconfig.get_path("purelib")
    Path(theirs, "ours.pth").write_text(f"import site; site.addsitedir({ours!r})\n", encoding="utf-8")
    offline = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    run(sys.executable, "pip", "--python", str(python), "install", *offline, "--editable", NAME, cwd=tmp_path)
    available = run(python, "ragistry", "techniques", "--available", "--json", cwd=tmp_path)
    assert '"from": "newest-first"' in available
    (tmp_path / "config").mkdir()
    entries = f"techniques: {{naive: {{use: naive}}, cut: {{use: {NAME}, base: naive, share: 0.9}}}}\n"
    (tmp_path / "config" / "techniques.yaml").write_text(entries, encoding="utf-8")
    assert NAME in run(python, "ragistry", "techniques", cwd=tmp_path), "in any workspace"
    assert " passed" in run(python, "pytest", "-q", "-p", "no:cacheprovider", cwd=package)


def test_its_readme_shows_three_commands_that_work(package: Path, ragistry: Run, tmp_path: Path) -> None:
    text = (package / "README.md").read_text(encoding="utf-8")
    commands = text.partition("```sh\n")[2].partition("```")[0].splitlines()
    assert [line.split()[0] for line in commands] == ["python", "python", "ragistry"]
    notes = tmp_path / "notes"
    notes.mkdir()
    for topic in ("Restore a backup", "Upgrade the server", "Water the tomatoes", "Prune the roses"):
        (notes / f"{topic[:5]}.md").write_text(f"# {topic}\n\nHow to do that, and when.\n", encoding="utf-8")
    assert ragistry("testset", "make", "set", "--from", notes, "--kind", "title").code == 0
    words = commands[2].replace("TESTSET", "set").split()[1:]
    assert ragistry(*words, "--workspace", package).code == 0


def test_the_technique_is_short_and_has_an_entry_and_an_entry_point(package: Path) -> None:
    source = (package / f"{NAME}.py").read_text(encoding="utf-8")
    [cls] = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    assert (cls.name, cls.end_lineno - cls.lineno < 15) == ("NewestFirst", True)
    project = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["ragistry.techniques"] == {NAME: f"{NAME}:NewestFirst"}
    with open_workspace(package, data_dir=str(package.parent / "data")) as workspace:
        assert workspace.registry.entry(NAME).base == "naive"


def test_the_folder_can_be_chosen(ragistry: Run, tmp_path: Path) -> None:
    done = ragistry("technique", "new", NAME, "--out", "some where/else", "--json")
    assert done.json["class"] == "NewestFirst"
    assert files(tmp_path / "some where" / "else") == FILES
    assert {Path(name).relative_to("some where/else").as_posix() for name in done.json["written"]} == FILES


def test_an_existing_folder_stays_as_it_is(ragistry: Run, tmp_path: Path) -> None:
    mine = tmp_path / NAME / "mine.py"
    mine.parent.mkdir()
    mine.write_text("x = 1\n", encoding="utf-8")
    (tmp_path / "file").write_text("y", encoding="utf-8")
    for words in ([], ["--out", "file"]):
        done = ragistry("technique", "new", NAME, *words)
        assert done.code == 1
        assert "exists and is not empty; give a new folder with --out FOLDER" in done.err
    assert files(tmp_path) == {"newest_first/mine.py", "file"}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Relative-Cut", "'Relative-Cut'"),
        ("größe", "'größe'"),
        ("2nd", "'2nd'"),
        ("cut_", "'cut_'"),
        ("../up", "'../up'"),
        ("class", "'class'"),
        ("", "''"),
        ("hybrid", "'hybrid' already means a technique of 'ragistry'"),
        ("auto", "'auto' already means a technique"),
        ("json", "'json' is a module of Python"),
        ("ragistry", "'ragistry' is a module of Ragistry"),
        ("numpy", "there is a module 'numpy' already"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused(ragistry: Run, tmp_path: Path, name: str, said: str) -> None:
    done = ragistry("technique", "new", name)
    assert (done.code, done.out, len(done.err.splitlines())) == (1, "", 1)
    assert said in done.err
    assert list(tmp_path.iterdir()) == []


def test_the_plural_lists_and_names_the_command_that_writes(ragistry: Run) -> None:
    done = ragistry("techniques", "new", NAME)
    assert (done.code, done.out) == (2, "")
    assert "`ragistry technique new NAME` creates one" in done.err
    assert "new" in ragistry("technique").out


WRONG_LIMIT = """\
class Wrong:
    def __init__(self, config, *, base):
        self.base = base

    def retrieve(self, query, **options):
        return self.base.retrieve(query, top_k=0)
"""


@pytest.fixture
def wrong(tmp_path: Path) -> str:
    """Where the technique `wrong` of this workspace fails: in ours, because of a line of its own."""
    (tmp_path / "config").mkdir()
    path = tmp_path / "wrong_limit.py"
    path.write_text(WRONG_LIMIT, encoding="utf-8")
    entries = "techniques: {naive: {use: naive}, wrong: {use: 'wrong_limit:Wrong', base: naive}}\n"
    (tmp_path / "config" / "techniques.yaml").write_text(entries, encoding="utf-8")
    return f"{path}:6"


def test_an_error_of_ours_names_the_technique_and_the_line_that_led_to_it(ragistry: Run, wrong: str) -> None:
    done = ragistry("search", "tea", "--technique", "wrong")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        f"error: top_k must be a whole number from 1 to 1,000, got 0 (technique 'wrong' failed at {wrong})\n"
    )


def test_an_error_in_a_program_has_a_note_with_the_technique_and_the_line(wrong: str, tmp_path: Path) -> None:
    with open_workspace(tmp_path) as workspace, pytest.raises(InvalidLimitError) as caught:
        workspace.search("tea", technique="wrong")
    assert caught.value.__notes__ == [f"technique 'wrong' failed at {wrong}"]


def test_an_error_that_no_line_of_the_user_led_to_has_no_note(tmp_path: Path) -> None:
    with open_workspace(tmp_path) as workspace, pytest.raises(InvalidLimitError) as caught:
        workspace.technique("mmr").retrieve("tea", top_k=0)
    assert not hasattr(caught.value, "__notes__")
