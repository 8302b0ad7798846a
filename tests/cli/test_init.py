"""``ragistry init``: the files that it writes, and what it asks in a terminal."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import TEA, Run, on_terminal
from tests.conftest import Corpus


def test_init_writes_a_workspace_that_loads_and_keeps_what_is_there(ragistry: Run, tmp_path: Path) -> None:
    first = ragistry("--workspace", "new", "init")
    assert (first.code, first.out.count("wrote new/")) == (0, 4)
    assert first.out.endswith("next: ragistry ingest FOLDER --collection NAME\n")
    (tmp_path / "new" / "config" / "documents.yaml").write_text("n_results: 3\n", encoding="utf-8")
    second = ragistry("init", "new", "--json")
    names = ["techniques.yaml", "documents.yaml", "vector_stores.yaml", "models.yaml"]
    assert [Path(name).name for name in second.json["kept"]] == names
    settings = ragistry("config", "-w", "new", "--json").json["settings"]
    assert settings["n_results"] == {"value": 3, "from": "new/config/documents.yaml:1"}
    schemas = tmp_path / "new" / "config" / "schemas"
    schema = json.loads((schemas / "techniques.schema.json").read_text(encoding="utf-8"))
    assert "default" in schema["properties"]


def test_init_where_it_cannot_write_is_refused(ragistry: Run, tmp_path: Path) -> None:
    (tmp_path / "config").write_text("a file where the folder should be", encoding="utf-8")
    ragistry("init").refused(1, "'config")


def test_init_asks_for_documents_and_a_name_and_ingests_them(corpus: Corpus, tmp_path: Path) -> None:
    corpus({"tea.md": TEA}, folder="My Notes")
    code, seen = on_terminal("init", "library", cwd=tmp_path, typed="nowhere\nMy Notes\n\n")
    assert code == 0, seen
    assert "no such file or folder: 'nowhere'" in seen
    assert "Name of the collection [My Notes]: " in seen
    assert "my-notes: 1 added" in seen
    assert seen.endswith('next: cd library && ragistry search "your question"\n')
    assert (tmp_path / "library" / ".ragistry").is_dir()


def test_init_ingests_nothing_after_enter_and_asks_nothing_with_yes(tmp_path: Path) -> None:
    code, seen = on_terminal("init", cwd=tmp_path, typed="\n")
    assert (code, seen.count("Folder of your documents")) == (0, 1)
    assert seen.endswith("next: ragistry ingest FOLDER --collection NAME\n")
    assert not (tmp_path / ".ragistry").exists()
    for words in ([], ["--yes", "other"]):
        code, seen = on_terminal("init", *words, cwd=tmp_path)
        assert (code, "Folder of your documents" in seen) == (0, False), "it is there, or asks nothing"
