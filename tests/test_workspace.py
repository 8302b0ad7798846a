"""A workspace is a folder; what its files say must agree."""

from __future__ import annotations

from pathlib import Path

import pytest

import ragistry
from ragistry.errors import ConfigError, InvalidConfigError, SourceNotFoundError, StoreError, UnknownTechniqueError
from ragistry.library.service import DocumentService
from ragistry.techniques.naive import NaiveRAGTechnique


def write(root: Path, **files: str) -> Path:
    (root / "config").mkdir(exist_ok=True)
    for name, text in files.items():
        (root / "config" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return root


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


def test_arguments_go_before_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGISTRY_DATA_DIR", "elsewhere")
    with ragistry.open_workspace(tmp_path, data_dir="here", chunk_size=400) as workspace:
        assert workspace.store.count() == 0
        assert (workspace.reading.chunk_size, workspace.reading.chunk_overlap) == (400, 60)
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
    write(
        tmp_path,
        techniques="techniques:\n  a: {use: naive, embedding_model: nomic-embed-text}\n"
        "  b: {use: naive, chunk_size: 700}\n",
    )
    with pytest.raises(InvalidConfigError) as caught:
        ragistry.open_workspace(tmp_path)
    message = str(caught.value)
    assert "techniques.yaml:2: techniques.a.embedding_model: 'nomic-embed-text', but the store is made with" in message
    assert "techniques.yaml:3: techniques.b.chunk_size: 700, but the store is made with chunks of 1000" in message


@pytest.mark.parametrize("name", ["minilm", "all-MiniLM-L6-v2"])
def test_a_model_has_a_short_name(tmp_path: Path, name: str) -> None:
    write(tmp_path, techniques=f"techniques:\n  a: {{use: naive, embedding_model: {name}, chunk_size: 1000}}\n")
    with ragistry.open_workspace(tmp_path) as workspace:
        assert workspace.technique("a").retrieve("x") == []


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError, match="no such folder: .*nowhere"):
        ragistry.open_workspace(tmp_path / "nowhere")
    (tmp_path / "file").write_text("text", encoding="utf-8")
    with pytest.raises(SourceNotFoundError, match=r"no folder, but a file: .*file'; name the folder of the workspace"):
        ragistry.open_workspace(tmp_path / "file")


def test_who_only_reads_begins_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = tmp_path / "a folder" / "below"
    below.mkdir(parents=True)
    with pytest.raises(SourceNotFoundError, match="no workspace in .*; name its folder with -w, or begin one"):
        ragistry.open_workspace(below, existing=True)
    write(below.parent, documents="n_results: 3\n")
    with pytest.raises(SourceNotFoundError, match=r"no workspace in .*; there is one in '.*', add `-w '.*/a folder'`"):
        ragistry.open_workspace(below, existing=True)
    monkeypatch.chdir(below)
    with pytest.raises(SourceNotFoundError, match=r"no workspace in '\.', .*; there is one in '\.\.', add `-w \.\.`"):
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
    ragistry.open_workspace(tmp_path / "served", existing=True, chroma_host="127.0.0.1").close()
    with pytest.raises(SourceNotFoundError):
        ragistry.open_workspace(tmp_path / "filled", existing=True)


def test_an_unknown_model_is_told_with_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match="argument: unknown embed_model 'minillm'; did you mean 'minilm'"):
        ragistry.open_workspace(tmp_path, embed_model="minillm")
    with pytest.raises(InvalidConfigError, match="embed_model 'tei' needs the server's address; set embed_url"):
        ragistry.open_workspace(tmp_path, embed_model="tei")


def test_all_problems_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    write(
        tmp_path,
        documents="n_results: 0\ntopic: MBA\nchroma_path: a\ncollections: [{nam: x}]\n",
        vector_stores="chromadb: {persist_directory: b}\n",
        techniques="techniques:\n  a: {use: naiv}\n",
    )
    with pytest.raises(InvalidConfigError) as caught:
        ragistry.open_workspace(tmp_path)
    message = str(caught.value)
    for said in (
        "documents.yaml:1: n_results:",
        "documents.yaml:2: topic: 'MBA' is no longer used",
        "documents.yaml:4: collections.0.nam: unknown setting 'nam'; did you mean 'name'?; there are description",
        "vector_stores.yaml:1: persist_directory: 'b', but",
        "techniques.yaml:2: techniques.a.use: unknown technique 'naiv'",
    ):
        assert said in message


