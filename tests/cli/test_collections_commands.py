"""``ragistry collections`` and ``ragistry sources`` as a person or a script sees them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ragistry.errors import CollectionNotFoundError
from tests.cli.conftest import TEA, Run
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


def test_collections_and_sources_are_listed_with_their_counts(filled: Run) -> None:
    filled("collections", "describe", "notes", "--display-name", "My notes")
    listed = filled("collections", "list", "--json").json
    first = {"name": "notes", "display_name": "My notes", "description": "Notes about tea"}
    second = {"name": "econ", "display_name": "econ", "description": ""}
    assert listed == {
        "collections": [
            {**first, "source_count": 1, "chunk_count": 1},
            {**second, "source_count": 0, "chunk_count": 0},
        ]
    }
    rows = [line.split() for line in filled("collections", "list").out.splitlines() if line.strip()]
    assert rows[0] == ["name", "display", "name", "sources", "chunks", "description"]
    assert rows[2:] == [["notes", "My", "notes", "1", "1", "Notes", "about", "tea"], ["econ", "econ", "0", "0"]]
    assert filled("ingest", "--list", "--json").json == listed
    of_one = filled("ingest", "--list", "--collection", "notes", "--json").json
    assert of_one == filled("sources", "list", "--collection", "notes", "--json").json
    assert [(source["source_file"], source["chunk_count"]) for source in of_one["sources"]] == [("tea.txt", 1)]
    assert filled("sources", "list", "--json").json["collection"] is None


def test_collection_is_added_described_and_renamed(filled: Run) -> None:
    added = filled("collections", "add", "law", "-d", "Laws", "--json")
    assert added.json == {"name": "law", "display_name": "law", "description": "Laws"}
    described = filled("collections", "describe", "law", "--display-name", "The law", "--json")
    assert described.json == {"name": "law", "display_name": "The law", "description": "Laws"}
    assert filled("collections", "describe", "law").out == "law (The law): Laws\n"
    check_message(filled("collections", "describe", "econ").out, "econ")
    renamed = filled("collections", "rename", "notes", "shelf", "--json")
    assert renamed.json == {"name": "shelf", "formerly": "notes", "chunks": 1}
    assert filled("search", "tea", "--collection", "shelf", "--json").json["total_results"] == 1
    assert filled("collections", "rename", "shelf", "notes").out == "shelf is now notes (1 chunk)\n"


def test_source_is_moved_and_replaces_another_with_overwrite_and_yes_only(filled: Run) -> None:
    words = ["sources", "move", "tea.txt", "--from", "notes", "--to", "econ"]
    assert filled(*words, "--json").json == {"source": "tea.txt", "from": "notes", "to": "econ", "chunks": 1}
    assert sources(filled) == [("econ", "tea.txt")]
    Path("tea.txt").write_text("Another tea, black and strong.", encoding="utf-8")
    assert filled("ingest", "tea.txt", "--collection", "notes").code == 0
    filled(*words).refused(1, "'tea.txt'", "`--overwrite`")
    filled(*words, "--overwrite").refused(1, "'tea.txt'", "'econ'", "--yes")
    [found] = filled("search", "tea", "-c", "econ", "--json").json["documents"]
    assert found["content"] == TEA
    assert filled(*words, "--overwrite", "--yes").code == 0
    [found] = filled("search", "tea", "--json").json["documents"]
    assert (found["metadata"]["collection"], found["content"][:7]) == ("econ", "Another")
    deleted = filled("sources", "delete", "tea.txt", "--collection", "econ", "--yes", "--json")
    assert deleted.json == {"source": "tea.txt", "collection": "econ", "chunks": 1}
    assert sources(filled) == []
    assert Path("tea.txt").exists(), "the file stays"
    assert filled("ingest", "tea.txt", "--collection", "notes").code == 0
    assert filled(*words, "--overwrite").code == 0, "where there is nothing to delete, nothing is asked"


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
    assert filled("collections", "delete", "notes", "--yes", "--json").json == {"name": "notes", "chunks": 1}
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


def test_free_name_becomes_the_display_name_of_a_collection(ragistry: Run, tmp_path: Path) -> None:
    (tmp_path / "tea.txt").write_text(TEA, encoding="utf-8")
    assert ragistry("ingest", "tea.txt", "--collection", "My Papers").code == 0
    [row] = ragistry("collections", "list", "--json").json["collections"]
    assert (row["name"], row["display_name"]) == ("my-papers", "My Papers")
    for name in ("My Papers", "my-papers"):
        assert "tea.txt" in ragistry("search", "tea", "--collection", name).out
    assert ragistry("collections", "delete", "My Papers", "--yes").code == 0


def test_create_describes_a_collection_without_description_and_no_other(filled: Run) -> None:
    documents = Path("config/documents.yaml")
    done = filled("ingest", "tea.txt", "--collection", "econ", "--create", "What I read")
    assert (done.code, done.err, "What I read" in documents.read_text(encoding="utf-8")) == (0, "", True)
    done = filled("ingest", "tea.txt", "--collection", "econ", "--create", "Another")
    assert (done.code, "Another" in documents.read_text(encoding="utf-8")) == (0, False)
    check_message(done.err, "'econ'")


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
    added = filled("ingest", tmp_path / "more.txt", "-c", "notes", "--meta", "client=acme", "--meta", "year=2027")
    assert added.code == 0
    found = filled("search", "tea", "--where", '{"$and": [{"client": "acme"}, {"year": {"$gt": 2026}}]}', "--json")
    assert [one["metadata"]["source_file"] for one in found.json["documents"]] == ["more.txt"]
    for words in (
        ["sources", "set", "tea.txt", "-c", "notes", "page=3"],
        ["ingest", ".", "-c", "notes", "--meta", "x"],
    ):
        refused = filled(*words)
        assert refused.code == 2
        check_message(refused.err, words[-1].partition("=")[0])
