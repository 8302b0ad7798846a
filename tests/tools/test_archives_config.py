"""What a platform says of archives, and what the environment says where it says nothing."""

from __future__ import annotations

import pytest
from langchain_core.runnables.config import merge_configs

from ragistry.config.archive_settings import archive_settings
from ragistry.errors import ConfigError, InvalidConfigError
from ragistry.tools.archives import ChromaRagConfig, RagArchiveConfig, extract_rag_config
from tests.test_imports import loaded_after

ARCHIVE = {
    "name": "Maintenance",
    "collection_name": "repo_maintenance",
    "chromadb_url": "http://chromadb:8000",
    "embedding_model": "BAAI/bge-small-en-v1.5",
}


def configurable(*archives, **others):
    return {"configurable": {"rag_config": {"archives": list(archives), **others}}}


def test_extract_rag_config_present():
    config = extract_rag_config(configurable(ARCHIVE, {**ARCHIVE, "name": "Plans"}))
    assert isinstance(config, ChromaRagConfig)
    assert [archive.name for archive in config.archives] == ["Maintenance", "Plans"]
    assert config.archives[0] == RagArchiveConfig(**ARCHIVE)


@pytest.mark.parametrize("config", [None, {}, {"configurable": {}}, {"configurable": None}, {"tags": ["x"]}])
def test_extract_rag_config_absent(config):
    assert extract_rag_config(config) is None


@pytest.mark.parametrize("config", [configurable(), {"configurable": {"rag_config": {}}}])
def test_extract_rag_config_empty_archives(config):
    assert extract_rag_config(config) == ChromaRagConfig(archives=[])


def test_extract_rag_config_thread_level_override():
    assistant = configurable(ARCHIVE, {**ARCHIVE, "name": "Second"})
    thread = configurable({**ARCHIVE, "name": "Of the thread"})
    config = extract_rag_config(thread, assistant)
    assert [archive.name for archive in config.archives] == ["Of the thread"]
    assert extract_rag_config(merge_configs(assistant, thread)) == config


def test_a_thread_that_says_nothing_leaves_the_assistants_archives():
    assistant = configurable(ARCHIVE)
    for thread in (None, {}, {"configurable": {"rag_config": None, "thread_id": "t"}}):
        assert extract_rag_config(thread, assistant) == extract_rag_config(assistant)


def test_a_thread_can_take_all_archives_away():
    assert extract_rag_config(configurable(), configurable(ARCHIVE)) == ChromaRagConfig(archives=[])


def test_a_configuration_that_is_one_already_is_taken_as_it_is():
    config = ChromaRagConfig(archives=[RagArchiveConfig(**ARCHIVE)], language="de")
    assert extract_rag_config({"configurable": {"rag_config": config}}) is config


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": " "}, "archives.0.name"),
        ({"collection_name": "../secret"}, "collection_name"),
        ({"collection_name": "a/b/c"}, "collection_name"),
        ({"collection_name": "repo?limit=1"}, "collection_name"),
        ({"collection_name": "repo\n"}, "collection_name"),
        ({"collection_name": None}, "collection_name"),
        ({"embedding_model": None}, "embedding_model"),
        ({"chromadb_url": "chromadb:8000"}, "has no scheme; write http://HOST:PORT"),
        ({"chromadb_url": "file:///etc/passwd"}, "has the scheme 'file'; write http://HOST:PORT"),
        ({"tenant": "acme/databases/other"}, "cannot be the name of a tenant"),
        ({"tenant": ".."}, "cannot be the name of a tenant"),
        ({"database": "a?b"}, "cannot be the name of a tenant"),
        ({"tenat": "acme"}, "tenat"),
    ],
)
def test_what_cannot_be_an_archive_is_refused_and_named(change, said):
    with pytest.raises(InvalidConfigError, match="rag_config") as raised:
        extract_rag_config(configurable({**ARCHIVE, **change}))
    assert said in str(raised.value)


@pytest.mark.parametrize("found", [[], "archives", 7, {"archives": "all"}, {"archives": [7]}, {"language": "fr"}])
def test_what_is_no_configuration_is_refused(found):
    with pytest.raises(ConfigError, match="rag_config"):
        extract_rag_config({"configurable": {"rag_config": found}})


@pytest.mark.parametrize("config", [5, "rag_config", [], {"configurable": 5}, {"configurable": ["hush"]}])
def test_what_cannot_hold_a_configuration_is_refused(config):
    for given in ((config,), (None, config)):
        with pytest.raises(InvalidConfigError, match=r"must be a mapping, got .* write \{'configurable': ") as raised:
            extract_rag_config(*given)
        assert "hush" not in str(raised.value)


def test_an_empty_address_is_one_that_is_not_set():
    archive = RagArchiveConfig(**{**ARCHIVE, "chromadb_url": "", "tei_url": ""})
    assert (archive.chromadb_url, archive.tei_url) == (None, None)


