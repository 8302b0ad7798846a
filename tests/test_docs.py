"""What README and the site show is run, what they say of the code is compared with it, and their links are checked."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import ragistry as ragistry_package
from docs.api import api_reference
from docs.commands import commands, subcommands
from docs.floors import floors
from docs.generate import LLMS, generated, pages
from docs.llms import llms_txt
from docs.settings import without_variable
from ragistry import evaluation, open_workspace, pipelines
from ragistry.config.settings import Settings
from ragistry.techniques.classes import offers
from tests.cli.conftest import Run, ragistry  # noqa: F401, the fixture
from tests.conftest import Corpus
from tests.pages import PRINTS, ROOT, Block, Reader, blocks

README = ROOT / "README.md"
PAGES = pages()
SITE = ROOT / "docs"
SHOWING = [README, ROOT / "ragistry" / "cli" / "SKILL.md", *PAGES]
COMMANDS = commands()
BUILT_IN = [name for name, offer in offers().items() if offer.distribution == "ragistry" and name != "naive_rag"]


def of(page: Path, language: str) -> list[str]:
    return [block.text for block in blocks(page) if block.language == language]


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def missing(page: Path, patterns: Iterable[tuple[str, str]]) -> list[str]:
    """Names whose pattern the page does not contain."""
    text = page.read_text(encoding="utf-8")
    return [found for found, pattern in patterns if not re.search(pattern, text, re.MULTILINE)]


@pytest.fixture
def reader(
    ragistry: Run,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Reader]:
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    monkeypatch.setenv("COLUMNS", "120")  # the width at which pages show what is printed
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.syspath_prepend(tmp_path)
    yield Reader(tmp_path, ragistry)
    for module in ("shout", "own_technique", "own_store", "own_embedder", "audited_store"):
        sys.modules.pop(module, None)


def test_no_page_installs_ragistry_from_an_index() -> None:
    """No package index has it: a page names a wheel or a folder."""
    by_name = re.compile(r"(?:pipx?|uvx?|uv pip|uv tool)(?: install| run)?(?: -\S+)* ['\"]?ragistry(?![\w/.*-])")
    assert [
        (name(page), by_name.findall(page.read_text("utf-8")))
        for page in SHOWING
        if by_name.search(page.read_text("utf-8"))
    ] == []


def test_commands_and_code_of_readme_run(reader: Reader, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(ROOT / "fixtures" / "handbook", reader.folder / "fixtures" / "handbook")
    make, *shown = [block for block in blocks(README) if block.language == "sh" or block.title == PRINTS]
    assert make.text.startswith("make demo")
    assert any(block.title == PRINTS for block in shown)
    for block in shown:
        reader.follow(block)
    first, *others = of(README, "python")
    exec(compile(first, "README.md", "exec"), {})
    assert re.search(r"^0\.\d{3} \S+\.md ", capsys.readouterr().out, flags=re.MULTILINE)
    reader.follow(Block("python", "shout.py", others[0]))
    reader.follow(Block("yaml", "config/techniques.yaml", of(README, "yaml")[0]))
    with open_workspace(".") as workspace:
        for technique in workspace.registry.names():
            assert workspace.search("restore a backup", technique).documents, technique


def test_readme_and_a_technique_are_short_and_the_count_of_techniques_and_the_links_are_true() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 100
    assert len(of(README, "python")[1].splitlines()) < 15
    assert missing(README, [("techniques", rf"\*\*{len(BUILT_IN)} techniques, one method")]) == []
    links = [link for link in re.findall(r"\]\(([^)#]+)", README.read_text(encoding="utf-8")) if "://" not in link]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_generated_parts_of_a_page_are_up_to_date(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert generated(text) == text, "run `python -m docs.generate`"


def test_llms_txt_lists_every_page() -> None:
    text = LLMS.read_text(encoding="utf-8")
    assert text == llms_txt(), "run `python -m docs.generate`"
    listed = re.findall(r"^- \[[^]]+\]\(([^)]+)\): .{10,}", text, re.MULTILINE)
    assert sorted(listed) == sorted(page.relative_to(SITE).as_posix() for page in PAGES)


@pytest.mark.parametrize("page", SHOWING, ids=name)
def test_every_command_that_a_page_shows_exists(page: Path) -> None:
    for line in command_lines(page):
        _, *words = shlex.split(line.replace("…", ""), comments=True)
        command = COMMANDS["ragistry"]
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
    for span in re.findall(r"`(ragistry [^`\n]+)`", page.read_text(encoding="utf-8")):
        command, *words = COMMANDS["ragistry"], *span.split()[1:]
        while words and words[0] in subcommands(command):
            command = subcommands(command)[words.pop(0)]
        assert command is not COMMANDS["ragistry"], f"{span}: no such command"
        known = {spelling for option in command.params for spelling in (*option.opts, *option.secondary_opts)}
        assert {word for word in words if word.startswith("--")} <= {*known, "--"}, f"{span}: no such option"


def command_lines(page: Path) -> list[str]:
    """Lines of shell blocks, and of consoles those after a ``$``; variables that are set before the command are cut."""
    shells = [line for text in of(page, "sh") for line in text.splitlines()]
    typed = [line[2:] for text in of(page, "console") for line in text.splitlines() if line.startswith("$ ")]
    lines = [re.sub(r"^(?:\w+=(?:\$\([^)]*\)|\S+) )+", "", line) for line in [*shells, *typed]]
    return [line for line in lines if line.startswith("ragistry ") and not re.search(r"\[?[A-Z]{4}", line)]


def test_reference_has_every_setting_command_technique_and_public_name() -> None:
    settings = [(setting, rf"^\| `{setting}` \| .* \|$") for setting in Settings.model_fields]
    assert missing(SITE / "configuration.md", settings) == []
    assert without_variable() == ["limits", "readers", "archives"], (
        "the page says that every other setting has a variable"
    )
    assert missing(SITE / "commands.md", [(command, rf"^##+ {command}$") for command in COMMANDS]) == []
    sections = [(technique, rf"\n## {technique}\n") for technique in BUILT_IN]
    parameters = [(technique, f"<!-- generated: technique {technique} -->") for technique in BUILT_IN]
    assert missing(SITE / "techniques.md", sections + parameters) == []
    public = {found for module in (ragistry_package, evaluation, pipelines) for found in module.__all__} - {"END"}
    reference = api_reference()
    assert [found for found in sorted(public) if f"\n### {found}\n" not in reference] == []


def test_floors_have_every_package() -> None:
    there = [path for path in (ROOT / "ragistry").iterdir() if path.is_dir() or path.suffix == ".py"]
    packages = {path.stem for path in there if not path.name.startswith("_")} - {"testing"}
    assert {package for floor in floors() for package in floor} == packages


def test_every_promise_names_tests_that_exist() -> None:
    rows = (
        (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## What is promised")[2].partition("## ")[0]
    )
    named = re.findall(r"`(\S+\.py)(?:::(\w+))?`", rows)
    assert len(named) > 15
    for path, test in named:
        assert f"def {test or 'test_'}" in (ROOT / "tests" / path).read_text(encoding="utf-8"), path


def test_blocks_of_yaml_are_files_and_pages_include_no_other() -> None:
    """So a later block reads the file, and a page can be read without building the site."""
    untitled = [(name(page), block.text) for page in PAGES for block in blocks(page)
                if block.language in ("yaml", "json") and not block.title]  # fmt: skip
    assert untitled == []
    assert [name(page) for page in PAGES if "--8<--" in page.read_text(encoding="utf-8")] == []


WHOLE = [path for folder in ("garden", "handbook") for path in sorted((ROOT / "fixtures" / folder).rglob("*.*"))]
SHORT = ("api", "backups", "containers", "overview", "powdery-mildew", "security", "soil-ph", "upgrades", "watering")
DOCUMENTS = [path for path in WHOLE if path.stem in SHORT]
"""What most pages do is shown by a few documents; the tutorial says how many there are."""

RUN = [page for page in PAGES if any(block.language in ("sh", "python", "yaml") for block in blocks(page))]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", RUN, ids=name)
def test_blocks_of_a_page_run_one_after_another(page: Path, reader: Reader, corpus: Corpus) -> None:
    for path in DOCUMENTS if page.name != "tutorial.md" else WHOLE:
        corpus({name(path): path.read_bytes()}, folder=".")
    shutil.copytree(ROOT / "examples", reader.folder / "examples")
    corpus({"monday.txt": "The backup of Monday was restored."}, folder="notes")
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


def test_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("mkdocs is not installed; it is in the extra [dev]")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
    built = sorted((tmp_path / "site").rglob("*.html"))
    assert len(built) > len(PAGES), "every page, and the one for what is not found"
    reference = (tmp_path / "site" / "reference" / "api.html").read_text(encoding="utf-8")
    assert '<h3 id="workspace">' in reference, "the hook adds it"
    loaded = r'<(?:script|img|iframe|link rel="(?:stylesheet|preconnect|icon)")[^>]*(?:src|href)="((?:https?:)?//[^"]+)'
    for page in built:
        assert re.findall(loaded, page.read_text(encoding="utf-8")) == [], page
