"""``ragistry collections`` and ``ragistry sources`` as a person or a script sees them."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Done

Run = Callable[..., Done]


@pytest.fixture
def filled(ragistry: Run, tmp_path: Path) -> Run:
    (tmp_path / "tea.txt").write_text("Steep green tea in water of eighty degrees.", encoding="utf-8")
    assert ragistry("collections", "add", "notes", "-d", "Notes about tea", "--display-name", "My notes").code == 0
    assert ragistry("ingest", "tea.txt").code == 0
    assert ragistry("collections", "add", "econ").code == 0
    return ragistry


def test_collections_are_listed_with_their_counts(filled: Run) -> None:
    listed = filled("collections", "list", "--json").json
    assert listed == {
        "collections": [
            {
                "name": "notes",
                "display_name": "My notes",
                "description": "Notes about tea",
                "source_count": 1,
                "chunk_count": 1,
            },
            {"name": "econ", "display_name": "econ", "description": "", "source_count": 0, "chunk_count": 0},
        ]
    }
    rows = [line.split() for line in filled("collections", "list").out.splitlines() if line.strip()]
    assert rows[0] == ["name", "display", "name", "sources", "chunks", "description"]
    assert rows[2:] == [["notes", "My", "notes", "1", "1", "Notes", "about", "tea"], ["econ", "econ", "0", "0"]]


def test_ingest_list_is_the_same_list(filled: Run) -> None:
    assert filled("ingest", "--list", "--json").json == filled("collections", "list", "--json").json
    of_one = filled("ingest", "--list", "--collection", "notes", "--json").json
    assert of_one == filled("sources", "list", "--collection", "notes", "--json").json
    assert [(source["source_file"], source["chunk_count"]) for source in of_one["sources"]] == [("tea.txt", 1)]
    assert "tea.txt" in filled("ingest", "--list", "--collection", "notes").out


def test_a_collection_is_added_described_and_renamed(filled: Run) -> None:
    added = filled("collections", "add", "law", "-d", "Laws", "--json")
    assert added.json == {"name": "law", "display_name": "law", "description": "Laws"}
    described = filled("collections", "describe", "law", "--display-name", "The law", "--json")
    assert described.json == {"name": "law", "display_name": "The law", "description": "Laws"}
    assert filled("collections", "describe", "law").out == "law (The law): Laws\n"
    assert filled("collections", "describe", "econ").out.startswith("econ (econ): no description; add one with")
    renamed = filled("collections", "rename", "notes", "shelf", "--json")
    assert renamed.json == {"name": "shelf", "formerly": "notes", "chunks": 1}
    assert filled("search", "tea", "--collection", "shelf", "--json").json["total_results"] == 1
    assert filled("collections", "rename", "shelf", "notes").out == "shelf is now notes (1 chunk)\n"
    again = filled("collections", "add", "law")
    assert (again.code, again.err) == (1, "error: collection 'law' exists; choose another name\n")


def test_a_source_is_listed_moved_and_deleted(filled: Run) -> None:
    moved = filled("sources", "move", "tea.txt", "--from", "notes", "--to", "econ", "--json")
    assert moved.json == {"source": "tea.txt", "from": "notes", "to": "econ", "chunks": 1}
    listed = filled("sources", "list", "--json").json
    assert (listed["collection"], [source["collection"] for source in listed["sources"]]) == (None, ["econ"])
    assert filled("ingest", "tea.txt", "--collection", "notes").code == 0
    taken = filled("sources", "move", "tea.txt", "--from", "notes", "--to", "econ")
    assert (taken.code, "overwrite it (`--overwrite`)" in taken.err) == (1, True)
    assert filled("sources", "move", "tea.txt", "--from", "notes", "--to", "econ", "--overwrite", "--yes").code == 0
    deleted = filled("sources", "delete", "tea.txt", "--collection", "econ", "--yes", "--json")
    assert deleted.json == {"source": "tea.txt", "collection": "econ", "chunks": 1}
    assert filled("sources", "list", "--json").json["sources"] == []
    assert Path("tea.txt").exists(), "the file stays"


DELETES = [
    ["collections", "delete", "notes"],
    ["sources", "delete", "tea.txt", "--collection", "notes"],
    ["ingest", "--delete", "tea.txt", "--collection", "notes"],
]


@pytest.mark.parametrize("words", DELETES)
def test_nothing_is_deleted_where_nobody_can_be_asked(filled: Run, words: list[str]) -> None:
    done = filled(*words)
    assert done.code == 1
    assert done.err.startswith("error: nothing was deleted: to delete ")
    assert done.err.endswith("without being asked, add --yes\n")
    assert filled("search", "tea", "--json").json["total_results"] == 1
    assert filled(*words, "--yes").code == 0
    assert filled("search", "tea", "--json").json["total_results"] == 0


def test_a_source_in_whose_place_another_is_moved_is_not_deleted_unasked(filled: Run) -> None:
    words = ["sources", "move", "tea.txt", "--from", "notes", "--to", "econ", "--overwrite"]
    file = Path("tea.txt")
    file.write_text("Another tea, black and strong.", encoding="utf-8")
    assert filled("ingest", "tea.txt", "--collection", "econ").code == 0
    done = filled(*words)
    assert (done.code, done.out) == (1, "")
    assert "nothing was deleted: to delete source 'tea.txt' of collection 'econ' with 1 chunk for this one" in done.err
    [found] = filled("search", "tea", "-c", "econ", "--json").json["documents"]
    assert found["content"].startswith("Another tea")
    moved = filled(*words, "--yes", "--json")
    assert (moved.code, moved.json["chunks"]) == (0, 1)
    [found] = filled("search", "tea", "--json").json["documents"]
    assert (found["metadata"]["collection"], found["content"][:5]) == ("econ", "Steep")
    assert filled("ingest", "tea.txt", "--collection", "notes").code == 0
    assert filled("sources", "delete", "tea.txt", "-c", "econ", "--yes").code == 0
    assert filled(*words).code == 0, "where there is nothing to delete, nobody is asked"


@pytest.mark.parametrize(("answer", "left"), [("n", 1), ("y", 0)])
def test_on_a_terminal_it_is_asked(filled: Run, tmp_path: Path, answer: str, left: int) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, f"{answer}\n".encode())
    command = [sys.executable, "-m", "ragistry", "collections", "delete", "notes", "--json"]
    done = subprocess.run(command, stdin=theirs, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=60)
    os.close(ours)
    os.close(theirs)
    assert "Delete collection 'notes' with 1 chunk? [y/N] " in done.stderr
    assert (done.returncode, "nothing was deleted" in done.stderr) == (left, bool(left))
    assert done.stdout == ("" if left else '{\n  "name": "notes",\n  "chunks": 1\n}\n')
    assert filled("search", "tea", "--json").json["total_results"] == left


def test_what_does_not_exist_is_told_before_anybody_is_asked(filled: Run) -> None:
    done = filled("collections", "delete", "nots")
    assert "no collection 'nots'; did you mean 'notes'?" in done.err
    done = filled("sources", "delete", "te.txt", "--collection", "notes")
    assert "no source 'te.txt' in collection 'notes'; did you mean 'tea.txt'?" in done.err


def test_orphans_are_told_by_the_list_and_by_doctor_and_can_be_deleted(
    filled: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    file = Path("config/documents.yaml")
    file.write_text(file.read_text(encoding="utf-8").replace("name: notes", "name: other"), encoding="utf-8")
    remedy = "`ragistry collections add notes` takes them back, `ragistry collections delete notes` removes them"
    listed = filled("collections", "list")
    assert "orphaned: 'notes': 1 chunk of 1 source in the store, but no such collection in " in listed.err
    assert remedy in listed.err
    doctor = filled("doctor", "--json")
    [finding] = [finding for finding in doctor.json["findings"] if finding["name"] == "orphaned"]
    assert (doctor.code, finding["state"], remedy in finding["detail"]) == (0, "warning", True)
    assert filled("search", "tea", "--json").json["total_results"] == 0
    assert "collection 'notes' with 1 chunk without" in filled("collections", "delete", "notes").err
    assert filled("collections", "delete", "notes", "--yes", "--json").json == {"name": "notes", "chunks": 1}
    assert filled("collections", "list").err == ""
    assert "orphaned" not in filled("doctor").out


@pytest.mark.parametrize("group", ["collections", "sources"])
def test_a_group_by_itself_shows_its_commands(ragistry: Run, group: str) -> None:
    done = ragistry(group)
    assert (done.code, done.err) == (2, "")
    assert "Commands" in done.out


def test_options_before_the_group_reach_its_commands(
    filled: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ragistry.errors import CollectionNotFoundError

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert len(filled("--workspace", tmp_path, "collections", "list", "--json").json["collections"]) == 2
    assert len(filled("-w", tmp_path, "sources", "list", "--json").json["sources"]) == 1
    assert filled("-w", elsewhere, "sources", "list", "-w", tmp_path, "--json").json["sources"], "those after it win"
    with pytest.raises(CollectionNotFoundError):
        filled("--debug", "--workspace", tmp_path, "collections", "rename", "none", "some")


def test_a_name_that_people_use_becomes_one_that_a_collection_can_have(ragistry: Run, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "tea.txt").write_text("Green tea is steeped briefly.", encoding="utf-8")
    done = ragistry("ingest", tmp_path / "in", "--collection", "My Papers", "--create", "What I read")
    assert done.code == 0
    [row] = ragistry("collections", "list", "--json").json["collections"]
    assert (row["name"], row["display_name"]) == ("my-papers", "My Papers")
    for name in ("My Papers", "my-papers"):
        assert "tea.txt" in ragistry("search", "tea", "--collection", name).out
    assert ragistry("collections", "delete", "My Papers", "--yes").code == 0


def test_create_describes_a_collection_that_has_no_description(ragistry: Run, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "tea.txt").write_text("Green tea is steeped briefly.", encoding="utf-8")
    assert ragistry("collections", "add", "notes").code == 0
    done = ragistry("ingest", tmp_path / "in", "--collection", "notes", "--create", "What I read")
    assert (done.code, done.err) == (0, "")
    [row] = ragistry("collections", "list", "--json").json["collections"]
    assert row["description"] == "What I read"
