"""What a person or a script sees of each command."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Done, process

Run = Callable[..., Done]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "tea.md").write_text("# Tea\n\n## Green\n\nSteep in water of eighty degrees.\n", encoding="utf-8")
    (folder / "rain.txt").write_text("A cold front brings rain, [bold]and[/bold] then clear skies.", encoding="utf-8")
    return folder


@pytest.fixture
def filled(ragistry: Run, notes: Path) -> Run:
    assert ragistry("ingest", notes, "--collection", "notes").code == 0
    return ragistry


def test_init_writes_a_workspace_that_loads_and_keeps_what_is_there(ragistry: Run, tmp_path: Path) -> None:
    first = ragistry("init")
    assert (first.code, first.out.count("wrote")) == (0, 4)
    (tmp_path / "config" / "documents.yaml").write_text("n_results: 3\n", encoding="utf-8")
    second = ragistry("init", "--json")
    assert [Path(name).name for name in second.json["kept"]] == [
        "techniques.yaml",
        "documents.yaml",
        "vector_stores.yaml",
        "models.yaml",
    ]
    assert ragistry("config", "--json").json["settings"]["n_results"] == {
        "value": 3,
        "from": "config/documents.yaml:1",
    }
    schema = json.loads((tmp_path / "config" / "schemas" / "techniques.schema.json").read_text(encoding="utf-8"))
    assert "default" in schema["properties"]


def test_ingest_reports_every_source(ragistry: Run, notes: Path) -> None:
    first = ragistry("ingest", notes, "--collection", "notes", "--json")
    assert (first.code, first.json["added"], first.json["failed"]) == (0, ["rain.txt", "tea.md"], [])
    (notes / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    (notes / "tea.md").write_text("# Tea\n\nBlack tea wants boiling water.\n", encoding="utf-8")
    second = ragistry("ingest", notes, "--json")
    assert second.code == 1
    assert {key: second.json[key] for key in ("added", "updated", "skipped", "deleted")} == {
        "added": [],
        "updated": ["tea.md"],
        "skipped": ["rain.txt"],
        "deleted": [],
    }
    assert "broken.pdf" in second.json["failed"][0]["error"]
    third = ragistry("ingest", notes)
    assert third.err.startswith("failed: ")
    assert "notes: 0 added, 0 updated, 2 skipped, 0 deleted, 1 failed (0 chunks written)" in third.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["missing.txt"], "no such file or folder: 'missing.txt'"),
        (["in", "missing"], "no such file or folder: 'missing'"),
        (["empty"], "no readable files in 'empty'"),
    ],
)
@pytest.mark.parametrize("create", [[], ["--create", "A shelf"]])
def test_a_typo_makes_no_collection(
    ragistry: Run, notes: Path, tmp_path: Path, words: list[str], said: str, create: list[str]
) -> None:
    (tmp_path / "empty").mkdir()
    done = ragistry("ingest", *words, "--collection", "notes", *create)
    assert (done.code, said in done.err) == (1, True)
    assert not (tmp_path / "config" / "documents.yaml").exists()


def test_a_second_description_is_not_taken_in_silence(filled: Run, notes: Path) -> None:
    assert filled("collections", "describe", "notes", "--description", "What I wrote").code == 0
    done = filled("ingest", notes, "--collection", "notes", "--create", "Another")
    assert (done.code, done.err) == (0, "note: collection 'notes' exists; its description stays\n")
    assert "Another" not in Path("config/documents.yaml").read_text(encoding="utf-8")


def test_search_prints_title_place_and_the_lines_that_answer(filled: Run) -> None:
    done = filled("search", "water temperature for green tea", "--top-k", 1)
    assert done.code == 0
    assert done.out.startswith("1. Tea\n   notes · tea.md · Green\n")
    assert "Steep in water of eighty degrees." in done.out
    for technique, kind in (("naive", "cosine"), ("bm25", "bm25"), ("mmr", "mmr"), ("parent_document", "dbsf")):
        first, *_ = filled("search", "green tea", "-k", 1, "-t", technique, "--scores").out.splitlines()
        assert re.fullmatch(rf"1\. Tea  {kind} \d+\.\d\d\d", first)
    assert "[bold]and[/bold]" in filled("search", "rain", "-k", 1).out, "markup of documents is text"


def test_search_as_json(filled: Run) -> None:
    answer = filled("search", "green tea", "--json", "--technique", "mmr", "--top-k", 2).json
    assert list(answer) == ["query", "documents", "total_results", "search_time_ms", "trace"]
    assert list(answer["documents"][0]) == ["id", "content", "metadata", "score", "scores"]
    assert [score["kind"] for score in answer["documents"][0]["scores"]] == ["cosine", "mmr"]
    assert answer["total_results"] == len(answer["documents"]) == 2
    assert [stage["name"] for stage in answer["trace"]][:2] == ["mmr", "naive"]


def test_search_with_a_condition(filled: Run) -> None:
    documents = filled("search", "water", "--json", "--where", '{"source_file": "rain.txt"}').json["documents"]
    assert [document["metadata"]["source_file"] for document in documents] == ["rain.txt"]


def test_techniques_lists_what_is_configured_and_what_could_be(ragistry: Run) -> None:
    listed = ragistry("techniques")
    assert "hybrid (default)" in listed.out
    assert "mmr over naive" in listed.out
    rows = ragistry("techniques", "--json").json["techniques"]
    assert [row["name"] for row in rows if row["default"]] == ["hybrid"]
    assert {"naive", "mmr", "pipeline"} <= {
        row["name"] for row in ragistry("techniques", "--available", "--json").json["techniques"]
    }
    assert "default" in ragistry("techniques", "--schema").json["properties"]


def test_what_a_technique_does_is_its_first_sentence_as_plain_text(ragistry: Run) -> None:
    rows = ragistry("techniques", "--available", "--json").json["techniques"]
    said = {row["name"]: row["description"] for row in rows}
    assert [name for name, text in said.items() if not text or "`" in text or "\n" in text or text.endswith(":")] == []
    assert said["sentence_window"].endswith("joins each hit of the base with window chunks before and after it.")
    assert said["pipeline"].endswith("the action a step returns selects the next step")


def test_config_says_where_each_value_comes_from(ragistry: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGISTRY_N_RESULTS", "9")
    monkeypatch.setenv("CHROMA_API_KEY", "very secret")
    settings = ragistry("config", "--json").json["settings"]
    assert settings["n_results"] == {"value": 9, "from": "environment RAGISTRY_N_RESULTS"}
    assert settings["chunk_size"] == {"value": 1000, "from": "default"}
    assert settings["chroma_api_key"]["value"] == "set"
    monkeypatch.setenv("COLUMNS", "160")
    shown = ragistry("config").out
    assert "very secret" not in shown
    assert "None" not in shown
    assert "{" not in shown
    assert "seconds 60, pages 5000" in shown


@pytest.mark.usefixtures("configured")
def test_doctor_tells_what_works(ragistry: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    done = ragistry("doctor", "--json")
    states = {finding["name"]: finding["state"] for finding in done.json["findings"]}
    assert states == {
        "versions": "ok",
        "configuration": "ok",
        "techniques": "ok",
        "techniques with a generator": "off",
        "reranker maxsim": "ok",
        "model": "ok",
        "store": "ok",
        "ollama": "off",
    }
    assert done.code == 0
    assert "ollama serve" in ragistry("doctor").out


def test_doctor_names_sources_whose_files_were_moved_away(ragistry: Run, tmp_path: Path) -> None:
    (tmp_path / "g").mkdir()
    for name in ("a.md", "b.md"):
        (tmp_path / "g" / name).write_text(f"Of {name}.", encoding="utf-8")
    assert ragistry("ingest", "g", "--collection", "notes", "--create", "Notes").code == 0
    assert not [finding for finding in ragistry("doctor", "--json").json["findings"] if finding["name"] == "files"]
    (tmp_path / "g" / "a.md").rename(tmp_path / "moved.md")
    [finding] = [finding for finding in ragistry("doctor", "--json").json["findings"] if finding["name"] == "files"]
    assert finding["state"] == "warning"
    assert "1 source has a file that is not there now, and is still searched: 'notes: a.md'" in finding["detail"]


def test_doctor_tells_what_does_not(ragistry: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    monkeypatch.setenv("RAGISTRY_EMBED_MODEL", "nomic-embed-text")
    done = ragistry("doctor", "--json")
    assert done.code == 1
    failed = {finding["name"] for finding in done.json["findings"] if finding["state"] == "failed"}
    assert failed == {"model", "ollama"}, "what the store needs of the model is not told again"
    monkeypatch.setenv("RAGISTRY_N_RESULTS", "many")
    assert "n_results" in ragistry("doctor").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["search", ""], "the query is empty: ''"),
        (["search", "tea", "--top-k", "0"], "from 1 to 1,000, got 0"),
        (["search", "tea", "--top-k", "10000"], "from 1 to 1,000, got 10000"),
        (["search", "tea", "--technique", "naiv"], "no technique 'naiv'; did you mean 'naive'"),
        (["search", "tea", "--collection", "note"], "no collection 'note'; did you mean 'notes'"),
        (["search", "tea", "--where", "{page: 3}"], "--where is not JSON"),
        (["search", "tea", "--where", "{}"], "where is empty"),
        (["search", "tea", "--workspace", "nowhere"], "no such folder: 'nowhere'"),
        (["ingest", "missing.txt"], "no such file or folder: 'missing.txt'"),
        (["ingest", "in", "--collection", "note"], "no collection 'note'; did you mean 'notes'"),
        (["ingest", "empty"], "no readable files in 'empty'"),
    ],
)
def test_an_error_is_one_line_with_the_value_and_the_remedy(filled: Run, words: list[str], said: str) -> None:
    Path("empty").mkdir()
    done = filled(*words)
    assert done.code == 1
    assert done.err.startswith("error: ")
    assert said in done.err
    assert "Traceback" not in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_a_new_collection_needs_a_description_once_there_are_others(filled: Run, notes: Path) -> None:
    done = filled("ingest", notes, "--collection", "more", "--create", "Second shelf", "--json")
    assert (done.code, done.json["collection"]) == (0, "more")
    assert "Second shelf" in Path("config/documents.yaml").read_text(encoding="utf-8")
    done = filled("ingest", notes)
    assert "say which collection with --collection NAME; there are notes, more" in done.err


@pytest.mark.usefixtures("configured")
def test_debug_shows_the_traceback(ragistry: Run) -> None:
    from ragistry.errors import UnknownTechniqueError

    with pytest.raises(UnknownTechniqueError):
        ragistry("search", "tea", "--technique", "nope", "--debug")


def test_an_unwritable_workspace_is_one_line(ragistry: Run, tmp_path: Path) -> None:
    (tmp_path / "config").write_text("a file where the folder should be", encoding="utf-8")
    done = ragistry("init")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert done.err.startswith("error: cannot write")


def test_no_colour_and_no_progress_where_nobody_looks(tmp_path: Path, notes: Path) -> None:
    done = process("ingest", notes, "--collection", "notes", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert "\x1b" not in done.out
    done = process("search", "tea", "-k", "1", cwd=tmp_path, FORCE_COLOR="1")
    assert "\x1b[" in done.out
    done = process("search", "tea", "-k", "1", cwd=tmp_path, FORCE_COLOR="1", NO_COLOR="1")
    assert "\x1b[3" not in done.out
    assert done.out.startswith("1. ") or "1. " in done.out


def test_version(ragistry: Run) -> None:
    from ragistry import __version__

    assert ragistry("--version").out.strip() == f"ragistry {__version__}"


def test_what_a_document_says_is_no_command_to_the_terminal(ragistry: Run, tmp_path: Path) -> None:
    name = "evil\x1b[2Jname.md"
    (tmp_path / name).write_text("Title \x1b]0;owned\x07 of \x1b[31mrotors\x1b[0m.\n\nA \u202e second line.\n")
    assert ragistry("ingest", "-c", "notes", "--create", "Notes", name).code == 0
    (tmp_path / "\x1b[1mbad.pdf").write_bytes(b"%PDF-1.4 nothing")
    shown = [
        ragistry("search", "rotors"),
        ragistry("search", "rotors", "--full", "--trace"),
        ragistry("sources", "list"),
        ragistry("sources", "delete", "-c", "notes", "--yes", name),
        ragistry("ingest", "-c", "notes", "."),
    ]
    assert all("evil" in done.out for done in shown[:4])
    for done in shown:
        assert not set("\x1b\x07\u202e") & set(done.out + done.err)
    found = ragistry("search", "rotors", "--json")
    assert "\x1b" in found.json["documents"][0]["content"], "a program gets the text as it is"
