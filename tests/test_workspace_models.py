"""The models that a workspace's settings name are there for its techniques, and nothing is asked of them before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ragistry
from ragistry.errors import ConfigError, InvalidConfigError, ModelConnectionError, ModelError, ModelNotFoundError
from ragistry.models.tei_reranker import TEIReranker
from ragistry.ollama.generator import OllamaGenerator
from ragistry.testing.ollama_server import OllamaServer
from ragistry.testing.openai_server import OpenAIServer

PROBE = '''
from ragistry.types import Document


class Judged:
    """What the base finds, in the order of the reranker."""

    def __init__(self, config, *, base, reranker):
        self.base, self.reranker = base, reranker

    def retrieve(self, query, **options):
        found = self.base.retrieve(query, **options)
        scores = self.reranker.rerank(query, [document.content for document in found])
        return [Document(d.content, d.metadata, s, d.id) for d, s in zip(found, scores)]
'''
TECHNIQUES = """techniques:
  naive: {use: naive}
  picked: {use: collection_routed, base: naive, router: llm}
  judged: {use: "probe_of_models:Judged", base: naive}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "techniques.yaml").write_text(TECHNIQUES, encoding="utf-8")
    (tmp_path / "probe_of_models.py").write_text(PROBE, encoding="utf-8")
    with ragistry.open_workspace(tmp_path) as workspace:
        for name, text in (("tea", "Green tea is steeped."), ("rain", "A cold front brings rain.")):
            workspace.library.create_collection(name)
            workspace.library.ingest_text(text, f"{name}.txt", name)
    return tmp_path


def test_without_the_settings_there_is_no_model_and_who_needs_one_says_so(root: Path) -> None:
    with ragistry.open_workspace(root) as workspace:
        assert workspace.generator is None
        assert workspace.reranker is None
        with pytest.raises(ConfigError, match="'judged' needs a reranker, and none is configured here"):
            workspace.technique("judged")
        with pytest.raises(ConfigError, match="router 'llm' needs `generator`"):
            workspace.technique("picked")


def test_generate_model_is_asked_by_the_techniques_that_take_a_generator(root: Path) -> None:
    with OllamaServer() as server:
        server.answers.append(json.dumps({"collection": "rain"}))
        settings = {"generate_model": "llama3.2", "ollama_host": server.url}
        with ragistry.open_workspace(root, **settings) as workspace:
            assert isinstance(workspace.generator, OllamaGenerator)
            assert workspace.origins["generate_model"] == "argument"
            assert server.requests == [], "a model that nobody uses is not asked"
            [found] = workspace.search("green tea", technique="picked").documents
        assert found.metadata["collection"] == "rain", "the model decides"
        assert {body["model"] for body in server.asked("/api/generate") + server.asked("/api/chat")} == {"llama3.2"}


def test_a_model_that_the_server_does_not_have_is_told_with_those_that_it_has(root: Path) -> None:
    with (
        OllamaServer() as server,
        ragistry.open_workspace(root, generate_model="nothing", ollama_host=server.url) as workspace,
        pytest.raises(ModelNotFoundError, match="'nothing'.*llama3.2"),
    ):
        workspace.search("green tea", technique="picked")


def test_rerank_url_is_asked_by_the_techniques_that_take_a_reranker(root: Path) -> None:
    documents = root / "config" / "documents.yaml"
    with OpenAIServer() as server:
        documents.write_text(f"rerank_url: {server.url}\n{documents.read_text(encoding='utf-8')}", encoding="utf-8")
        with ragistry.open_workspace(root) as workspace:
            assert isinstance(workspace.reranker, TEIReranker)
            assert workspace.origins["rerank_url"].endswith("documents.yaml:1")
            found = workspace.search("green tea", technique="judged").documents
        [asked] = server.asked("/rerank")
    assert sorted(asked["texts"]) == sorted(document.content for document in found)
    assert len(found) == 2


