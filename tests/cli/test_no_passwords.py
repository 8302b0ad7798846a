"""A name and a password in the address of a server are for that server: nothing that is printed or told has them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragistry import open_workspace
from ragistry.errors import ModelError
from ragistry.evaluation.systems.record import model_of
from ragistry.library.archive_clients import place_of
from ragistry.models.openai import OpenAICompatibleEmbedder
from ragistry.models.tei import TEIReranker
from ragistry.ollama.client import OllamaClient
from ragistry.testing.openai_server import OpenAIServer
from ragistry.tools.archives import ChromaRagConfig, RagArchiveConfig, archive_settings, create_archive_search_tool
from ragistry.tools.search_library import SearchLibraryTool
from tests.cli.conftest import Done

SECRET = "hunter2"
DOWN = f"http://bob:{SECRET}@127.0.0.1:9"
BASIC = "Basic Ym9iOmh1bnRlcjI="
ARCHIVE = {"name": "House", "collection_name": "house", "embedding_model": "m", "description": "tea"}
TECHNIQUES = """
techniques:
  naive: {use: naive}
  bm25: {use: bm25}
  all: {use: collection_routed, base: bm25, router: all}
  llm: {use: collection_routed, base: bm25, router: llm, on_error: all}
"""
MODELS = f"""
generators: {{writer: {{use: ollama, model: llama3.2, url: "{DOWN}", backoff: 0.001}}}}
rerankers: {{tei: {{use: tei, url: "{DOWN}", api_key: "${{RANK_KEY}}", backoff: 0.001}}}}
"""


def write(root: Path, documents: dict[str, Any] | None = None, stores: dict[str, Any] | None = None) -> None:
    """A workspace with a collection; JSON is YAML too."""
    (root / "config").mkdir()
    collections = {"collections": [{"name": "tea", "description": "Tea"}, {"name": "rain", "description": "Rain"}]}
    (root / "config" / "documents.yaml").write_text(json.dumps(collections | (documents or {})), encoding="utf-8")
    (root / "config" / "vector_stores.yaml").write_text(json.dumps(stores or {}), encoding="utf-8")
    (root / "config" / "techniques.yaml").write_text(TECHNIQUES, encoding="utf-8")
    (root / "config" / "models.yaml").write_text(MODELS, encoding="utf-8")


EVERYWHERE = (
    ({"embed_model": "tei", "embed_url": DOWN}, {}),
    ({}, {"archives": [{**ARCHIVE, "chromadb_url": DOWN, "tei_url": DOWN}]}),
    ({}, {"chromadb": {"host": DOWN}}),
)


@pytest.mark.parametrize(("documents", "stores"), EVERYWHERE, ids=["models", "archives", "library"])
def test_no_command_prints_a_password(
    ragistry: Callable[..., Done],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    documents: dict[str, Any],
    stores: dict[str, Any],
) -> None:
    write(tmp_path, documents, stores)
    for variable in ("RAGISTRY_EMBED_API_KEY", "RANK_KEY", "CHROMA_API_KEY"):
        monkeypatch.setenv(variable, SECRET)
    for variable in ("OLLAMA_HOST", "DOCPROC_CHROMADB_URL", "DOCPROC_TEI_EMBEDDINGS_URL"):
        monkeypatch.setenv(variable, DOWN)
    commands = [["config"], ["config", "--json"], ["doctor"], ["doctor", "--json"], ["verify"]]
    commands += [["search", "tea", "-t", name, *more] for name in ("naive", "all", "llm") for more in ([], ["--json"])]
    commands += [["route", "tea", "-t", name, "--json"] for name in ("all", "llm")]
    said = ""
    for words in commands:
        done = ragistry(*words)
        said += done.out + done.err
        assert SECRET not in done.out + done.err, words
    assert "127.0.0.1:9" in said, "the address itself is told"
    assert SECRET not in caplog.text


def test_no_model_is_told_a_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK_KEY", SECRET)
    write(tmp_path, {"embed_model": "tei", "embed_url": DOWN}, {"archives": [{**ARCHIVE, "chromadb_url": DOWN}]})
    with open_workspace(tmp_path) as workspace:
        for technique in ("naive", "all"):
            answer = SearchLibraryTool(workspace.library, technique=technique).answer({"query": "tea"})
            assert SECRET not in answer.text
        assert SECRET not in repr(workspace.search("tea", "all"))
    archive = RagArchiveConfig.model_validate({**ARCHIVE, "chromadb_url": DOWN, "tei_url": DOWN})
    tool = create_archive_search_tool(ChromaRagConfig(archives=[archive]), archive_settings({}))
    assert tool is not None
    assert SECRET not in tool.invoke({"query": "tea"})
    assert SECRET not in repr(archive)


@pytest.mark.parametrize(
    "make",
    [
        lambda: OpenAICompatibleEmbedder("m", url=DOWN, attempts=1).embed(["tea"]),
        lambda: TEIReranker(url=DOWN, attempts=1).rerank("tea", ["tea"]),
        lambda: OllamaClient(DOWN, attempts=1).list_models(),
        lambda: OllamaClient(f"bob:{SECRET}@127.0.0.1:9", attempts=1).list_models(),
    ],
    ids=["embedder", "reranker", "ollama", "ollama without scheme"],
)
def test_no_error_of_a_server_has_the_password(make: Callable[[], object]) -> None:
    with pytest.raises(ModelError, match=r"127\.0\.0\.1:9 cannot be reached") as raised:
        make()
    error: BaseException | None = raised.value
    while error is not None:
        assert SECRET not in str(error)
        error = error.__cause__


def archive_at(url: str) -> object:
    return RagArchiveConfig.model_validate({**ARCHIVE, "chromadb_url": url})


@pytest.mark.parametrize(
    ("make", "url"),
    [
        (lambda url: OpenAICompatibleEmbedder("m", url=url), f"http://bob:{SECRET}/x@host"),
        (lambda url: OpenAICompatibleEmbedder("m", url=url), f"http://bob:{SECRET}@host:x"),
        (OllamaClient, f"http://bob:{SECRET}/x@host"),
        (OllamaClient, f"ftp://bob:{SECRET}@host"),
        (OllamaClient, f"bob:{SECRET}@host:x"),
        (archive_at, f"http://bob:{SECRET}/x@host"),
        (archive_at, f"bob:{SECRET}@host:x"),
        (archive_at, f"ftp://bob:{SECRET}@host"),
    ],
)
def test_no_complaint_about_an_address_has_the_password(make: Callable[[str], object], url: str) -> None:
    with pytest.raises(ValueError, match="host") as raised:
        make(url)
    assert SECRET not in str(raised.value)
    assert SECRET not in str(raised.value.__cause__)


def test_the_server_itself_gets_the_login() -> None:
    with OpenAIServer() as server:
        url = server.url.replace("://", f"://bob:{SECRET}@")
        embedder = OpenAICompatibleEmbedder(url=url)
        embedder.embed(["tea"])
        assert {request.headers["Authorization"] for request in server.requests} == {BASIC}
        assert SECRET not in repr(model_of(embedder))
        embedder.close()


def test_an_archive_sends_the_login_in_a_header() -> None:
    settings = archive_settings({"DOCPROC_CHROMADB_URL": DOWN})
    archive = RagArchiveConfig.model_validate(ARCHIVE)
    assert place_of(archive, settings)[::3] == ("http://127.0.0.1:9", (("Authorization", BASIC),))
    other = archive.model_copy(update={"headers": {"authorization": "Bearer x"}})
    assert place_of(other, settings).headers == (("authorization", "Bearer x"),)
