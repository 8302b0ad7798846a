"""The command without a command, interrupted, and with a technique or a model that fails."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer.main

from docs.commands import commands, subcommands
from ragistry.cli.app import GROUPS, app, load_command
from ragistry.cli.output import error_line
from tests.cli.conftest import Done, Run
from tests.conftest import Corpus


def test_without_a_command_the_help_is_printed(ragistry: Run) -> None:
    done = ragistry()
    assert (done.code, done.err) == (2, "")
    assert "Usage: ragistry" in done.out


@pytest.mark.parametrize(
    "command",
    [name for name, one in commands().items() if not subcommands(one) and any(p.required for p in one.params)],
)
def test_argument_that_is_missing_has_no_other_default(command: str, ragistry: Run) -> None:
    """Above all not the folder of the workspace, into which `restore` would write."""
    done = ragistry(*command.split()[1:])
    assert done.code == 2
    assert "Missing argument" in done.err


def test_commands_are_on_one_screen_in_groups_with_one_line_each(
    ragistry: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = ragistry("--help").out.splitlines()
    assert len(lines) <= 56
    _, _, *blocks = "\n".join(lines).split("\n\n")
    titles: list[str] = []
    listed: list[str] = []
    for block in blocks[1:]:
        title, *rows = block.splitlines()
        assert all(re.fullmatch(r"  [a-z]+ +\S.*\.", row) for row in rows), "each has one line"
        titles.append(title)
        listed += [row.split()[0] for row in rows]
    assert titles == ["Search and read:", "Library:", "Compare:", "Serve:", "Look after:"]
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined] # a group
    assert listed == [*commands]
    assert len(listed) <= 32


@pytest.mark.parametrize("name", [name for group in GROUPS.values() for name in group])
def test_line_of_a_command_is_the_beginning_of_its_help(name: str) -> None:
    listed = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined] # a group
    assert load_command(listed).name == listed.name
    assert " ".join(load_command(listed).help.split()).startswith(listed.help.removesuffix("."))


def test_interrupted_command_has_exit_code_130(ragistry: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ragistry.workspace.open_workspace", interrupt)
    assert ragistry("config").code == 130


@pytest.mark.parametrize(
    ("label", "colour"),
    [("error", "1;31"), ("failed", "1;31"), ("broken", "1;31"), ("warning", "33"), ("degraded", "33"), ("note", "2")],
)
def test_label_has_the_colour_of_its_weight(
    label: str, colour: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    error_line("text", label=label)
    assert capsys.readouterr().err == f"\x1b[{colour}m{label}: \x1b[0mtext\n"


RAISING = """\
class Raising:
    def __init__(self, config, *, base):
        {first}
        self.base = base

    def retrieve(self, query, **options):
        {second}
"""
RAISE = "raise ValueError('deep\\nproblem')"


def test_technique_that_fails_is_named_with_its_line(ragistry: Run, corpus: Corpus, tmp_path: Path) -> None:
    def search(module: str, first: str, second: str, *debug: str) -> Done:
        entries = f"techniques: {{naive: {{use: naive}}, t: {{use: '{module}:Raising', base: naive}}}}\n"
        code = RAISING.format(first=first, second=second)
        corpus({f"{module}.py": code, "config/techniques.yaml": entries}, folder=".")
        return ragistry("search", "tea", "--technique", "t", *debug)

    place = f"technique 't' failed at {tmp_path}"
    search("raising1", RAISE, "pass").refused(1, f"{place}/raising1.py:3: ValueError: deep problem; `--debug`")
    search("raising2", "pass", RAISE).refused(1, f"{place}/raising2.py:7: ValueError: deep problem; `--debug`")
    with pytest.raises(ValueError, match="deep"):
        search("raising2", "pass", RAISE, "--debug")
    error_of_ours = search("raising3", "pass", "return self.base.retrieve(query, top_k=0)")
    error_of_ours.refused(1, "top_k", f"({place}/raising3.py:7)")


@pytest.mark.parametrize(
    ("model", "meant"),
    [("nope", ""), ("minillm", "'minilm'"), ("BGE-larg", "'bge-large'"), ("nomic-embd-text", "'nomic-embed-text'")],
)
def test_unknown_model_is_refused_in_three_lines_of_a_terminal(
    ragistry: Run, corpus: Corpus, model: str, meant: str
) -> None:
    corpus({"documents.yaml": f"embed_model: {model}\n"}, folder="config")
    done = ragistry("search", "tea")
    done.refused(1, model, meant)
    assert len(done.err.strip()) <= 3 * 80
