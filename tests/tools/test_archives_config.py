"""The configuration of archives: what a platform sends, what the environment adds, and what is refused."""

from __future__ import annotations

import pytest
from langchain_core.runnables.config import merge_configs

from ragistry import open_workspace
from ragistry.config.archives import NONE, archive_settings
from ragistry.errors import ConfigError, InvalidConfigError
from ragistry.tools.archives import ChromaRagConfig, RagArchiveConfig, extract_rag_config
from tests.messages import check_message, refused
from tests.stores.scripts import run

ARCHIVE = {
    "name": "Maintenance",
    "collection_name": "repo_maintenance",
    "chromadb_url": "http://chromadb:8000",
    "embedding_model": "BAAI/bge-small-en-v1.5",
}


def rag_config(found):
    return {"configurable": {"rag_config": found}}


def configurable(*archives, **others):
    return rag_config({"archives": list(archives), **others})


def changed(**fields):
    return configurable({**ARCHIVE, **fields})


def test_extract_rag_config_present():
    config = extract_rag_config(configurable(ARCHIVE, {**ARCHIVE, "name": "Plans"}))
    assert config == ChromaRagConfig(
        archives=[RagArchiveConfig(**ARCHIVE), RagArchiveConfig(**{**ARCHIVE, "name": "Plans"})]
    )
    assert extract_rag_config(rag_config(config)) is config
    sent = {"archives": [{**ARCHIVE, "description": None, "headers": None, "layer": None}], "language": None}
    assert extract_rag_config(rag_config(sent)) == extract_rag_config(configurable(ARCHIVE)), "null is not set"


@pytest.mark.parametrize("config", [None, {}, {"configurable": {}}, {"configurable": None}, {"tags": ["x"]}])
def test_extract_rag_config_absent(config):
    assert extract_rag_config(config) is None


@pytest.mark.parametrize("config", [configurable(), rag_config({}), rag_config({"archives": None})])
def test_extract_rag_config_empty_archives(config):
    assert extract_rag_config(config) == extract_rag_config(config, configurable(ARCHIVE)) == ChromaRagConfig()


def test_extract_rag_config_thread_level_override():
    assistant = configurable(ARCHIVE, {**ARCHIVE, "name": "Second"})
    thread = changed(name="Of the thread")
    config = extract_rag_config(thread, assistant)
    assert [archive.name for archive in config.archives] == ["Of the thread"]
    assert extract_rag_config(merge_configs(assistant, thread)) == config
    for silent in (None, {}, {"configurable": {"rag_config": None, "thread_id": "t"}}):
        assert extract_rag_config(silent, assistant) == extract_rag_config(assistant)


def test_address_is_normalized():
    archive = RagArchiveConfig(**{**ARCHIVE, "chromadb_url": "", "tei_url": "HTTPS://Chroma/"})
    assert (archive.chromadb_url, archive.tei_url) == (None, "https://Chroma")


def test_unknown_key_beside_the_archives_is_ignored_and_logged(caplog):
    assert extract_rag_config(configurable(ARCHIVE, enabled=True)) == extract_rag_config(configurable(ARCHIVE))
    check_message(caplog.messages[0], "enabled")


HUSH = {"authorization": "Bearer hush"}


@pytest.mark.parametrize(
    "config",
    [
        changed(name=" "), changed(name=f" {NONE} "), changed(collection_name="../secret"),
        changed(collection_name="repo?limit=1"), changed(collection_name="repo\n"), changed(embedding_model=None),
        changed(chromadb_url="chromadb:8000"), changed(chromadb_url="file:///etc/passwd"),
        changed(tenant="acme/databases/other"), changed(tenant=".."), changed(database="a?b"), changed(tenat="acme"),
        configurable(ARCHIVE, {**ARCHIVE, "collection_name": "other"}), rag_config({"archivs": [ARCHIVE]}),
        rag_config([]), rag_config(7), rag_config({"archives": "all"}), rag_config({"archives": [7]}),
        rag_config({"language": "fr"}), 5, [], {"configurable": 5}, {"configurable": ["hush"]},
        rag_config([{**ARCHIVE, "headers": HUSH}]), configurable(*[{**ARCHIVE, "headers": HUSH}] * 300),
        changed(headers={"authorization": ["Bearer hush"]}), changed(headers="Bearer hush"),
        rag_config({"archives": {"headers": "Bearer hush"}}),
    ],
)  # fmt: skip
def test_invalid_configuration_is_refused_without_its_secrets(config):
    for given in ((config,), (None, config)):
        with refused(ConfigError) as raised:
            extract_rag_config(*given)
        assert "hush" not in str(raised.value)


