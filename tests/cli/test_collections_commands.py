"""``ragistry collections`` and ``ragistry sources`` as a person or a script sees them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ragistry.errors import CollectionNotFoundError
from tests.cli.conftest import TEA, Run, session
from tests.conftest import Corpus
from tests.messages import check_message
from tests.stores.scripts import start

WRITER = """
import sys
from ragistry.stores.local import LocalStore
store = LocalStore(sys.argv[1], exclusive=True)
print("writing", flush=True)
sys.stdin.read()
"""
NOTES = {
    "name": "notes",
    "display_name": "My notes",
    "description": "Notes about tea",
    "source_count": 1,
    "unsearchable_count": 0,
    "chunk_count": 1,
}
ECON = {
    "name": "econ",
    "display_name": "econ",
    "description": "",
    "source_count": 0,
    "chunk_count": 0,
    "unsearchable_count": 0,
}
MOVE = "sources move tea.txt --from notes --to econ"
MOVED = {"source": "tea.txt", "from": "notes", "to": "econ", "chunks": 1}
DELETED = {"source": "tea.txt", "collection": "econ", "chunks": 1}


@pytest.fixture
def filled(filled: Run) -> Run:
    """The command in a workspace with the collections ``notes`` and ``econ``, which is empty."""
    assert filled("collections", "add", "econ").code == 0
    return filled


def names(run: Run) -> list[str]:
    return [row["name"] for row in run("collections", "list", "--json").json["collections"]]


def sources(run: Run, *words: str) -> list[tuple[str, str]]:
    listed = run("sources", "list", *words, "--json").json["sources"]
    return [(source["collection"], source["source_file"]) for source in listed]


def test_collections_are_added_described_renamed_and_listed_with_their_counts(filled: Run) -> None:
    law = {"name": "law", "display_name": "law", "description": "Laws"}
    session(
        filled,
        [
            ("collections describe notes --display-name 'My notes'", 0, "notes (My notes): Notes about tea\n"),
            ("collections list --json", 0, {"collections": [NOTES, ECON]}),
            ("ingest --list --json", 0, {"collections": [NOTES, ECON]}),
            ("collections add law -d Laws --json", 0, law),
            ("collections describe law --display-name 'The law' --json", 0, law | {"display_name": "The law"}),
            ("collections describe law", 0, "law (The law): Laws\n"),
            ("collections describe econ", 0, ("econ",)),
            ("collections rename notes shelf --json", 0, {"name": "shelf", "formerly": "notes", "chunks": 1}),
            ("collections rename shelf notes", 0, "shelf is now notes (1 chunk)\n"),
            ("collections delete law --yes --json", 0, {"name": "law", "chunks": 0}),
        ],
    )
    rows = [line.split() for line in filled("collections", "list").out.splitlines() if line.strip()]
    assert rows[0] == ["name", "display", "name", "sources", "chunks", "description"]
    assert rows[2:] == [["notes", "My", "notes", "1", "1", "Notes", "about", "tea"], ["econ", "econ", "0", "0"]]
    of_one = filled("ingest", "--list", "--collection", "notes", "--json").json
    assert of_one == filled("sources", "list", "--collection", "notes", "--json").json
    assert [(source["source_file"], source["chunk_count"]) for source in of_one["sources"]] == [("tea.txt", 1)]


def test_source_is_moved_and_replaces_another_with_overwrite_and_yes_only(filled: Run) -> None:
    def content() -> list[str]:
        return [one["content"] for one in filled("search", "tea", "-c", "econ", "--json").json["documents"]]

    session(filled, [(f"{MOVE} --json", 0, MOVED)])
    Path("tea.txt").write_text("Another tea, black and strong.", encoding="utf-8")
    assert filled("ingest", "tea.txt", "--collection", "notes").code == 0
    session(filled, [(MOVE, 1, ("'tea.txt'", "`--overwrite`")), (f"{MOVE} --overwrite", 1, ("'econ'", "--yes"))])
    assert (len(sources(filled)), content()) == (2, [TEA])
    assert filled(*MOVE.split(), "--overwrite", "--yes").code == 0
    assert (sources(filled), content()) == ([("econ", "tea.txt")], ["Another tea, black and strong."])
    session(filled, [("sources delete tea.txt --collection econ --yes --json", 0, DELETED)])
    assert (sources(filled), Path("tea.txt").exists()) == ([], True)
    assert filled("ingest", "tea.txt", "--collection", "notes").code == 0
    assert filled(*MOVE.split(), "--overwrite").code == 0, "where there is nothing to delete, nothing is asked"


@pytest.mark.parametrize(("typed", "left"), [("n\n", 1), ("\n", 1), ("y\n", 0)])
def test_deletion_is_asked_for_on_a_terminal(filled: Run, answer: Callable[[str], None], typed: str, left: int) -> None:
    answer(typed)
    done = filled("collections", "delete", "notes", "--json")
    assert (done.code, len(sources(filled))) == (left, left)
    check_message(done.err, "'notes'", "1 chunk", "[y/N]")
    assert done.out == ("" if left else '{\n  "name": "notes",\n  "chunks": 1\n}\n')


def test_orphans_are_named_by_list_and_doctor_and_can_be_deleted(filled: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    file = Path("config/documents.yaml")
    file.write_text(file.read_text(encoding="utf-8").replace("name: notes", "name: other"), encoding="utf-8")
    remedies = ("`ragistry collections add notes`", "`ragistry collections delete notes`")
    check_message(filled("collections", "list").err, "'notes'", "1 chunk of 1 source", *remedies)
    doctor = filled("doctor", "--json")
    state, detail = doctor.findings["orphaned"]
    assert (doctor.code, state) == (0, "warning")
    check_message(detail, *remedies)
    assert filled("search", "tea", "--json").json["total_results"] == 0
    filled("collections", "delete", "notes").refused(1, "'notes'", "1 chunk")
    session(filled, [("collections delete notes --yes --json", 0, {"name": "notes", "chunks": 1})])
    assert filled("collections", "list").err == ""
    assert "orphaned" not in filled("doctor", "--json").findings


def test_options_before_a_group_reach_commands(filled: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert len(filled("--workspace", tmp_path, "collections", "list", "--json").json["collections"]) == 2
    assert sources(filled, "-w", str(tmp_path)) == [("notes", "tea.txt")]
    assert filled("-w", elsewhere, "sources", "list", "-w", tmp_path, "--json").json["sources"], "those after it win"
    with pytest.raises(CollectionNotFoundError):
        filled("--debug", "--workspace", tmp_path, "collections", "rename", "none", "some")
    for group in ("collections", "sources"):
        done = filled(group)
        assert (done.code, done.err, "Commands" in done.out) == (2, "", True)


def test_free_name_becomes_the_display_name_of_a_collection_and_create_its_description(filled: Run) -> None:
    documents = Path("config/documents.yaml")
    assert filled("ingest", "tea.txt", "--collection", "econ", "--create", "Prices").code == 0
    assert "Prices" in documents.read_text(encoding="utf-8"), "it had no description"
    for description, is_written in (("What I read", True), ("Another", False)):
        done = filled("ingest", "tea.txt", "--collection", "My Papers", "--create", description)
        assert (done.code, description in documents.read_text(encoding="utf-8")) == (0, is_written)
    check_message(done.err, "'my-papers'")
    row = filled("collections", "list", "--json").json["collections"][-1]
    assert (row["name"], row["display_name"]) == ("my-papers", "My Papers")
    for name in ("My Papers", "my-papers"):
        assert "tea.txt" in filled("search", "tea", "--collection", name).out
    assert filled("collections", "delete", "My Papers", "--yes").code == 0


def test_commands_while_another_process_writes_change_nothing(filled: Run, corpus: Corpus, tmp_path: Path) -> None:
    corpus({"vector_stores.yaml": "store: {use: local, lock_timeout: 0.1}"}, folder="config")
    with start(WRITER, tmp_path / ".ragistry") as writer:
        assert writer.stdout.readline() == "writing\n"
        for words in (
            ("ingest", "tea.txt", "-c", "new", "--create", "Something new"),
            ("collections", "rename", "notes", "pouring"),
            ("collections", "delete", "notes", "--yes"),
        ):
            filled(*words).refused(1, f"process {writer.pid}")
            assert names(filled) == ["notes", "econ"]
        assert filled("search", "tea", "-c", "notes", "--json").json["total_results"] == 1
        assert filled("collections", "delete", "econ", "--yes").code == 0, "it is empty"
        writer.communicate("")
    assert filled("collections", "rename", "notes", "pouring").code == 0


def test_metadata_are_set_listed_and_searched(filled: Run, tmp_path: Path) -> None:
    assert filled("sources", "set", "tea.txt", "-c", "notes", "year=2026", 'tags:=["a"]', "draft=true").code == 0
    answer = filled("sources", "set", "tea.txt", "-c", "notes", "draft:=null", "--json").json
    assert answer["metadata"].items() >= {"year": 2026, "tags": ["a"]}.items()
    [row] = filled("sources", "list", "--json").json["sources"]
    assert (row["metadata"], row["set_keys"]) == (answer["metadata"], ["draft", "tags", "year"])
    assert "year: 2026" in filled("sources", "list").out
    (tmp_path / "more.txt").write_text("More tea.", encoding="utf-8")
    assert filled("ingest", "more.txt", "-c", "notes", "--meta", "client=acme", "--meta", "year=2027").code == 0
    found = filled("search", "tea", "--where", '{"$and": [{"client": "acme"}, {"year": {"$gt": 2026}}]}', "--json")
    assert [one["metadata"]["source_file"] for one in found.json["documents"]] == ["more.txt"]
    session(filled, [("sources set tea.txt -c notes page=3", 2, ("page",)), ("ingest . -c notes --meta x", 2, ("x",))])
