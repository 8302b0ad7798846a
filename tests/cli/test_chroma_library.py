"""A library on a Chroma server: what works, what does not, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragistry.testing.openai_server import OpenAIServer
from tests.chroma_server import ChromaServer
from tests.cli.conftest import Run
from tests.conftest import Corpus


@pytest.fixture
def served(chroma: ChromaServer, ragistry: Run, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A library of one file, in a collection of its own on the server."""
    monkeypatch.setenv("CHROMA_HOST", chroma.url)
    monkeypatch.setenv("RAGISTRY_COLLECTION", f"c-{tmp_path.name}")
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    corpus({"bread.txt": "Bread dough with yeast."}, folder=".")
    assert ragistry("init").code == 0
    assert ragistry("ingest", "bread.txt", "--collection", "baking").code == 0
    return ragistry


def test_default_technique_on_a_server_is_one_that_runs_there(served: Run, ragistry: Run) -> None:
    found = served("search", "yeast", "--json")
    assert [document["metadata"]["source_file"] for document in found.json["documents"]] == ["bread.txt"]
    assert served("config", "--json").json["settings"]["default technique"]["value"] == "naive"
    listed = served("techniques", "--json").json["techniques"]
    assert [row["name"] for row in listed if row["default"]] == ["naive"]
    done = served("doctor", "--json")
    works, failed = done.findings["techniques"][1], done.findings["bm25, hybrid"]
    assert works.startswith("naive, ")
    assert "; by default naive (" in works
    assert (done.code, failed[0]) == (0, "warning")


def test_techniques_over_the_default_run_there_and_a_query_is_routed(served: Run, corpus: Corpus) -> None:
    corpus({"soil.txt": "Compost makes soil loose."}, folder=".")
    assert served("ingest", "soil.txt", "--collection", "garden", "--create", "Gardens").code == 0
    for technique in ("parent_document", "routed"):
        found = served("search", "compost for soil", "--technique", technique, "--json")
        assert found.json["documents"][0]["metadata"]["source_file"] == "soil.txt"


def test_own_default_that_cannot_run_there_is_an_error_with_its_remedy(served: Run, tmp_path: Path) -> None:
    file = tmp_path / "config" / "techniques.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("default: auto", "default: hybrid"), encoding="utf-8")
    served("search", "yeast").refused(1, "'naive'", "`store: {use: local}` in vector_stores.yaml")
    doctor = served("doctor", "--json")
    states = {name.partition(",")[0]: state for name, (state, _) in doctor.findings.items()}
    assert (doctor.code, states["bm25"]) == (1, "failed")


def test_what_the_server_lacks_is_refused(served: Run, chroma: ChromaServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for command in ("verify", "repair"):
        served(command).refused(1, chroma.host)
    served("reembed").refused(1, "ChromaStore")
    monkeypatch.setenv("CHROMA_TENANT", "nope")
    served("search", "yeast").refused(1, "tenant 'nope'", "CHROMA_TENANT and CHROMA_DATABASE")


def test_another_embedder_is_refused_with_remedy(served: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with OpenAIServer("other/model", dimension=384) as models:
        monkeypatch.setenv("RAGISTRY_EMBED_MODEL", "tei")
        monkeypatch.setenv("RAGISTRY_EMBED_URL", models.url)
        for words in (("search", "yeast"), ("ingest", "bread.txt", "--collection", "baking")):
            served(*words).refused(1, "(`collection` in documents.yaml)")
        monkeypatch.setenv("RAGISTRY_COLLECTION", f"d-{tmp_path.name}")
        assert served("ingest", "bread.txt", "--collection", "baking").code == 0
        assert served("search", "yeast").code == 0
