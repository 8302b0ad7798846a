"""``ragistry ingest``: which collection, and what stays of one that was made for nothing."""

from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Done

Run = Callable[..., Done]


@pytest.fixture
def tea(tmp_path: Path) -> Path:
    path = tmp_path / "tea.txt"
    path.write_text("Steep green tea in water of eighty degrees.", encoding="utf-8")
    return path


def names(ragistry: Run) -> list[str]:
    return [row["name"] for row in ragistry("collections", "list", "--json").json["collections"]]


@pytest.mark.parametrize("words", [[], ["--create", "Papers"]])
def test_a_collection_made_for_a_file_that_cannot_be_read_does_not_stay(
    ragistry: Run, tmp_path: Path, tea: Path, words: list[str]
) -> None:
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    done = ragistry("ingest", "broken.pdf", "--collection", "papers", *words, "--json")
    assert (done.code, len(done.json["failed"])) == (1, 1)
    assert names(ragistry) == []
    done = ragistry("ingest", "broken.pdf", tea, "--collection", "papers", *words)
    assert (done.code, names(ragistry)) == (1, ["papers"])
    assert ragistry("ingest", "broken.pdf", "--collection", "papers").code == 1
    assert names(ragistry) == ["papers"], "one that has something stays"


def test_a_collection_made_while_the_model_is_down_does_not_stay(ragistry: Run, tmp_path: Path, tea: Path) -> None:
    (tmp_path / "config").mkdir()
    settings = "embed_model: tei\nembed_url: http://127.0.0.1:9\n"
    (tmp_path / "config" / "documents.yaml").write_text(settings, encoding="utf-8")
    done = ragistry("ingest", tea, "--collection", "papers")
    assert (done.code, done.err.startswith("error: ")) == (1, True)
    assert names(ragistry) == []


def test_a_collection_made_for_an_ingest_that_is_terminated_does_not_stay(
    ragistry: Run, tmp_path: Path, tea: Path
) -> None:
    (tmp_path / "config").mkdir()
    documents = tmp_path / "config" / "documents.yaml"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        documents.write_text(f"embed_model: tei\nembed_url: {url}\n", encoding="utf-8")
        words = ["ingest", str(tea), "--collection", "papers", "--create", "Papers"]
        with subprocess.Popen([sys.executable, "-m", "ragistry", *words], cwd=tmp_path) as process:
            waiting, _ = silent.accept()  # for the model's answer, which never comes
            with waiting:
                assert "papers" in documents.read_text(encoding="utf-8")
                process.terminate()
                assert process.wait(60) == 128 + signal.SIGTERM
    assert names(ragistry) == []


def test_with_one_collection_nobody_needs_to_name_it(ragistry: Run, tea: Path) -> None:
    done = ragistry("ingest", tea)
    assert (done.code, "say which collection with --collection NAME; there are none yet" in done.err) == (1, True)
    ragistry("collections", "add", "notes")
    assert ragistry("ingest", tea, "--json").json["collection"] == "notes"
    ragistry("collections", "add", "econ")
    assert "say which collection with --collection NAME; there are notes, econ" in ragistry("ingest", tea).err


@pytest.mark.parametrize("words", [[], ["tea.txt", "--list"], ["--list", "--delete", "tea.txt"]])
def test_one_thing_at_a_time(ragistry: Run, tea: Path, words: list[str]) -> None:
    done = ragistry("ingest", *words)
    assert (done.code, done.err.startswith("error: say what to ingest, or --list, or --delete FILE")) == (2, True)


def test_delete_needs_the_collection(ragistry: Run, tea: Path) -> None:
    assert ragistry("ingest", tea, "--collection", "notes").code == 0
    done = ragistry("ingest", "--delete", "tea.txt", "--yes")
    assert "say which collection 'tea.txt' is in with --collection NAME; there are notes" in done.err
    deleted = ragistry("ingest", "--delete", "tea.txt", "--collection", "notes", "--yes", "--json").json
    assert deleted == {"source": "tea.txt", "collection": "notes", "chunks": 1}