def test_headers_are_not_shown():
    assert "hush" not in repr(ChromaRagConfig(archives=[RagArchiveConfig(**ARCHIVE, headers=HUSH)]))


def test_name_that_a_router_uses_for_no_choice_is_refused_in_a_workspace(corpus):
    entry = f"archives:\n- {{name: '{NONE}', collection_name: docs, embedding_model: m}}\n"
    corpus({"config/vector_stores.yaml": entry}, folder=".")
    with refused(InvalidConfigError, NONE):
        open_workspace(corpus({}, folder="."))
    assert RagArchiveConfig(**{**ARCHIVE, "name": "none of these"}).name == "none of these"


# The environment

DEFAULTS = {
    "chromadb_url": "http://chromadb:8000", "tei_url": "http://tei-embeddings:8080", "top_k": 5, "layer": "chunk",
    "query_timeout": 5, "embed_timeout": 10, "language": "en", "tenant": "default_tenant",
    "database": "default_database",
}  # fmt: skip


def test_every_variable_is_read(monkeypatch):
    assert archive_settings().model_dump() == DEFAULTS
    said = {
        "DOCPROC_CHROMADB_URL": "http://chroma.example:81/", "DOCPROC_TEI_EMBEDDINGS_URL": "https://tei.example",
        "RAG_DEFAULT_TOP_K": "7", "RAG_DEFAULT_LAYER": "section", "RAG_QUERY_TIMEOUT_SECONDS": "2.5",
        "RAG_EMBED_TIMEOUT_SECONDS": "3", "RAG_LANGUAGE": "de", "CHROMA_TENANT": "acme", "CHROMA_DATABASE": "books",
    }  # fmt: skip
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    assert archive_settings().model_dump() == {
        "chromadb_url": "http://chroma.example:81", "tei_url": "https://tei.example", "top_k": 7, "layer": "section",
        "query_timeout": 2.5, "embed_timeout": 3.0, "language": "de", "tenant": "acme", "database": "books",
    }  # fmt: skip
    assert archive_settings({"RAG_DEFAULT_LAYER": " ", "DOCPROC_CHROMADB_URL": ""}).model_dump() == DEFAULTS
    clamped = [archive_settings({"RAG_DEFAULT_TOP_K": given}).top_k for given in ("0", "-3", "20", "500")]
    assert clamped == [1, 1, 20, 20]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RAG_DEFAULT_TOP_K", "many"), ("RAG_QUERY_TIMEOUT_SECONDS", "0"), ("RAG_QUERY_TIMEOUT_SECONDS", "1e10"),
        ("RAG_EMBED_TIMEOUT_SECONDS", "86401"), ("RAG_EMBED_TIMEOUT_SECONDS", "nan"), ("CHROMA_TENANT", "../x"),
        ("CHROMA_DATABASE", "a?b"), ("DOCPROC_CHROMADB_URL", "chromadb"),
        ("DOCPROC_CHROMADB_URL", "FTP://someone:hush@x?key=hush"), ("RAG_LANGUAGE", "fr"),
    ],
)  # fmt: skip
def test_invalid_variable_is_named(name, value):
    with refused(InvalidConfigError, name) as raised:
        archive_settings({name: value})
    assert "hush" not in str(raised.value)


def test_configuration_loads_no_client_and_no_model():
    heavy = {"chromadb", "onnxruntime", "tokenizers", "tantivy", "langchain_core", "pypdfium2", "pocketflow"}
    assert heavy.isdisjoint(run("import sys, ragistry.tools.archives; print(*sys.modules)").split())
