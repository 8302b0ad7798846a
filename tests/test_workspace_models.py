"""The models of a workspace are there for its techniques, and no server is asked before one of them is used."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

import ragistry
from ragistry import Workspace
from ragistry.errors import (
    ConfigError,
    EmbeddingMismatchError,
    InvalidConfigError,
    ModelConnectionError,
    ModelError,
    ModelNotFoundError,
)
from ragistry.evaluation import compare, read_library
from ragistry.testing.hashed import HashingEmbedder
from ragistry.testing.ollama_server import OllamaServer
from ragistry.testing.openai_server import OpenAIServer
from tests.messages import refused

JUDGED = '''
from ragistry.types import Document, ranked


class Judged:
    """What the base finds, in the order of the reranker."""

    def __init__(self, config, *, base, reranker):
        self.base, self.reranker = base, reranker

    def retrieve(self, query, **options):
        found = self.base.retrieve(query, **options)
        scores = self.reranker.rerank(query, [document.content for document in found])
        return ranked(Document(d.content, d.metadata, s, d.id) for d, s in zip(found, scores))
'''
TECHNIQUES = """techniques:
  naive: {use: naive}
  picked: {use: collection_routed, base: naive, router: llm}
  judged: {use: "probe_of_models:Judged", base: naive, RERANKER}
"""
KEY = "sk-very-secret"
Open = Callable[..., Workspace]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "config").mkdir()
    (tmp_path / "probe_of_models.py").write_text(JUDGED, encoding="utf-8")
    return tmp_path


@pytest.fixture
def opened(root: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Open a filled workspace with these models; ``reranker``: that of the technique ``judged``."""
    monkeypatch.setattr("ragistry.workspace.choose_embedder", lambda *_, **__: HashingEmbedder())

    def opened(models: str, reranker: str = "", **settings: str) -> Workspace:
        (root / "config" / "models.yaml").write_text(models, encoding="utf-8")
        techniques = TECHNIQUES.replace(", RERANKER", f", reranker: {reranker}" if reranker else "")
        (root / "config" / "techniques.yaml").write_text(techniques, encoding="utf-8")
        workspace = ragistry.open_workspace(root, **settings)
        for name, text in (("tea", "Green tea is steeped."), ("rain", "A cold front brings rain.")):
            if name not in [entry.name for entry in workspace.library.collections.entries()]:
                workspace.library.create_collection(name)
                workspace.library.ingest_text(text, f"{name}.txt", name)
        return workspace

    return opened


def test_without_models_a_technique_that_needs_one_says_where_to_add_it(opened: Open) -> None:
    with opened("generators: {}\nrerankers: {}") as workspace:
        for technique in ("judged", "picked"):
            with refused(ConfigError, technique, "models.yaml"):
                workspace.technique(technique)


def test_the_only_generator_serves_a_technique_that_names_none(opened: Open) -> None:
    with OllamaServer() as server:
        with opened("generators: {writer: {use: ollama, model: llama3.2}}", ollama_host=server.url) as workspace:
            server.answers.append(json.dumps({"collection": "rain"}))
            assert list(workspace.models.generators) == ["writer"]
            assert server.requests == [], "a model that is not used is not asked"
            [found] = workspace.search("green tea", technique="picked").documents
            assert found.metadata["collection"] == "rain", "the model decides"
            assert [body["model"] for body in server.asked("/api/chat")] == ["llama3.2"]
        writer = f"generators: {{writer: {{use: ollama, model: nothing, url: '{server.url}'}}}}"
        with opened(writer) as workspace, refused(ModelNotFoundError, "nothing", "llama3.2"):
            workspace.search("green tea", technique="picked")


def test_an_entry_names_one_of_several_models(opened: Open) -> None:
    with OpenAIServer() as one, OpenAIServer() as two:
        both = f"rerankers: {{one: {{use: tei, url: '{one.url}'}}, two: {{use: tei, url: '{two.url}'}}}}"
        with opened(both) as workspace, refused(ConfigError, "judged", "'one', 'two'"):
            workspace.technique("judged")
        with opened(both, "two") as workspace:
            assert len(workspace.search("green tea", technique="judged").documents) == 2
            assert len(workspace.technique_over(workspace.store, "judged").retrieve("green tea")) == 2
        assert (len(one.asked("/rerank")), len(two.asked("/rerank"))) == (0, 2)
        with opened(both, "tow") as workspace, refused(InvalidConfigError, "'tow'", "'two'"):
            workspace.technique("judged")


def test_a_reranker_that_cannot_be_reached_is_reported_with_its_address(opened: Open) -> None:
    entry = "rerankers: {tei: {use: tei, url: 'http://127.0.0.1:9'}}"
    with opened(entry) as workspace, refused(ModelConnectionError, "http://127.0.0.1:9"):
        workspace.search("green tea", technique="judged")


OWN_EMBEDDER = """
from ragistry.testing.hashed import HashingEmbedder


class Hashes:
    fingerprint = HashingEmbedder(16).fingerprint

    def embed(self, texts, *, role="document"):
        return HashingEmbedder(16).embed(texts, role=role)


class Other(Hashes):
    fingerprint = HashingEmbedder(8).fingerprint

    def embed(self, texts, *, role="document"):
        return HashingEmbedder(8).embed(texts, role=role)


class Sized(Hashes):
    def __init__(self, size):
        self.size = size


def make():
    return Hashes()


class Unnamed:
    def embed(self, texts, *, role="document"):
        return []


def fails():
    raise OSError("no weights")
"""


