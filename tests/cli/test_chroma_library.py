"""A library on a Chroma server: what works, what does not, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ragistry.testing.chroma_server import ChromaServer, chroma_server
from ragistry.testing.openai_server import OpenAIServer
from tests.cli.conftest import Done

Run = Callable[..., Done]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaServer]:
    with chroma_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def served(server: ChromaServer, ragistry: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A library of one file, in a collection of its own on the server."""
    monkeypatch.setenv("CHROMA_HOST", server.host)
    monkeypatch.setenv("CHROMA_PORT", str(server.port))
    monkeypatch.setenv("RAGISTRY_COLLECTION", f"c-{tmp_path.name}")
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    (tmp_path / "bread.txt").write_text("Bread dough with yeast.", encoding="utf-8")
    assert ragistry("init").code == 0
    assert ragistry("ingest", "bread.txt", "--collection", "baking").code == 0
    return ragistry


def test_the_packaged_default_is_a_technique_that_runs_there(served: Run) -> None:
    found = served("search", "yeast", "--json")
    assert found.code == 0, found.err
    assert [document["metadata"]["source_file"] for document in found.json["documents"]] == ["bread.txt"]
    assert served("config", "--json").json["settings"]["default technique"]["value"] == "naive"
    listed = served("techniques", "--json").json["techniques"]
    assert [row["name"] for row in listed if row["default"]] == ["naive"]


def test_doctor_names_the_techniques_that_cannot_run_there(served: Run) -> None:
    done = served("doctor", "--json")
    findings = {finding["name"]: finding for finding in done.json["findings"]}
    works = findings["techniques"]["detail"]
    assert works.startswith("naive, ")
    assert works.endswith("; by default naive (the store does not search words)")
    failed = findings["bm25, hybrid, adaptive"]
    assert (done.code, failed["state"]) == (0, "warning")
    assert "does not search words" in failed["detail"]


def test_what_stands_on_the_default_runs_there_and_a_query_is_routed(served: Run, tmp_path: Path) -> None:
    (tmp_path / "soil.txt").write_text("Compost makes soil loose.", encoding="utf-8")
    assert served("ingest", "soil.txt", "--collection", "garden", "--create", "Gardens").code == 0
    for technique in ("parent_document", "sentence_window", "routed"):
        found = served("search", "compost for soil", "--technique", technique, "--json")
        assert found.code == 0, found.err
        assert found.json["documents"][0]["metadata"]["source_file"] == "soil.txt"
    route = served("route", "compost for soil", "--json")
    assert (route.code, route.json["chosen"]) == (0, ["garden"]), route.err


def test_a_default_of_ones_own_that_cannot_run_there_is_an_error_with_its_remedy(served: Run, tmp_path: Path) -> None:
    file = tmp_path / "config" / "techniques.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("default: auto", "default: hybrid"), encoding="utf-8")
    done = served("search", "yeast")
    assert done.code == 1
    assert "use 'naive', as the default and as a base" in done.err
    assert "`store: {use: local}` in vector_stores.yaml" in done.err
    doctor = served("doctor", "--json")
    states = {finding["name"].partition(",")[0]: finding["state"] for finding in doctor.json["findings"]}
    assert (doctor.code, states["bm25"]) == (1, "failed")


@pytest.mark.parametrize("command", ["verify", "repair", "reembed"])
def test_what_the_server_cannot_do_is_one_line(served: Run, server: ChromaServer, command: str) -> None:
    done = served(command)
    assert (done.code, len(done.err.splitlines())) == (1, 1)
    assert server.host in done.err
    assert "<" not in done.err


@pytest.mark.parametrize(("variable", "key"), [("CHROMA_TENANT", "tenant"), ("CHROMA_DATABASE", "database")])
def test_a_tenant_or_database_that_the_server_has_not_is_to_be_corrected(
    served: Run, monkeypatch: pytest.MonkeyPatch, variable: str, key: str
) -> None:
    monkeypatch.setenv(variable, "nope")
    done = served("search", "yeast")
    assert done.code == 1
    assert f"{key} 'nope'" in done.err
    assert "correct CHROMA_TENANT and CHROMA_DATABASE" in done.err
    assert "removed" not in done.err


def test_another_embedder_is_refused_with_a_remedy_that_leads_on(
    served: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with OpenAIServer("other/model", dimension=384) as models:
        monkeypatch.setenv("RAGISTRY_EMBED_MODEL", "tei")
        monkeypatch.setenv("RAGISTRY_EMBED_URL", models.url)
        remedy = "(`collection` in documents.yaml)"
        for words in (("search", "yeast"), ("ingest", "bread.txt", "--collection", "baking")):
            done = served(*words)
            assert (done.code, remedy in done.err, "reembed" in done.err) == (1, True, False), done.err
        monkeypatch.setenv("RAGISTRY_COLLECTION", f"d-{tmp_path.name}")
        assert served("ingest", "bread.txt", "--collection", "baking").code == 0
        assert served("search", "yeast").code == 0


def test_the_local_store_searches_words_by_default(ragistry: Run) -> None:
    assert ragistry("config", "--json").json["settings"]["default technique"]["value"] == "hybrid"
