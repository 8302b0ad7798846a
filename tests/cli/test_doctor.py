"""`doctor` examines each part, tries each configured model, and fails where one does not answer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragistry.testing.ollama_server import OllamaServer
from ragistry.testing.openai_server import OpenAIServer
from tests.cli.conftest import Run
from tests.conftest import Corpus
from tests.messages import check_message


@pytest.fixture(autouse=True)
def _no_ollama(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")


@pytest.mark.usefixtures("configured")
def test_doctor_lists_what_works(ragistry: Run) -> None:
    done = ragistry("doctor", "--json")
    assert {name: state for name, (state, _) in done.findings.items()} == {
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


def test_doctor_without_workspace_makes_none(ragistry: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = ragistry("doctor", "--json")
    assert (done.code, done.findings["store"][0], done.findings["model"][0]) == (0, "off", "ok")
    check_message(done.findings["store"][1], "'.'")
    monkeypatch.setenv("RAGISTRY_EMBED_MODEL", "nomic-embed-text")
    done = ragistry("doctor", "--json")
    failed = {name for name, (state, _) in done.findings.items() if state == "failed"}
    assert (done.code, failed) == (1, {"model", "ollama"}), "what the store needs of the model is not repeated"
    monkeypatch.setenv("RAGISTRY_N_RESULTS", "many")
    assert "n_results" in ragistry("doctor").out
    assert list(tmp_path.iterdir()) == []


def test_misspelt_variable_is_reported_by_config_and_doctor(ragistry: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGISTRY_EMBED_MODL", "tei")
    config = ragistry("config", "--json")
    assert config.json["settings"]["embed_model"] == {"value": "minilm", "from": "default"}
    check_message(config.err, "RAGISTRY_EMBED_MODL", "'EMBED_MODEL'")
    doctor = ragistry("doctor", "--json")
    state, detail = doctor.findings["environment"]
    assert (doctor.code, state, f"warning: {detail}\n") == (0, "warning", config.err)


def test_doctor_names_sources_whose_files_were_moved_away(filled: Run, tmp_path: Path) -> None:
    assert "files" not in filled("doctor", "--json").findings
    (tmp_path / "tea.txt").rename(tmp_path / "moved.txt")
    state, detail = filled("doctor", "--json").findings["files"]
    assert state == "warning"
    check_message(detail, "1 source", "'notes: tea.txt'")


@pytest.fixture
def servers(corpus: Corpus) -> Iterator[tuple[OllamaServer, OpenAIServer]]:
    with OllamaServer() as ollama, OpenAIServer() as tei:
        models = (
            f"generators:\n  writer: {{use: ollama, model: llama3.2, url: '{ollama.url}'}}\n"
            f"rerankers:\n  judge: {{use: tei, url: '{tei.url}'}}\n"
        )
        corpus({"models.yaml": models}, folder="config")
        yield ollama, tei


@pytest.mark.parametrize("silent", [None, 0, 1])
def test_doctor_tries_models(ragistry: Run, servers: tuple[OllamaServer, OpenAIServer], silent: int | None) -> None:
    if silent is not None:
        servers[silent].fail_next(500, times=9, path=("/api/chat", "/rerank")[silent])
    done = ragistry("doctor")
    states = {line.split(":")[0].split(maxsplit=1)[1]: line.split()[0] for line in done.out.splitlines()}
    models = {"model": "ok", "generator writer": "ok", "reranker judge": "ok"}
    if silent is not None:
        models[("generator writer", "reranker judge")[silent]] = "failed"
    assert {name: states[name] for name in models} == models
    assert done.out.count(" ms)") == list(models.values()).count("ok")
    assert done.code == int(silent is not None)


def test_empty_answer_of_a_model_fails(ragistry: Run, servers: tuple[OllamaServer, OpenAIServer]) -> None:
    servers[0].answers.append(" ")
    done = ragistry("doctor")
    assert (done.code, "failed  generator writer: 'llama3.2' wrote nothing" in done.out) == (1, True), done.out


def test_fault_in_a_class_of_the_user_is_one_line(ragistry: Run, corpus: Corpus) -> None:
    corpus({"models.yaml": "generators: {own: {use: 'mistaken_model:Mistaken'}}"}, folder="config")
    code = "class Mistaken:\n    def generate(self, prompt, *, schema=None):\n        return prompt['x']\n"
    corpus({"mistaken_model.py": code}, folder=".")
    done = ragistry("doctor")
    assert (done.code, "failed  generator own: raised TypeError: string indices" in done.out) == (1, True), done.out


WITHOUT_CHROMADB = """
import sys
from importlib import metadata

sys.modules["chromadb"] = None
version = metadata.version

def without_chromadb(name):
    if name == "chromadb":
        raise metadata.PackageNotFoundError(name)
    return version(name)

metadata.version = without_chromadb
sys.argv[0] = "ragistry"
from ragistry.cli import main
sys.exit(main())
"""
ARCHIVE = "archives: [{name: letters, description: d, collection_name: letters, embedding_model: m}]"


@pytest.mark.parametrize(("stores", "failed"), [("", {}), (ARCHIVE, {"archives": "[chroma]'"})])
def test_doctor_works_without_the_extra_chroma(tmp_path: Path, stores: str, failed: dict[str, str]) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "vector_stores.yaml").write_text(stores, encoding="utf-8")
    command = [sys.executable, "-c", WITHOUT_CHROMADB, "doctor", "--json", "--workspace", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    findings = {each["name"]: (each["state"], each["detail"]) for each in json.loads(done.stdout)["findings"]}
    assert {name for name, (state, _) in findings.items() if state == "failed"} == failed.keys()
    assert all(remedy in findings[name][1] for name, remedy in failed.items())
    assert findings["versions"][0] == "ok"
    assert "chromadb" not in findings["versions"][1]
    assert done.returncode == bool(failed)
