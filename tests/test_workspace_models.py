"""The models of a workspace are there for its techniques, and no server is asked before one of them is used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ragistry
from ragistry.errors import ConfigError, InvalidConfigError, ModelConnectionError, ModelError, ModelNotFoundError
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


def models(root: Path, text: str) -> None:
    (root / "config" / "models.yaml").write_text(text, encoding="utf-8")


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


def test_without_models_a_technique_that_needs_one_says_where_to_add_it(root: Path) -> None:
    models(root, "generators: {}\nrerankers: {}")
    with ragistry.open_workspace(root) as workspace:
        with pytest.raises(ConfigError, match="'judged' needs a reranker, and none is configured.*models.yaml"):
            workspace.technique("judged")
        with pytest.raises(ConfigError, match="router 'llm' needs `generator`"):
            workspace.technique("picked")


def test_the_only_generator_serves_a_technique_that_names_none(root: Path) -> None:
    models(root, "generators: {writer: {use: ollama, model: llama3.2}}")
    with OllamaServer() as server, ragistry.open_workspace(root, ollama_host=server.url) as workspace:
        server.answers.append(json.dumps({"collection": "rain"}))
        assert list(workspace.models.generators) == ["writer"]
        assert server.requests == [], "a model that is not used is not asked"
        [found] = workspace.search("green tea", technique="picked").documents
        assert found.metadata["collection"] == "rain", "the model decides"
        assert [body["model"] for body in server.asked("/api/chat")] == ["llama3.2"]


def test_an_entry_names_one_of_several_models(root: Path) -> None:
    techniques = root / "config" / "techniques.yaml"
    with OpenAIServer() as one, OpenAIServer() as two:
        models(root, f"rerankers: {{one: {{use: tei, url: '{one.url}'}}, two: {{use: tei, url: '{two.url}'}}}}")
        with (
            ragistry.open_workspace(root) as workspace,
            pytest.raises(ConfigError, match="'judged' needs a reranker; .*`reranker: NAME`.*'one', 'two'"),
        ):
            workspace.technique("judged")
        techniques.write_text(
            TECHNIQUES.replace('Judged", base: naive', 'Judged", base: naive, reranker: two'), encoding="utf-8"
        )
        with ragistry.open_workspace(root) as workspace:
            assert len(workspace.search("green tea", technique="judged").documents) == 2
            assert len(workspace.technique_over(workspace.store, "judged").retrieve("green tea")) == 2
        assert (len(one.asked("/rerank")), len(two.asked("/rerank"))) == (0, 2)
        techniques.write_text(
            TECHNIQUES.replace('Judged", base: naive', 'Judged", base: naive, reranker: tow'), encoding="utf-8"
        )
        with (
            ragistry.open_workspace(root) as workspace,
            pytest.raises(InvalidConfigError, match=r"techniques.yaml:4: .*'tow'; did you mean 'two'\?"),
        ):
            workspace.technique("judged")


def test_a_server_without_the_model_is_reported_with_those_that_it_has(root: Path) -> None:
    with OllamaServer() as server:
        models(root, f"generators: {{writer: {{use: ollama, model: nothing, url: '{server.url}'}}}}")
        with (
            ragistry.open_workspace(root) as workspace,
            pytest.raises(ModelNotFoundError, match="'nothing'.*llama3.2"),
        ):
            workspace.search("green tea", technique="picked")


def test_a_reranker_that_cannot_be_reached_is_reported_with_its_address(root: Path) -> None:
    models(root, "rerankers: {tei: {use: tei, url: 'http://127.0.0.1:9'}}")
    with (
        ragistry.open_workspace(root) as workspace,
        pytest.raises(ModelConnectionError, match=r"http://127.0.0.1:9 cannot be reached .*correct its address"),
    ):
        workspace.search("green tea", technique="judged")


def test_mistakes_in_all_files_are_reported_together(root: Path) -> None:
    models(root, "generators:\n  a: {use: olama}\n")
    (root / "config" / "techniques.yaml").write_text("techniques:\n  naive: {use: naiv, generator: a}\n")
    with pytest.raises(InvalidConfigError, match=r"(?s)2 problems:.*models.yaml:2: .*techniques.yaml:2: ") as raised:
        ragistry.open_workspace(root)
    assert "no generator" not in str(raised.value), "what follows from another mistake is not one"


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


def test_a_server_that_wants_a_key_gets_its_own(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGISTRY_EMBED_API_KEY", f"{KEY}\n")
    with OpenAIServer(api_key=KEY) as server, OpenAIServer(api_key=f"{KEY}-too") as ranking:
        models(root, f"rerankers: {{tei: {{use: tei, url: '{ranking.url}', api_key: '${{RANK_KEY}}'}}}}")
        settings = {"embed_model": "tei", "embed_url": server.url, "data_dir": "other"}
        monkeypatch.setenv("RANK_KEY", f"{KEY}-too\n")
        with ragistry.open_workspace(root, **settings) as workspace:
            assert workspace.embedder.fingerprint.model == server.model
            assert len(workspace.models.rerankers["tei"].rerank("tea", ["green tea", "rain"])) == 2
            said = f"{workspace.settings!r} {workspace.settings.model_dump(mode='json')}"
        monkeypatch.setenv("RANK_KEY", f"{KEY}!")
        with (
            ragistry.open_workspace(root, **settings) as workspace,
            pytest.raises(ModelError, match="answered 401.*; set a valid API key") as refused,
        ):
            workspace.models.rerankers["tei"].rerank("tea", ["green tea"])
        assert KEY not in said + str(refused.value)


def test_a_server_that_wants_a_key_is_not_said_to_be_silent(root: Path) -> None:
    with OpenAIServer(api_key=KEY) as server:
        for model in ("tei", f"openai:{server.model}"):
            with (
                ragistry.open_workspace(root, embed_model=model, embed_url=server.url, data_dir="other") as workspace,
                pytest.raises(ModelError, match="answered 401: 'Unauthorized'; set a valid API key"),
            ):
                workspace.embedder.embed(["tea"])


@pytest.mark.parametrize("name", ["embed_api_key", "chroma_api_key"])
def test_a_key_that_cannot_be_sent_is_refused_without_being_shown(root: Path, name: str) -> None:
    with pytest.raises(InvalidConfigError, match=f"argument: {name}: must be ASCII") as refused:
        ragistry.open_workspace(root, **{name: f"{KEY}\nx"})
    assert KEY not in str(refused.value)
