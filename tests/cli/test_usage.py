"""Options, labels and what is refused before a command runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ragistry.cli.output import error_line
from tests.cli.conftest import Done

Run = Callable[..., Done]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["search"], "Missing argument 'query'"),
        (["serch", "tea"], "No such command 'serch'. Did you mean 'search', 'serve'?"),
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


@pytest.mark.usefixtures("configured")
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


@pytest.mark.parametrize("where", ["__init__", "retrieve"])
def test_a_technique_that_fails_is_named_in_one_line(ragistry: Run, tmp_path: Path, where: str) -> None:
    lines = dict.fromkeys(("__init__", "retrieve"), "pass") | {where: "raise ValueError('deep\\nproblem')"}
    (tmp_path / f"raising{where}.py").write_text(
        f"class Raising:\n    def __init__(self, config):\n        {lines['__init__']}\n"
        f"    def retrieve(self, query, **options):\n        {lines['retrieve']}\n",
        encoding="utf-8",
    )
    (tmp_path / "config").mkdir()
    techniques = f"techniques: {{t: {{use: 'raising{where}:Raising'}}}}\n"
    (tmp_path / "config" / "techniques.yaml").write_text(techniques, encoding="utf-8")
    done = ragistry("search", "tea", "--technique", "t")
    assert (done.code, done.out) == (1, "")
    line = 3 if where == "__init__" else 5
    place = f"{tmp_path / f'raising{where}.py'}:{line}"
    assert done.err == f"error: technique 't' failed at {place}: ValueError: deep problem; `--debug` shows where\n"
    with pytest.raises(ValueError, match="deep"):
        ragistry("search", "tea", "--technique", "t", "--debug")


def test_a_model_that_is_not_known_is_answered_with_each_that_is_once(ragistry: Run, tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "documents.yaml").write_text("embed_model: nope\n", encoding="utf-8")
    assert ragistry("search", "tea").err.count(" minilm,") == 1


ARCHIVES = """\
archives:
  - {name: Letters, collection_name: letters, embedding_model: sentence-transformers/all-MiniLM-L6-v2}
"""


def test_config_tells_what_the_environment_says_of_archives(
    ragistry: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "vector_stores.yaml").write_text(ARCHIVES, encoding="utf-8")
    monkeypatch.setenv("RAG_QUERY_TIMEOUT_SECONDS", "7")
    settings = ragistry("config", "--json").json["settings"]
    assert settings["RAG_QUERY_TIMEOUT_SECONDS"] == {"value": 7, "from": "environment RAG_QUERY_TIMEOUT_SECONDS"}
    assert settings["DOCPROC_CHROMADB_URL"] == {"value": "http://chromadb:8000", "from": "default"}
    assert "DOCPROC_TEI_EMBEDDINGS_URL" in ragistry("config").out


def test_config_without_archives_lists_no_variables_of_archives(ragistry: Run) -> None:
    assert [name for name in ragistry("config", "--json").json["settings"] if name.isupper()] == []
    assert "RAG_" not in ragistry("config").out


def test_config_begins_with_what_a_new_user_looks_for(ragistry: Run) -> None:
    settings = ragistry("config", "--json").json["settings"]
    assert settings["default technique"] == {"value": "hybrid", "from": "default"}
    names = list(settings)
    assert names[:4] == ["default technique", "n_results", "embed_model", "language"]
    assert names[6:8] == ["store", "data_dir"]
    first = [line.split()[0] for line in ragistry("config").out.splitlines()[3:6]]
    assert first == ["default", "n_results", "embed_model"]