@pytest.mark.parametrize("name", ["Hashes", "make"])
def test_own_embedder_by_name_serves_ingest_search_and_comparison(root: Path, name: str) -> None:
    (root / "hashes.py").write_text(OWN_EMBEDDER, encoding="utf-8")
    (root / "config" / "documents.yaml").write_text(f"embed_model: 'hashes:{name}'\n", encoding="utf-8")
    with ragistry.open_workspace(root) as workspace:
        workspace.library.create_collection("notes")
        workspace.library.ingest_text("Green tea is steeped.", "tea.txt", "notes")
        result = workspace.search("green tea", technique="naive")
        assert [document.metadata["source_file"] for document in result.documents] == ["tea.txt"]
        assert sum(stage.model_calls for stage in result.trace) == 1
        assert sum(stage.tokens for stage in result.trace) > 0
        assert workspace.store.embedder() == HashingEmbedder(16).fingerprint
        (root / "queries.jsonl").write_text('{"text": "green tea", "sources": ["tea.txt"]}\n', encoding="utf-8")
        dataset = read_library(workspace, root / "queries.jsonl")
        compared = compare(["naive"], dataset, "RR@1", workspace=workspace, chunk_size="library", timing_repeats=0)
        assert (compared.techniques["naive"].calls, compared.failures) == (1, {})
        sent = pickle.loads(pickle.dumps(workspace.embedder))
        assert sent.fingerprint == workspace.embedder.fingerprint
    (root / "config" / "documents.yaml").write_text("embed_model: 'hashes:Other'\n", encoding="utf-8")
    with ragistry.open_workspace(root) as workspace, refused(EmbeddingMismatchError):
        workspace.search("green tea", technique="naive")


@pytest.mark.parametrize(
    ("written", "variable", "named"),
    [
        *[
            (f"embed_model: '{name}'", "", ["documents.yaml:1", "embed_model", name.partition(":")[2]])
            for name in ("hashes:Hash", "hashes:Sized", "hashes:Unnamed", "hashes:fails", "mistral:latest")
        ],
        ("embed_model: tei\nembed_url: http://name:pass/word@server", "", ["documents.yaml:2"]),
        ("embed_model: nothing", "", ["documents.yaml:1"]),
        ("embed_model: ollama:some", "http://[", ["RAGISTRY_OLLAMA_HOST"]),
    ],
)
def test_what_is_wrong_with_an_embedder_is_reported_at_its_own_setting(
    root: Path, monkeypatch: pytest.MonkeyPatch, written: str, variable: str, named: list[str]
) -> None:
    (root / "hashes.py").write_text(OWN_EMBEDDER, encoding="utf-8")
    (root / "config" / "documents.yaml").write_text(f"{written}\ncollections: []\n", encoding="utf-8")
    if variable:
        monkeypatch.setenv("RAGISTRY_OLLAMA_HOST", variable)
    with refused(InvalidConfigError, *named), ragistry.open_workspace(root) as workspace:
        workspace.embedder.embed(["text"])


def test_a_server_that_wants_a_key_gets_its_own(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGISTRY_EMBED_API_KEY", f"{KEY}\n")
    with OpenAIServer(api_key=KEY) as server, OpenAIServer(api_key=f"{KEY}-too") as ranking:
        entry = f"rerankers: {{tei: {{use: tei, url: '{ranking.url}', api_key: '${{RANK_KEY}}'}}}}"
        (root / "config" / "models.yaml").write_text(entry, encoding="utf-8")
        settings = {"embed_model": "tei", "embed_url": server.url}
        monkeypatch.setenv("RANK_KEY", f"{KEY}-too\n")
        with ragistry.open_workspace(root, **settings) as workspace:
            assert workspace.embedder.fingerprint.model == server.model
            assert len(workspace.models.rerankers["tei"].rerank("tea", ["green tea", "rain"])) == 2
            printed = f"{workspace.settings!r} {workspace.settings.model_dump(mode='json')}"
        monkeypatch.setenv("RANK_KEY", f"{KEY}!")
        with ragistry.open_workspace(root, **settings) as workspace, refused(ModelError) as caught:
            workspace.models.rerankers["tei"].rerank("tea", ["green tea"])
        assert KEY not in printed + str(caught.value)
        monkeypatch.delenv("RAGISTRY_EMBED_API_KEY")
        for model in ("tei", f"openai:{server.model}"):
            settings["embed_model"] = model
            with ragistry.open_workspace(root, **settings) as workspace, refused(ModelError):
                workspace.embedder.embed(["tea"])


@pytest.mark.parametrize("name", ["embed_api_key", "chroma_api_key"])
def test_a_key_that_cannot_be_sent_is_refused_without_being_shown(tmp_path: Path, name: str) -> None:
    with refused(InvalidConfigError, f"argument: {name}") as caught:
        ragistry.open_workspace(tmp_path, **{name: f"{KEY}\nx"})
    assert KEY not in str(caught.value)