def test_what_vanished_is_named_and_goes_with_prune(ragistry: Run, tmp_path: Path, tea: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("one", "two"):
        (folder / f"{name}.txt").write_text(f"Text of {name}.", encoding="utf-8")
    assert ragistry("ingest", folder, "--collection", "notes").code == 0
    (folder / "one.txt").unlink()
    assert "1 no longer in the folder: one.txt; --prune removes it" in ragistry("ingest", folder).err
    pruned = ragistry("ingest", folder, "--prune", "--yes", "--json").json
    assert (pruned["deleted"], pruned["vanished"]) == (["one.txt"], ["one.txt"])
    assert sources(ragistry) == ["two.txt"]
    assert ragistry("ingest", folder, "--prune").code == 0, "nobody is asked where nothing is gone"


def test_a_folder_below_that_was_ingested_by_itself_goes_with_prune(ragistry: Run, tmp_path: Path) -> None:
    (tmp_path / "in" / "sub").mkdir(parents=True)
    for name in ("tea.txt", "sub/rain.txt"):
        (tmp_path / "in" / name).write_text(f"Text of {name}.", encoding="utf-8")
    ragistry("ingest", "in/sub", "--collection", "notes")
    (tmp_path / "in" / "sub" / "rain.txt").unlink()
    assert ragistry("ingest", "in", "--prune", "--yes", "--json").json["deleted"] == [], "as if not mounted"
    (tmp_path / "in" / "sub").rmdir()
    assert ragistry("ingest", "in", "--prune", "--yes", "--json").json["deleted"] == ["rain.txt"]
    (tmp_path / "in" / "tea.txt").unlink()
    (tmp_path / "in").rmdir()
    assert "make the folder again, empty, and ingest it with `--prune`" in ragistry("ingest", "in").err
    (tmp_path / "in").mkdir()
    assert ragistry("ingest", "in", "--prune", "--yes", "--json").json["deleted"] == ["tea.txt"]
    assert sources(ragistry) == []


def test_files_that_are_not_read_are_counted(ragistry: Run, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("tea.txt", "a.doc", "b.doc", "c.ppt", "d.png"):
        (tmp_path / "in" / name).write_text("Green tea.", encoding="utf-8")
    done = ragistry("ingest", "in", "--collection", "notes")
    assert done.code == 3
    assert "warning: 'in': 3 of its files have a format that is not read and were left out (2 .doc, 1 .ppt)" in done.err
    [warning] = ragistry("ingest", "in", "--json").json["warnings"]
    assert "(2 .doc, 1 .ppt)" in warning


def sources(ragistry: Run) -> list[str]:
    return [source["source_file"] for source in ragistry("sources", "list", "--json").json["sources"]]


def test_nothing_is_pruned_unasked_where_a_folder_was_emptied(ragistry: Run, tmp_path: Path) -> None:
    folder = tmp_path / "share"
    folder.mkdir()
    for number in range(7):
        (folder / f"{number}.txt").write_text(f"Otter {number}.", encoding="utf-8")
    assert ragistry("ingest", "share", "--collection", "notes").code == 0
    folder.rename(tmp_path / "unmounted")
    assert "7 sources ('0.txt', '1.txt', '2.txt', …) came from it: to delete" in ragistry("ingest", "share").err
    folder.mkdir()
    (tmp_path / "tea.txt").write_text("Green tea.", encoding="utf-8")
    refused = ragistry("ingest", "share", "tea.txt", "--prune", "--json")
    assert (refused.code, refused.json["deleted"], refused.json["added"]) == (1, [], ["tea.txt"])
    assert refused.err == (
        "error: nothing was deleted: to delete 7 sources of collection 'notes' no longer in the folder "
        "(0.txt, 1.txt, 2.txt, 3.txt, 4.txt, …) without being asked, add --yes\n"
    )
    assert len(sources(ragistry)) == 8
    assert "7 deleted" in ragistry("ingest", "share", "--prune", "--yes").out
    assert sources(ragistry) == ["tea.txt"]


@pytest.mark.parametrize(("answer", "left"), [("y\n", ["two.txt"]), ("\n", ["one.txt", "two.txt"])])
def test_whoever_prunes_is_asked(
    ragistry: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, left: list[str]
) -> None:
    (tmp_path / "in").mkdir()
    for name in ("one", "two"):
        (tmp_path / "in" / f"{name}.txt").write_text(f"Text of {name}.", encoding="utf-8")
    ragistry("ingest", "in", "--collection", "notes")
    (tmp_path / "in" / "one.txt").unlink()
    terminal = io.StringIO(answer)
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stdin", terminal)
    done = ragistry("ingest", "in", "--prune")
    assert "Delete 1 source of collection 'notes' no longer in the folder (one.txt)? [y/N] " in done.err
    assert (done.code, sources(ragistry)) == (int(len(left) == 2), left)


def test_a_file_that_failed_does_not_hide_that_nothing_was_pruned(ragistry: Run, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("one", "two"):
        (tmp_path / "in" / f"{name}.txt").write_text(f"Text of {name}.", encoding="utf-8")
    ragistry("ingest", "in", "--collection", "notes")
    (tmp_path / "in" / "one.txt").unlink()
    (tmp_path / "in" / "bad.pdf").write_bytes(b"no PDF")
    done = ragistry("ingest", "in", "--prune")
    assert (done.code, sources(ragistry)) == (1, ["one.txt", "two.txt"])
    assert "bad.pdf" in done.out + done.err
    assert "--yes" in done.err


def test_what_went_from_one_folder_to_another_is_not_pruned(ragistry: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.txt").write_text(f"Text of {name}.", encoding="utf-8")
    (tmp_path / "a" / "tea.txt").write_text("Green tea.", encoding="utf-8")
    assert ragistry("ingest", "a", "b", "--collection", "notes").code == 0
    (tmp_path / "a" / "tea.txt").rename(tmp_path / "b" / "tea.txt")
    moved = ragistry("ingest", "a", "b", "--prune", "--yes", "--json").json
    assert (moved["updated"], moved["deleted"]) == (["tea.txt"], [])
    assert sources(ragistry) == ["a.txt", "b.txt", "tea.txt"]


def test_replace_lets_a_file_take_the_place_of_one_that_is_gone(ragistry: Callable[..., Done], tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tea.txt").write_text(f"The {name} tea.", encoding="utf-8")
    assert ragistry("ingest", "old/tea.txt", "--collection", "notes", "--create", "Notes").code == 0
    (tmp_path / "old").rename(tmp_path / "away")
    refused = ragistry("ingest", "new/tea.txt")
    assert (refused.code, "`--replace`" in refused.err) == (1, True)
    assert ragistry("ingest", "new/tea.txt", "--replace", "--json").json["updated"] == ["tea.txt"]


def test_what_links_lead_to_is_not_looked_through_where_they_are_not_followed(
    ragistry: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / "tea.txt").write_text("Green tea.", encoding="utf-8")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "large")
    listed: list[str] = []

    def scandir(path: str) -> Any:
        listed.append(os.path.realpath(path))
        return original(path)

    original = os.scandir
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", scandir)
        done = ragistry("ingest", "in", "--collection", "notes")
    assert (done.code, "1 of its links leads out of it and was left out" in done.err.replace("\n", " ")) == (0, True)
    assert str(tmp_path / "in") in listed
    assert str(tmp_path / "large") not in listed
    assert ragistry("ingest", "in", "--follow-links", "--json").json["added"] == ["link/tea.txt"]


def test_the_configuration_of_the_workspace_is_no_document_of_it(ragistry: Run, tmp_path: Path) -> None:
    assert ragistry("init").code == 0
    refused = ragistry("ingest", ".", "--collection", "notes", "--create", "Notes")
    assert refused.err.startswith("error: '.' holds nothing but the configuration of this workspace, ")
    assert (refused.code, names(ragistry)) == (1, [])
    (tmp_path / "config" / "tea.txt").write_text("Green tea.", encoding="utf-8")
    done = ragistry("ingest", ".", "--collection", "notes", "--create", "Notes")
    assert (done.code, done.err, sources(ragistry)) == (0, "", ["config/tea.txt"])
    assert ragistry("ingest", "config/documents.yaml", "--json").json["added"] == ["documents.yaml"], "it was asked for"
    again = ragistry("ingest", ".", "config/documents.yaml", "--prune", "--json").json
    assert (sorted(again["skipped"]), again["deleted"]) == (["config/tea.txt", "documents.yaml"], [])


def test_a_shell_that_names_every_folder_names_the_configuration_too(ragistry: Run, tmp_path: Path) -> None:
    ragistry("init")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "tea.txt").write_text("Green tea.", encoding="utf-8")
    done = ragistry("ingest", "config", "docs", "--collection", "notes")
    assert (done.code, done.err, sources(ragistry)) == (0, "", ["tea.txt"])
    done = ragistry("ingest", "config")
    assert (done.code, "name a file of it to take that in" in done.err) == (1, True)
