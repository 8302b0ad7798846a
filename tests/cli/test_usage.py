"""Options, labels and what is refused before a command runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ragistry.cli.output import counted, error_line
from tests.cli.conftest import Done

Run = Callable[..., Done]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["search"], "Missing argument 'query'"),
        (["serch", "tea"], "No such command 'serch'. Did you mean 'search'?"),
        (["search", "tea", "--colection", "x"], "No such option: --colection"),
        (["search", "tea", "--top-k", "many"], "Invalid value for '--top-k'"),
        (["--nothing"], "No such option: --nothing"),
    ],
)
def test_used_wrongly_is_one_line_and_exit_code_2(ragistry: Run, words: list[str], said: str) -> None:
    done = ragistry(*words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {said}")
    assert "--help` says how)" in done.err
    assert len(done.err.splitlines()) == 1


def test_without_a_command_the_help_is_printed(ragistry: Run) -> None:
    done = ragistry()
    assert (done.code, done.err) == (2, "")
    assert "Usage: ragistry" in done.out


def test_interrupted_is_exit_code_130(ragistry: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ragistry.workspace.open_workspace", interrupt)
    assert ragistry("config").code == 130


def chunk_size(run: Run, *words: object) -> int:
    return run(*words, "--json").json["settings"]["chunk_size"]["value"]


def test_the_workspace_may_be_named_before_the_command(
    ragistry: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in (("a", 301), ("b", 302), ("c", 303)):
        (tmp_path / name / "config").mkdir(parents=True)
        (tmp_path / name / "config" / "documents.yaml").write_text(f"chunk_size: {size}\n", encoding="utf-8")
    assert chunk_size(ragistry, "--workspace", "a", "config") == 301
    assert chunk_size(ragistry, "config", "-w", "b") == 302
    assert chunk_size(ragistry, "-w", "a", "config", "-w", "b") == 302, "the one after the command wins"
    monkeypatch.setenv("RAGISTRY_WORKSPACE", "c")
    assert chunk_size(ragistry, "config") == 303
    assert chunk_size(ragistry, "-w", "a", "config") == 301
    assert chunk_size(ragistry, "config", "-w", "b") == 302


def test_init_makes_the_workspace_that_is_named_before_it(ragistry: Run, tmp_path: Path) -> None:
    assert ragistry("--workspace", "new", "init").code == 0
    assert (tmp_path / "new" / "config" / "documents.yaml").exists()


def test_debug_may_stand_before_the_command(ragistry: Run) -> None:
    from ragistry.errors import UnknownTechniqueError

    with pytest.raises(UnknownTechniqueError):
        ragistry("--debug", "search", "tea", "--technique", "nope")


@pytest.mark.parametrize(
    ("label", "colour"),
    [("error", "1;31"), ("failed", "1;31"), ("broken", "1;31"), ("warning", "33"), ("degraded", "33"), ("note", "2")],
)
def test_a_label_has_the_colour_of_its_weight(
    label: str, colour: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    error_line("text", label=label)
    assert capsys.readouterr().err == f"\x1b[{colour}m{label}: \x1b[0mtext\n"


def test_one_is_singular() -> None:
    assert [counted(number, "chunk") for number in (0, 1, 2)] == ["0 chunks", "1 chunk", "2 chunks"]