def test_what_is_null_is_what_is_not_there():
    sent = {"archives": [{**ARCHIVE, "description": None, "headers": None, "layer": None}], "language": None}
    assert extract_rag_config({"configurable": {"rag_config": sent}}) == extract_rag_config(configurable(ARCHIVE))
    assert extract_rag_config({"configurable": {"rag_config": {"archives": None}}}) == ChromaRagConfig()


def test_the_scheme_may_be_written_in_any_letters():
    assert RagArchiveConfig(**{**ARCHIVE, "chromadb_url": "HTTPS://Chroma/"}).chromadb_url == "https://Chroma"


def test_what_a_platform_says_besides_is_left_out_and_logged(caplog):
    config = extract_rag_config(configurable(ARCHIVE, enabled=True))
    assert [archive.name for archive in config.archives] == ["Maintenance"]
    assert "rag_config: left out what is not known, ['enabled']" in caplog.text
    with pytest.raises(InvalidConfigError, match="did you mean 'archives'"):
        extract_rag_config({"configurable": {"rag_config": {"archivs": [ARCHIVE]}}})


def test_two_archives_of_one_name_are_refused():
    with pytest.raises(InvalidConfigError, match="archive 'Maintenance' stands here twice; names must differ"):
        extract_rag_config(configurable(ARCHIVE, {**ARCHIVE, "collection_name": "other"}))


def test_headers_are_not_shown():
    archive = RagArchiveConfig(**ARCHIVE, headers={"authorization": "Bearer hush"})
    assert "hush" not in repr(ChromaRagConfig(archives=[archive]))


@pytest.mark.parametrize(
    "found",
    [
        [{**ARCHIVE, "headers": {"authorization": "Bearer hush"}}],
        {"archives": [{**ARCHIVE, "headers": {"authorization": "Bearer hush"}}] * 300},
        {"archives": [{**ARCHIVE, "headers": {"authorization": ["Bearer hush"]}}]},
        {"archives": [{**ARCHIVE, "headers": "Bearer hush"}]},
        {"archives": {"headers": "Bearer hush"}},
    ],
)
def test_headers_are_not_shown_where_something_is_wrong(found):
    with pytest.raises(InvalidConfigError, match="rag_config") as raised:
        extract_rag_config({"configurable": {"rag_config": found}})
    assert "hush" not in str(raised.value)
    assert len(str(raised.value)) < 200


def test_defaults_of_the_environment():
    settings = archive_settings({})
    assert settings.chromadb_url == "http://chromadb:8000"
    assert settings.tei_url == "http://tei-embeddings:8080"
    assert (settings.top_k, settings.layer) == (5, "chunk")
    assert (settings.query_timeout, settings.embed_timeout) == (5, 10)
    assert (settings.language, settings.tenant, settings.database) == ("en", "default_tenant", "default_database")


def test_every_variable_is_read(monkeypatch):
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


def test_an_empty_variable_is_one_that_is_not_set():
    assert archive_settings({"RAG_DEFAULT_LAYER": " ", "DOCPROC_CHROMADB_URL": ""}) == archive_settings({})


@pytest.mark.parametrize(("given", "used"), [("0", 1), ("-3", 1), ("20", 20), ("500", 20)])
def test_the_default_number_of_passages_is_clamped(given, used):
    assert archive_settings({"RAG_DEFAULT_TOP_K": given}).top_k == used


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RAG_DEFAULT_TOP_K", "many"),
        ("RAG_QUERY_TIMEOUT_SECONDS", "0"),
        ("RAG_QUERY_TIMEOUT_SECONDS", "inf"),
        ("RAG_QUERY_TIMEOUT_SECONDS", "1e10"),
        ("RAG_EMBED_TIMEOUT_SECONDS", "86401"),
        ("CHROMA_TENANT", "../x"),
        ("CHROMA_DATABASE", "a?b"),
        ("RAG_EMBED_TIMEOUT_SECONDS", "nan"),
        ("DOCPROC_CHROMADB_URL", "chromadb"),
        ("RAG_LANGUAGE", "fr"),
    ],
)
def test_a_bad_variable_is_named(name, value):
    with pytest.raises(InvalidConfigError, match=f"the environment.*{name}"):
        archive_settings({name: value})


def test_an_address_of_another_protocol_is_told_by_its_scheme():
    with pytest.raises(InvalidConfigError, match="'FTP://x' has the scheme 'FTP'; write http://HOST:PORT"):
        archive_settings({"DOCPROC_CHROMADB_URL": "FTP://someone:hush@x?key=hush"})


def test_the_configuration_is_read_without_any_client_or_model():
    heavy = ("chromadb", "onnxruntime", "tokenizers", "tantivy", "langchain_core", "pypdfium2", "pocketflow")
    assert loaded_after("import ragistry.tools.archives", heavy) == set()
