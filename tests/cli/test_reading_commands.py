"""A command that only reads says where there is nothing to read, and leaves the folder as it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Done, process

Run = Callable[..., Done]
READING = [
    ("collections", "list"),
    ("collections", "describe", "notes"),
    ("collections", "rename", "notes", "letters"),
    ("collections", "delete", "notes", "--yes"),
    ("ingest", "--list"),
    ("ingest", "--delete", "tea.txt", "--collection", "notes"),
    ("route", "tea"),
    ("search", "tea"),
    ("sources", "list"),
    ("sources", "move", "tea.txt", "--from", "notes", "--to", "letters"),
    ("sources", "delete", "tea.txt", "--collection", "notes", "--yes"),
    ("testset", "make", "set"),
    ("verify",),
    ("repair",),
    ("reembed",),
]


@pytest.mark.parametrize("words", READING)
def test_below_a_workspace_it_is_named(
    ragistry: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    assert ragistry("init").code == 0
    below = tmp_path / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    done = ragistry(*words)
    assert (done.code, done.out, len(done.err.splitlines())) == (1, "", 1)
    assert done.err.startswith("error: no workspace in '.'")
    assert done.err.endswith("; there is one in '..', add `-w ..`\n")
    assert list(below.iterdir()) == []


@pytest.mark.parametrize("words", READING)
def test_where_there_is_no_workspace_the_way_to_one_is_told(
    ragistry: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = ragistry(*words)
    assert (done.code, done.out, len(done.err.splitlines())) == (1, "", 1)
    assert "begin one here with `ragistry ingest FOLDER --collection NAME`" in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_library_begins_where_something_is_taken_in_or_added(ragistry: Run, tmp_path: Path) -> None:
    for name in ("taken", "added"):
        (tmp_path / name).mkdir()
    (tmp_path / "taken" / "tea.txt").write_text("Steep green tea in water of eighty degrees.", encoding="utf-8")
    assert ragistry("-w", "taken", "ingest", "taken/tea.txt", "--collection", "notes").code == 0
    assert ragistry("-w", "added", "collections", "add", "notes").code == 0
    for name in ("taken", "added"):
        assert [row["name"] for row in ragistry("-w", name, "collections", "list", "--json").json["collections"]] == [
            "notes"
        ]


def test_doctor_tries_the_rest_and_makes_no_store(
    ragistry: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    done = ragistry("doctor", "--json")
    found = {finding["name"]: finding for finding in done.json["findings"]}
    assert (done.code, found["store"]["state"], found["model"]["state"]) == (0, "off", "ok")
    assert found["store"]["detail"].startswith("no workspace in '.'")
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_place_of_the_folder_is_told(ragistry: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("text", encoding="utf-8")
    done = ragistry("-w", "notes.txt", "collections", "list")
    assert done == Done(1, "", "error: no folder, but a file: 'notes.txt'; name the folder of the workspace\n")


def test_a_misspelt_variable_is_told_by_config_and_doctor(tmp_path: Path) -> None:
    said = "environment RAGISTRY_EMBED_MODL has no effect: there is no 'EMBED_MODL'; did you mean 'EMBED_MODEL'?"
    misspelt = {"RAGISTRY_EMBED_MODL": "tei", "OLLAMA_HOST": "127.0.0.1:9"}
    config = process("config", "--json", cwd=tmp_path, **misspelt)
    assert (config.code, config.err) == (0, f"warning: {said}\n")
    assert config.json["settings"]["embed_model"] == {"value": "minilm", "from": "default"}
    doctor = process("doctor", "--json", cwd=tmp_path, **misspelt)
    assert doctor.code == 0
    assert {"name": "environment", "state": "warning", "detail": said} in doctor.json["findings"]
