"""What README and the site show is run, what they say of the code is compared with it, and their links are checked."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import ragistry as ragistry_package
from docs.commands import commands, subcommands
from docs.floors import floors
from docs.generate import LLMS, generated, pages
from docs.llms import llms_txt
from docs.settings import without_variable
from ragistry import TechniqueRegistry, evaluation, open_workspace, pipelines
from ragistry.config.settings import Settings
from ragistry.techniques.classes import offers
from tests.cli.conftest import ragistry  # noqa: F401, the fixture
from tests.pages import PRINTS, ROOT, Reader, blocks

README = ROOT / "README.md"
PAGES = pages()
SITE = ROOT / "docs"
SKILL = ROOT / "ragistry" / "cli" / "SKILL.md"


def of(page: Path, language: str) -> list[str]:
    return [block.text for block in blocks(page) if block.language == language]


def name(page: Path) -> str:
    return page.relative_to(SITE).as_posix()


def test_the_commands_and_the_code_of_readme_run(
    ragistry: Callable,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copytree(ROOT / "fixtures" / "handbook", tmp_path / "fixtures" / "handbook")
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    monkeypatch.setenv("COLUMNS", "120")  # the width at which pages show what is printed
    reader = Reader(tmp_path, ragistry)
    make, *shown = [block for block in blocks(README) if block.language == "sh" or block.title == PRINTS]
    assert make.text.startswith("make demo")
    assert any(block.title == PRINTS for block in shown)
    for block in shown:
        reader.follow(block)
    first, *others = of(README, "python")
    exec(compile(first, "README.md", "exec"), {})
    assert re.search(r"^0\.\d{3} \S+\.md ", capsys.readouterr().out, flags=re.MULTILINE)
    (tmp_path / "shout.py").write_text(others[0], encoding="utf-8")
    (tmp_path / "config" / "techniques.yaml").write_text(of(README, "yaml")[0], encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    for technique in TechniqueRegistry.load(tmp_path / "config" / "techniques.yaml").names():
        done = ragistry("search", "restore a backup", "--technique", technique, "--json")
        assert done.code == 0, done.err
        assert done.json["total_results"] > 0


def test_the_technique_of_readme_is_short() -> None:
    assert len(of(README, "python")[1].splitlines()) < 15


def test_every_command_is_in_readme() -> None:
    text = README.read_text(encoding="utf-8")
    missing = [name for name in commands() if name.count(" ") == 1 and name != "ragistry config" and name not in text]
    assert missing == []


def test_every_built_in_technique_is_in_readme() -> None:
    text = README.read_text(encoding="utf-8")
    built_in = {name for name, offer in offers().items() if offer.distribution == "ragistry"} - {"naive_rag"}
    assert [name for name in built_in if f"| `{name}` |" not in text] == []


def test_the_files_that_readme_leads_to_are_there() -> None:
    links = re.findall(r"\]\(([^)#]+)", README.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_what_a_page_says_of_the_code_is_what_the_code_says(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert generated(text) == text, "run `python -m docs.generate`"


def test_llms_txt_lists_every_page_as_it_is() -> None:
    text = LLMS.read_text(encoding="utf-8")
    assert text == llms_txt(), "run `python -m docs.generate`"
    assert sorted(re.findall(r"^- \[[^]]+\]\(([^)]+)\): .{10,}", text, re.MULTILINE)) == sorted(map(name, PAGES))


def test_the_pages_read_without_a_site_that_is_built() -> None:
    assert [name(page) for page in PAGES if "--8<--" in page.read_text(encoding="utf-8")] == []


def test_the_python_interface_has_every_public_name() -> None:
    text = (SITE / "reference" / "api.md").read_text(encoding="utf-8")
    public = {name for module in (ragistry_package, evaluation, pipelines) for name in module.__all__} - {"END"}
    assert [name for name in sorted(public) if f"\n### {name}\n" not in text] == []


@pytest.mark.parametrize("page", [README, SKILL, *PAGES], ids=lambda page: page.stem)
def test_every_command_line_that_is_shown_is_one_that_there_is(page: Path) -> None:
    for line in command_lines(page):
        _, *words = shlex.split(line.replace("…", ""), comments=True)
        command = commands()["ragistry"]
        while words and words[0].startswith("--") and subcommands(command):
            words = words[2:]  # an option before the command, with its value
        while words and words[0] in subcommands(command):
            command = subcommands(command)[words.pop(0)]
        # A group that runs by itself may have options; an option that it lacks is refused below.
        runs = getattr(command, "invoke_without_command", False) and len(command.params) > 1
        is_run = not subcommands(command) or (runs and bool(words) and words[0].startswith("-"))
        assert is_run or not words, f"{line}: no such command"
        if is_run:
            command.make_context(line, words)


@pytest.mark.parametrize("page", [README, SKILL, *PAGES], ids=lambda page: page.stem)
def test_every_command_in_the_prose_is_one_that_there_is(page: Path) -> None:
    for span in re.findall(r"`(ragistry [^`\n]+)`", page.read_text(encoding="utf-8")):
        command, *words = commands()["ragistry"], *span.split()[1:]
        while words and words[0] in subcommands(command):
            command = subcommands(command)[words.pop(0)]
        assert command is not commands()["ragistry"], f"{span}: no such command"
        known = {spelling for option in command.params for spelling in (*option.opts, *option.secondary_opts)}
        assert {word for word in words if word.startswith("--")} <= known, f"{span}: no such option"


def command_lines(page: Path) -> list[str]:
    """Lines of shell blocks, and of consoles those after a ``$``; variables that are set before the command are cut."""
    shells = [line for text in of(page, "sh") for line in text.splitlines()]
    typed = [line[2:] for text in of(page, "console") for line in text.splitlines() if line.startswith("$ ")]
    lines = [re.sub(r"^(?:\w+=(?:\$\([^)]*\)|\S+) )+", "", line) for line in [*shells, *typed]]
    return [line for line in lines if line.startswith("ragistry ") and not re.search(r"\[?[A-Z]{4}", line)]


def test_every_setting_is_in_the_reference() -> None:
    text = (SITE / "configuration.md").read_text(encoding="utf-8")
    missing = [name for name in Settings.model_fields if not re.search(rf"^\| `{name}` \| .* \|$", text, re.MULTILINE)]
    assert missing == []
    assert without_variable() == ["limits", "archives"], "the page says that every other setting has a variable"


def test_every_command_has_a_section() -> None:
    text = (SITE / "commands.md").read_text(encoding="utf-8")
    assert [name for name in commands() if not re.search(rf"^##+ {name}$", text, re.MULTILINE)] == []


def test_every_built_in_technique_has_a_section_with_its_parameters() -> None:
    text = (SITE / "techniques.md").read_text(encoding="utf-8")
    built_in = [name for name, offer in offers().items() if offer.distribution == "ragistry" and name != "naive_rag"]
    assert [name for name in built_in if f"\n## {name}\n" not in text] == []
    assert [name for name in built_in if f"<!-- generated: technique {name} -->" not in text] == []


def test_the_drawing_has_every_package_that_there_is() -> None:
    there = [path for path in (ROOT / "ragistry").iterdir() if path.is_dir() or path.suffix == ".py"]
    packages = {path.stem for path in there if not path.name.startswith("_")} - {"testing"}
    drawn = re.findall(r">(\w+)</text>", (SITE / "architecture.md").read_text(encoding="utf-8"))
    assert set(drawn) == packages
    assert drawn == [package for floor in floors() for package in floor]


def test_every_yaml_block_of_the_site_stands_for_a_file() -> None:
    """So that it is written where a later block reads it."""
    untitled = [(name(page), block.text) for page in PAGES for block in blocks(page)
                if block.language in ("yaml", "json") and not block.title]  # fmt: skip
    assert untitled == []


WHOLE = [path for folder in ("garden", "handbook") for path in sorted((ROOT / "fixtures" / folder).rglob("*.*"))]
SHORT = ("api", "backups", "containers", "overview", "powdery-mildew", "security", "soil-ph", "upgrades", "watering")
DOCUMENTS = [path for path in WHOLE if path.stem in SHORT]
"""What most pages do is shown by a few documents; the tutorial says how many there are."""

RUN = [page for page in PAGES if any(block.language in ("sh", "python", "yaml") for block in blocks(page))]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", RUN, ids=name)
def test_the_blocks_of_a_page_run_one_after_another(
    page: Path,
    ragistry: Callable,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for path in DOCUMENTS if page.name != "tutorial.md" else WHOLE:
        (tmp_path / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, tmp_path / path.relative_to(ROOT))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "monday.txt").write_text("The backup of Monday was restored.", encoding="utf-8")
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    monkeypatch.setenv("COLUMNS", "120")  # the width at which pages show what is printed
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.syspath_prepend(tmp_path)
    reader = Reader(tmp_path, ragistry)
    for block in blocks(page):
        reader.follow(block)
    if reader.outdated:
        text = page.read_text(encoding="utf-8")
        for shown, printed in reader.outdated:
            text = text.replace(f'title="{PRINTS}"\n{shown}```', f'title="{PRINTS}"\n{printed}```', 1)
        page.write_text(text, encoding="utf-8")
    with open_workspace(reader.folder) as workspace:  # reads every file that the page has written, and checks it
        names = [name for name in workspace.registry.names() if not workspace.registry.missing_model(name)]
        assert all(map(workspace.registry.get, names))
    for module in ("shout", "own_technique", "own_store", "own_embedder"):
        sys.modules.pop(module, None)


def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("mkdocs is not installed; it is in the extra [dev]")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
    built = sorted((tmp_path / "site").rglob("*.html"))
    assert len(built) > len(PAGES), "every page, and the one for what is not found"
    loaded = r'<(?:script|img|iframe|link rel="(?:stylesheet|preconnect|icon)")[^>]*(?:src|href)="((?:https?:)?//[^"]+)'
    for page in built:
        assert re.findall(loaded, page.read_text(encoding="utf-8")) == [], page