@pytest.mark.parametrize("url", ["tei:8080", "http://127.0.0.1:9"])
def test_a_reranker_that_cannot_be_reached_is_told_with_its_address(root: Path, url: str) -> None:
    with (
        ragistry.open_workspace(root, rerank_url=url) as workspace,
        pytest.raises(ModelConnectionError, match=f"{url} cannot be reached .*start it, or correct its address"),
    ):
        workspace.search("green tea", technique="judged")


def test_a_technique_over_another_store_has_the_models_too(root: Path) -> None:
    with OpenAIServer() as server, ragistry.open_workspace(root, rerank_url=server.url) as workspace:
        judged = workspace.technique_over(workspace.store, "judged")
        assert len(judged.retrieve("green tea")) == 2
        assert len(server.asked("/rerank")) == 1


@pytest.mark.parametrize(
    ("written", "variable", "told"),
    [
        ("embed_model: tei\nembed_url: http://name:pass/word@server", "", "documents.yaml:2"),
        ("embed_model: nothing", "", "documents.yaml:1"),
        ("embed_model: ollama:some", "http://[", "RAGISTRY_OLLAMA_HOST"),
    ],
)
def test_what_is_wrong_with_an_embedder_is_told_at_its_own_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, variable: str, told: str
) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "documents.yaml").write_text(f"{written}\ncollections: []\n", encoding="utf-8")
    if variable:
        monkeypatch.setenv("RAGISTRY_OLLAMA_HOST", variable)
    with pytest.raises(InvalidConfigError, match=told), ragistry.open_workspace(tmp_path) as workspace:
        workspace.embedder.embed(["text"])


KEY = "sk-very-secret"


def test_a_server_that_wants_a_key_gets_the_one_of_its_own(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = root / "config" / "documents.yaml"
    with OpenAIServer(api_key=KEY) as server, OpenAIServer(api_key=f"{KEY}-too") as ranking:
        collections = documents.read_text(encoding="utf-8")
        settings = f"embed_model: tei\nembed_url: {server.url}\nrerank_url: {ranking.url}\n"
        documents.write_text(settings + collections, encoding="utf-8")
        monkeypatch.setenv("RAGISTRY_EMBED_API_KEY", f"{KEY}\n")
        with ragistry.open_workspace(root, rerank_api_key=f"{KEY}-too", data_dir="other") as workspace:
            assert workspace.embedder.fingerprint.model == server.model
            assert len(workspace.reranker.rerank("tea", ["green tea", "rain"])) == 2
            assert workspace.origins["embed_api_key"] == "environment RAGISTRY_EMBED_API_KEY"
            said = f"{workspace.settings!r} {workspace.settings.model_dump(mode='json')}"
        with (
            ragistry.open_workspace(root, rerank_api_key=f"{KEY}!", data_dir="other") as workspace,
            pytest.raises(ModelError, match="answered 401.*; give it an API key that it takes") as refused,
        ):
            workspace.reranker.rerank("tea", ["green tea"])
        assert KEY not in said + str(refused.value)


def test_a_server_that_wants_a_key_is_not_said_to_be_silent(root: Path) -> None:
    with OpenAIServer(api_key=KEY) as server:
        for model in ("tei", f"openai:{server.model}"):
            with (
                ragistry.open_workspace(root, embed_model=model, embed_url=server.url, data_dir="other") as workspace,
                pytest.raises(ModelError, match="answered 401: 'Unauthorized'; give it an API key that it takes"),
            ):
                workspace.embedder.embed(["tea"])


@pytest.mark.parametrize("name", ["embed_api_key", "rerank_api_key", "chroma_api_key"])
def test_a_key_that_cannot_be_sent_is_refused_without_being_shown(root: Path, name: str) -> None:
    with pytest.raises(InvalidConfigError, match=f"argument: {name}: must be ASCII") as refused:
        ragistry.open_workspace(root, **{name: f"{KEY}\nx"})
    assert KEY not in str(refused.value)
