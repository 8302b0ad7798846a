"""A name and a password in the address of a server are for that server: no output and no model gets them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ragistry import open_workspace
from ragistry.errors import ModelError
from ragistry.evaluation.systems.recorded_answers import model_of
from ragistry.library.remote.clients import place_of
from ragistry.models.openai import OpenAICompatibleEmbedder
from ragistry.models.tei import TEIReranker
from ragistry.ollama.client import OllamaClient
from ragistry.testing.openai_server import OpenAIServer
from ragistry.tools.archives import ChromaRagConfig, RagArchiveConfig, archive_settings, create_archive_search_tool
from ragistry.tools.search_library import SearchLibraryTool
from tests.cli.conftest import Run
from tests.conftest import Corpus
from tests.messages import refused

SECRET = "hunter2"
DOWN = f"http://bob:{SECRET}@127.0.0.1:9"
BASIC = "Basic Ym9iOmh1bnRlcjI="
ARCHIVE = {"name": "House", "collection_name": "house", "embedding_model": "m", "description": "tea"}
COLLECTIONS = {"collections": [{"name": "tea", "description": "Tea"}, {"name": "rain", "description": "Rain"}]}
TECHNIQUES = """
techniques:
  naive: {use: naive}
  bm25: {use: bm25}
  all: {use: collection_routed, base: bm25, router: all}
  llm: {use: collection_routed, base: bm25, router: llm, on_error: all}
"""
MODELS = f"""
generators: {{writer: {{use: ollama, model: llama3.2, url: "{DOWN}"}}}}
rerankers: {{tei: {{use: tei, url: "{DOWN}", api_key: "${{RANK_KEY}}"}}}}
"""
REMOTE_MODELS = {"embed_model": "tei", "embed_url": DOWN}
REMOTE_ARCHIVE = {"archives": [{**ARCHIVE, "chromadb_url": DOWN, "tei_url": DOWN}]}
Configure = Callable[[dict[str, Any], dict[str, Any]], None]


@pytest.fixture
def configure(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> Configure:
    """Write a workspace with two collections; JSON is YAML too."""

    def write(documents: dict[str, Any], stores: dict[str, Any]) -> None:
        files = {"techniques.yaml": TECHNIQUES, "models.yaml": MODELS, "vector_stores.yaml": json.dumps(stores)}
        corpus({**files, "documents.yaml": json.dumps(COLLECTIONS | documents)}, folder="config")

    for variable in ("RAGISTRY_EMBED_API_KEY", "RANK_KEY", "CHROMA_API_KEY"):
        monkeypatch.setenv(variable, SECRET)
    for variable in ("OLLAMA_HOST", "DOCPROC_CHROMADB_URL", "DOCPROC_TEI_EMBEDDINGS_URL"):
        monkeypatch.setenv(variable, DOWN)
    return write


EVERYWHERE = {
    "models": (REMOTE_MODELS, {}),
    "archives": ({}, REMOTE_ARCHIVE),
    "library": ({}, {"chromadb": {"host": DOWN}}),
}


@pytest.mark.parametrize("place", EVERYWHERE)
def test_no_command_prints_a_password(ragistry: Run, configure: Configure, place: str) -> None:
    configure(*EVERYWHERE[place])
    printed = ""
    for line in (
        "config", "config --json", "doctor", "doctor --json", "verify", "search tea -t naive", "search tea -t all",
        "search tea -t all --json", "search tea -t llm --trace", "route tea -t all --json", "route tea -t llm",
    ):  # fmt: skip
        done = ragistry(*line.split())
        printed += done.out + done.err
        assert SECRET not in printed, line
    assert "127.0.0.1:9" in printed, "the address itself is shown"


def test_no_model_gets_a_password(configure: Configure, tmp_path: Any) -> None:
    configure(REMOTE_MODELS, REMOTE_ARCHIVE)
    with open_workspace(tmp_path) as workspace:
        for technique in ("naive", "all"):
            answer = SearchLibraryTool(workspace.library, technique=technique).answer({"query": "tea"})
            assert SECRET not in answer.text
        assert SECRET not in repr(workspace.search("tea", "all"))
    archive = RagArchiveConfig.model_validate({**ARCHIVE, "chromadb_url": DOWN, "tei_url": DOWN})
    tool = create_archive_search_tool(ChromaRagConfig(archives=[archive]), archive_settings({}))
    assert tool is not None
    assert SECRET not in tool.invoke({"query": "tea"}) + repr(archive)


@pytest.mark.parametrize(
    "make",
    [
        lambda: OpenAICompatibleEmbedder("m", url=DOWN).embed(["tea"]),
        lambda: TEIReranker(url=DOWN).rerank("tea", ["tea"]),
        lambda: OllamaClient(DOWN, attempts=1).list_models(),
        lambda: OllamaClient(f"bob:{SECRET}@127.0.0.1:9", attempts=1).list_models(),
    ],
    ids=["embedder", "reranker", "ollama", "ollama without scheme"],
)
def test_no_error_of_a_server_has_the_password(make: Callable[[], object]) -> None:
    with refused(ModelError, "127.0.0.1:9") as raised:
        make()
    error: BaseException | None = raised.value
    while error is not None:
        assert SECRET not in str(error)
        error = error.__cause__


@pytest.mark.parametrize(
    ("make", "url"),
    [
        (lambda url: OpenAICompatibleEmbedder("m", url=url), "http://bob:{}/x@host"),
        (OllamaClient, "ftp://bob:{}@host"),
        (lambda url: RagArchiveConfig.model_validate({**ARCHIVE, "chromadb_url": url}), "bob:{}@host:x"),
    ],
)
def test_no_complaint_about_an_address_has_the_password(make: Callable[[str], object], url: str) -> None:
    with pytest.raises(ValueError, match="host") as raised:
        make(url.format(SECRET))
    assert SECRET not in f"{raised.value} {raised.value.__cause__}"


def test_server_itself_gets_the_login() -> None:
    with OpenAIServer() as server:
        embedder = OpenAICompatibleEmbedder(url=server.url.replace("://", f"://bob:{SECRET}@"))
        embedder.embed(["tea"])
        assert {request.headers["Authorization"] for request in server.requests} == {BASIC}
        assert SECRET not in repr(model_of(embedder))
        embedder.close()
    settings = archive_settings({"DOCPROC_CHROMADB_URL": DOWN})
    archive = RagArchiveConfig.model_validate(ARCHIVE)
    assert place_of(archive, settings)[::3] == ("http://127.0.0.1:9", (("Authorization", BASIC),))
    other = archive.model_copy(update={"headers": {"authorization": "Bearer x"}})
    assert place_of(other, settings).headers == (("authorization", "Bearer x"),)