def test_n_results_holds_where_a_technique_says_nothing(tmp_path: Path) -> None:
    with ragistry.open_workspace(tmp_path, n_results=2) as workspace:
        workspace.library.create_collection("notes")
        for number in range(4):
            workspace.library.ingest_text(f"Tea of kind {number}.", f"{number}.txt", "notes")
        assert len(workspace.search("tea").documents) == 2


def test_a_closed_workspace_stays_closed(tmp_path: Path) -> None:
    workspace = ragistry.open_workspace(tmp_path)
    workspace.close()
    with pytest.raises(StoreError, match="is closed; open it again"):
        _ = workspace.store


def test_names_of_models_are_compared_as_people_mean_them(tmp_path: Path) -> None:
    write(tmp_path, techniques="techniques:\n  a: {use: naive, embedding_model: BAAI/bge-small-en-v1.5}\n")
    for model in ("tei", "tei:bge-small-en-v1.5", "openai:BAAI/bge-small-en-v1.5"):
        ragistry.open_workspace(tmp_path, embed_model=model, embed_url="http://127.0.0.1:9").close()
    with pytest.raises(InvalidConfigError, match="embedding_model"):
        ragistry.open_workspace(tmp_path, embed_model="tei:another", embed_url="http://127.0.0.1:9")


def test_an_overlap_that_is_too_large_is_told_with_its_place(tmp_path: Path) -> None:
    write(tmp_path, documents="chunk_size: 100\nchunk_overlap: 100\n")
    with pytest.raises(InvalidConfigError, match="documents.yaml:2: chunk_overlap: 100 is not below chunk_size 100"):
        ragistry.open_workspace(tmp_path)


def test_a_data_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / ".ragistry").write_text("a file", encoding="utf-8")
    workspace = ragistry.open_workspace(tmp_path)
    with pytest.raises(StoreError, match="cannot be opened: .*; make the folder readable"):
        _ = workspace.store


@pytest.mark.parametrize("existing", [False, True])
def test_a_folder_of_nobody_is_refused(tmp_path: Path, existing: bool) -> None:
    with pytest.raises(ConfigError, match=r"there is no user of the folder '~nobody-here/x' here; write its path"):
        ragistry.open_workspace(tmp_path, existing=existing, data_dir="~nobody-here/x").store.count()


def test_two_workspaces_have_their_own_techniques_and_nodes_of_one_name(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (root := tmp_path / name).mkdir()
        (root / "twice_named.py").write_text(
            f"from pocketflow import Node\nclass Mine:\n    at = {name!r}\n"
            "    def __init__(self, config, *, base): self.base = base\n"
            "    def retrieve(self, query, **options): return self.base.retrieve(query, **options)\n"
            f"class Step(Node):\n    actions = frozenset({{{name!r}}})\n",
            encoding="utf-8",
        )
        write(
            root,
            techniques="techniques:\n  naive: {use: naive}\n  mine: {use: 'twice_named:Mine', base: naive}\n"
            f"  steps: {{use: pipeline, steps: {{one: {{node: 'twice_named:Step', on: {{{name}: END}}}}}}}}\n",
        )
    with ragistry.open_workspace(tmp_path / "a") as a, ragistry.open_workspace(tmp_path / "b") as b:
        assert [one.technique("mine").at for one in (a, b)] == ["a", "b"]
        assert [one.technique_over(one.store, "mine").at for one in (a, b)] == ["a", "b"]
        steps = [one.technique("steps").pipeline.flow.steps["one"].node for one in (a, b)]
        assert [step.actions for step in steps] == [{"a"}, {"b"}]
