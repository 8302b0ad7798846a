"""``ragistry config``: every setting, its value, and where the value comes from."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Run
from tests.conftest import Corpus

ARCHIVES = """\
archives:
  - {name: Letters, collection_name: letters, embedding_model: sentence-transformers/all-MiniLM-L6-v2}
"""


def test_config_lists_settings_with_their_origin(ragistry: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGISTRY_N_RESULTS", "9")
    monkeypatch.setenv("CHROMA_API_KEY", "very secret")
    monkeypatch.setenv("COLUMNS", "160")
    settings = ragistry("config", "--json").json["settings"]
    assert settings["default technique"] == {"value": "hybrid", "from": "default"}
    assert settings["n_results"] == {"value": 9, "from": "environment RAGISTRY_N_RESULTS"}
    assert settings["chunk_size"] == {"value": 1000, "from": "default"}
    assert settings["chroma_api_key"]["value"] == "set"
    names = list(settings)
    assert names[:4] == ["default technique", "n_results", "embed_model", "language"]
    assert names[6:8] == ["store", "data_dir"]
    assert [name for name in names if name.isupper()] == [], "there are no archives"
    shown = ragistry("config").out
    assert [line.split()[0] for line in shown.splitlines()[3:6]] == ["default", "n_results", "embed_model"]
    assert [part for part in ("very secret", "None", "{", "RAG_") if part in shown] == []
    assert "seconds 60, pages 5000" in shown


def test_config_lists_variables_of_archives(ragistry: Run, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus({"vector_stores.yaml": ARCHIVES}, folder="config")
    monkeypatch.setenv("RAG_QUERY_TIMEOUT_SECONDS", "7")
    settings = ragistry("config", "--json").json["settings"]
    assert settings["RAG_QUERY_TIMEOUT_SECONDS"] == {"value": 7, "from": "environment RAG_QUERY_TIMEOUT_SECONDS"}
    assert settings["DOCPROC_CHROMADB_URL"] == {"value": "http://chromadb:8000", "from": "default"}
    assert "DOCPROC_TEI_EMBEDDINGS_URL" in ragistry("config").out


def test_workspace_may_precede_the_command(ragistry: Run, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("a", 301), ("b", 302), ("c", 303)):
        corpus({"documents.yaml": f"chunk_size: {size}\n"}, folder=f"{name}/config")
    for variable, line, size in (
        ("", "--workspace a config", 301),
        ("", "config -w b", 302),
        ("", "-w a config -w b", 302),  # the one after the command wins
        ("c", "config", 303),
        ("c", "-w a config", 301),
        ("c", "config -w b", 302),
    ):
        monkeypatch.setenv("RAGISTRY_WORKSPACE", variable or ".")
        assert ragistry(*line.split(), "--json").json["settings"]["chunk_size"]["value"] == size, line
