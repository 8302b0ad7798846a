"""A workspace is a folder; what its files say must agree."""

from __future__ import annotations

from pathlib import Path

import pytest

import ragistry
from ragistry.errors import ConfigError, InvalidConfigError, SourceNotFoundError, StoreError, UnknownTechniqueError
from ragistry.library.service import DocumentService
from ragistry.techniques.naive import NaiveRAGTechnique
from tests.conftest import write_config as write
from tests.messages import refused


def test_an_empty_folder_is_a_workspace(tmp_path: Path) -> None:
    with ragistry.open_workspace(tmp_path) as workspace:
        assert workspace.registry.names()[0] == "naive"
        assert isinstance(workspace.technique("naive").technique, NaiveRAGTechnique)
        assert isinstance(workspace.library, DocumentService)
        assert workspace.search("anything", technique="naive").documents == []
        assert workspace.library.store is workspace.store
        assert workspace.library.embedder is workspace.embedder
        with pytest.raises(UnknownTechniqueError):
            workspace.technique("nothing")
    workspace.close()
    with refused(StoreError, tmp_path):
        _ = workspace.store


def test_arguments_override_the_environment_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGISTRY_DATA_DIR", "elsewhere")
    write(tmp_path, documents="n_results: 3\n")
    with ragistry.open_workspace(tmp_path, data_dir="here", chunk_size=400, n_results=2) as workspace:
        assert (workspace.reading.chunk_size, workspace.reading.chunk_overlap) == (400, 60)
        workspace.library.create_collection("notes")
        for number in range(4):
            workspace.library.ingest_text(f"Tea of kind {number}.", f"{number}.txt", "notes")
        assert len(workspace.search("tea").documents) == 2, "where neither the technique nor the caller says it"
    assert (tmp_path / "here" / "store.db").exists()
    assert not (tmp_path / "elsewhere").exists()


def test_every_key_of_the_older_files_is_read(tmp_path: Path) -> None:
    write(
        tmp_path,
        documents="collection: collective.documents\nchroma_path: .chroma\nembed_model: nomic-embed-text\n"
        "chunk_size: 1500\nchunk_overlap: 200\nn_results: 5\ndescription: |\n  Searches.\nparam_query: |\n  What.\n",
        vector_stores='chromadb:\n  persist_directory: ".chroma"\n  collection_name: "collective.documents"\n',
        techniques="techniques:\n  naive_rag: {embedding_model: nomic-embed-text, chunk_size: 1500, top_k: 3}\n"
        "default: naive_rag\n",
    )
    with ragistry.open_workspace(tmp_path) as workspace:
        assert (workspace.reading.chunk_size, workspace.reading.chunk_overlap) == (1500, 200)
        assert workspace.registry.names() == ["naive_rag"]


def test_what_a_technique_says_of_the_store_must_be_so(tmp_path: Path) -> None:
    other = "techniques:\n  a: {use: naive, embedding_model: nomic-embed-text}\n  b: {use: naive, chunk_size: 700}\n"
    with refused(InvalidConfigError, "techniques.yaml:2: techniques.a.embedding_model", "techniques.yaml:3"):
        ragistry.open_workspace(write(tmp_path, techniques=other))
    for name in ("minilm", "all-MiniLM-L6-v2"):
        write(tmp_path, techniques=f"techniques:\n  a: {{use: naive, embedding_model: {name}, chunk_size: 1000}}\n")
        ragistry.open_workspace(tmp_path).close()
    write(tmp_path, techniques="techniques:\n  a: {use: naive, embedding_model: BAAI/bge-small-en-v1.5}\n")
    for model in ("tei", "tei:bge-small-en-v1.5", "openai:BAAI/bge-small-en-v1.5"):
        ragistry.open_workspace(tmp_path, embed_model=model, embed_url="http://127.0.0.1:9").close()
    with refused(InvalidConfigError, "another"):
        ragistry.open_workspace(tmp_path, embed_model="tei:another", embed_url="http://127.0.0.1:9")


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text", encoding="utf-8")
    for name in ("nowhere", "file"):
        with refused(SourceNotFoundError, tmp_path / name):
            ragistry.open_workspace(tmp_path / name)


def test_a_reader_begins_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = tmp_path / "a folder" / "below"
    below.mkdir(parents=True)
    with refused(SourceNotFoundError, below):
        ragistry.open_workspace(below, existing=True)
    write(below.parent, documents="n_results: 3\n")
    with refused(SourceNotFoundError, below.parent):
        ragistry.open_workspace(below, existing=True)
    monkeypatch.chdir(below)
    with refused(SourceNotFoundError):
        ragistry.open_workspace(existing=True)
    assert list(below.iterdir()) == []


def test_configuration_data_or_a_server_make_a_workspace(tmp_path: Path) -> None:
    for name in ("configured", "filled", "served"):
        (tmp_path / name).mkdir()
    write(tmp_path / "configured", techniques="techniques:\n  a: {use: naive}\n")
    with ragistry.open_workspace(tmp_path / "filled", data_dir="data") as workspace:
        assert workspace.store.count() == 0
    ragistry.open_workspace(tmp_path / "configured", existing=True).close()
    ragistry.open_workspace(tmp_path / "filled", existing=True, data_dir="data").close()
    ragistry.open_workspace(tmp_path / "served", existing=True, chroma_host="http://127.0.0.1").close()
    with pytest.raises(SourceNotFoundError):
        ragistry.open_workspace(tmp_path / "filled", existing=True)


def test_all_problems_of_all_files_are_reported_at_once(tmp_path: Path) -> None:
    write(
        tmp_path,
        documents="n_results: 0\ntopic: MBA\nchroma_path: a\ncollections: [{nam: x}]\n",
        vector_stores="chromadb: {persist_directory: b}\n",
        models="generators:\n  a: {use: olama}\n",
        techniques="techniques:\n  a: {use: naiv, generator: a}\n",
    )
    places = (
        "documents.yaml:1: n_results:", "documents.yaml:2: topic: unknown", "documents.yaml:4: collections.0.nam:",
        "vector_stores.yaml:1: persist_directory: 'b'", "models.yaml:2", "techniques.yaml:2: techniques.a.use:",
    )  # fmt: skip
    with refused(InvalidConfigError, *places) as raised:
        ragistry.open_workspace(tmp_path)
    assert "no generator" not in str(raised.value), "what follows from another mistake is not one"


def test_settings_that_cannot_be_used_are_refused_with_their_place(tmp_path: Path) -> None:
    for model in ("minillm", "tei"):
        with refused(InvalidConfigError, model):
            ragistry.open_workspace(tmp_path, embed_model=model)
    for existing in (False, True):
        with refused(ConfigError, "~nobody-here/x"):
            ragistry.open_workspace(tmp_path, existing=existing, data_dir="~nobody-here/x").store.count()
    write(tmp_path, documents="chunk_size: 100\nchunk_overlap: 100\n")
    with refused(InvalidConfigError, "documents.yaml:2", "documents.yaml:1"):
        ragistry.open_workspace(tmp_path)
    write(tmp_path, documents="")
    (tmp_path / ".ragistry").write_text("a file", encoding="utf-8")
    with ragistry.open_workspace(tmp_path) as workspace, refused(StoreError, tmp_path / ".ragistry"):
        _ = workspace.store
