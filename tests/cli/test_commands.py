"""What a person or a script sees of each command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ragistry import __version__, open_workspace
from ragistry.errors import UnknownTechniqueError
from tests.cli.conftest import Run, process
from tests.conftest import Corpus
from tests.messages import check_message

FILES = {
    "tea.md": "# Tea\n\n## Green\n\nSteep in water of eighty degrees.\n",
    "rain.txt": "A cold front brings rain, [bold]and[/bold] then clear skies.",
}


@pytest.fixture
def notes(corpus: Corpus) -> Path:
    return corpus(FILES, folder="in")


@pytest.fixture
def filled(ragistry: Run, notes: Path) -> Run:
    assert ragistry("ingest", notes, "--collection", "notes").code == 0
    return ragistry


def test_ingest_reports_every_source(ragistry: Run, notes: Path) -> None:
    first = ragistry("ingest", notes, "--collection", "notes", "--json")
    assert (first.code, first.json["added"], first.json["failed"]) == (0, ["rain.txt", "tea.md"], [])
    (notes / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    (notes / "tea.md").write_text("# Tea\n\nBlack tea wants boiling water.\n", encoding="utf-8")
    second = ragistry("ingest", notes, "--json")
    changes = {key: second.json[key] for key in ("added", "updated", "skipped", "deleted")}
    assert changes == {"added": [], "updated": ["tea.md"], "skipped": ["rain.txt"], "deleted": []}
    assert (second.code, "broken.pdf" in second.json["failed"][0]["error"]) == (1, True)
    third = ragistry("ingest", notes)
    check_message(third.err, "broken.pdf")
    assert "notes: 0 added, 0 updated, 2 skipped, 0 deleted, 1 failed (0 chunks written)" in third.out


def test_search_prints_title_place_and_the_lines_that_answer(filled: Run) -> None:
    done = filled("search", "water temperature for green tea", "--top-k", 1)
    assert done.code == 0
    assert done.out.startswith("1. Tea\n   notes · tea.md · Green · line 5\n")
    assert "Steep in water of eighty degrees." in done.out
    for technique, kind in (("naive", "cosine"), ("bm25", "bm25"), ("graph", "pagerank"), ("parent_document", "dbsf")):
        first, *_ = filled("search", "green tea", "-k", 1, "-t", technique, "--scores").out.splitlines()
        assert re.fullmatch(rf"1\. Tea  {kind} \d+\.\d\d\d", first)
    assert "[bold]and[/bold]" in filled("search", "rain", "-k", 1).out, "markup of documents is text"


def test_search_as_json_and_with_a_condition(filled: Run) -> None:
    answer = filled("search", "green tea", "--json", "--technique", "graph", "--top-k", 2).json
    assert answer.keys() == {"query", "documents", "total_results", "search_time_ms", "trace", "unknown_words"}
    assert answer["documents"][0].keys() == {"id", "content", "metadata", "score", "scores", "place"}
    assert [score["kind"] for score in answer["documents"][0]["scores"]] == ["cosine", "bm25", "dbsf", "pagerank"]
    assert answer["total_results"] == len(answer["documents"]) == 2
    assert [stage["name"] for stage in answer["trace"]][:2] == ["graph", "hybrid"]
    documents = filled("search", "water", "--json", "--where", '{"source_file": "rain.txt"}').json["documents"]
    assert [document["metadata"]["source_file"] for document in documents] == ["rain.txt"]


def test_other_passages_of_a_file_and_similar_files_are_one_result_that_opens(ragistry: Run, corpus: Corpus) -> None:
    parts = [f"## Part {number}\n\nThe pump of kind {number} moves water. {'It hums. ' * 40}" for number in range(5)]
    rent = (
        "# Rent statement\n\nStatement for the flat at 14 Quay Street, second floor left. Month: {}. Rent received: {} "
        "euros. The balance is carried forward to the next statement. Please report differences within fourteen days "
        "to the office of the administration, which is open on all days of the week but Sunday from nine to five."
    )
    texts = {f"rent-{month}.md": rent.format(f"2025-{month:02}", 800 + month) for month in range(1, 6)}
    assert ragistry("ingest", corpus({"pumps.md": "\n\n".join(parts), **texts}), "--collection", "papers").code == 0
    for query, end, shown in (
        ("pump moves water", "   2 more in this file: --result 1", [f"kind {number} moves" for number in range(5)]),
        ("rent received", "; and 1 more: --result 1", [f"{800 + month} euros" for month in range(1, 6)]),
    ):
        listed = ragistry("search", query, "-t", "bm25").out.splitlines()
        assert [line.endswith(end) for line in listed if "--result" in line] == [True], listed
        whole = ragistry("search", query, "-t", "bm25", "--result", 1).out
        assert [text for text in shown if text not in whole] == []
        assert len(ragistry("search", query, "-t", "bm25", "--json").json["documents"]) == 5
    assert all(f"{name} · " in whole for name in texts)
    ragistry("search", "pump moves water", "-t", "bm25", "--result", 9).refused(1, "--result", 9)
    ragistry("search", "pump", "--result", 1, "--json").refused(2, "--result", "--json")


@pytest.mark.usefixtures("configured")
def test_search_in_an_empty_store_warns_once(ragistry: Run) -> None:
    done = ragistry("search", "tea", "--technique", "hybrid")
    assert done.code == 0
    check_message(done.err)


def test_techniques_lists_what_is_configured_and_what_is_available(ragistry: Run) -> None:
    listed = ragistry("techniques")
    assert "hybrid (default)" in listed.out
    assert "graph over hybrid" in listed.out
    rows = ragistry("techniques", "--json").json["techniques"]
    assert [row["name"] for row in rows if row["default"]] == ["hybrid"]
    cannot = [row["name"] for row in rows if row["unusable"]]
    assert {"hyde", "corrective"} <= set(cannot)
    assert {"graph", "rerank", "hybrid"}.isdisjoint(cannot)
    assert listed.out.count("Cannot run") == len(cannot)
    check_message(listed.err, *cannot)
    available = ragistry("techniques", "--available", "--json").json["techniques"]
    described = {row["name"]: row["description"] for row in available}
    assert {"naive", "graph", "pipeline"} <= described.keys()
    wrong = [name for name, text in described.items() if not text or re.search(r"[`\n]|:$", text)]
    assert wrong == [], "a description is the first sentence as plain text"
    assert described["parent_document"].endswith("the largest part of its source that is not too long.")
    assert described["pipeline"].endswith("the action that a step returns selects the next step")


@pytest.mark.usefixtures("configured")
def test_debug_shows_the_traceback(ragistry: Run) -> None:
    for words in (["search", "tea", "-t", "nope", "--debug"], ["--debug", "search", "tea", "-t", "nope"]):
        with pytest.raises(UnknownTechniqueError):
            ragistry(*words)


def test_output_in_a_pipe_is_plain(ragistry: Run, tmp_path: Path, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = process("ingest", notes, "--collection", "notes", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert "\x1b" not in done.out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in ragistry("search", "tea", "-k", "1").out
    monkeypatch.setenv("NO_COLOR", "1")
    done = ragistry("search", "tea", "-k", "1")
    assert "\x1b[3" not in done.out
    assert "1. " in done.out


def test_version(ragistry: Run) -> None:
    assert ragistry("--version").out.strip() == f"ragistry {__version__}"


def test_text_of_a_document_is_no_command_to_the_terminal(ragistry: Run, tmp_path: Path) -> None:
    name = "evil\x1b[2Jname.md"
    (tmp_path / name).write_text("Title \x1b]0;owned\x07 of \x1b[31mrotors\x1b[0m.\n\nA \u202e second line.\n")
    assert ragistry("ingest", "-c", "notes", "--create", "Notes", name).code == 0
    with open_workspace(tmp_path) as workspace:  # a text of a program has its commands, those of a file are removed
        workspace.library.ingest_text("Rotors \x1b]0;owned\x07 turn \x1b[31mfast\x1b[0m.", "own", "notes")
    (tmp_path / "\x1b[1mbad.pdf").write_bytes(b"%PDF-1.4 nothing")
    found = ragistry("search", "rotors", "--json")
    texts = {one["metadata"]["source_file"]: one["content"] for one in found.json["documents"]}
    assert ("\x1b" in texts["own"], "\x1b" in texts[name]) == (True, False)
    shown = [
        ragistry("search", "rotors", "--full", "--trace"),
        ragistry("search", "rotors"),
        ragistry("sources", "list"),
        ragistry("sources", "delete", "-c", "notes", "--yes", name),
        ragistry("ingest", "-c", "notes", "."),
    ]
    assert all("evil" in done.out for done in shown[:4])
    for done in shown:
        assert not set("\x1b\x07\u202e") & set(done.out + done.err)
